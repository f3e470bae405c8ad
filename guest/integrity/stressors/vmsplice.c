// SPDX-License-Identifier: GPL-2.0
/*
 * Hold references by vmsplice(2): migration must not replace a page that a pipe refers to. A store to the
 * mapping while the page is in the pipe is read from the pipe if the memory is shared. Private memory may
 * have been copied on write (after fork, or on its return from swap); the pipe then keeps the old content.
 */
#include "stressors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"
#include "folio.h"

static int pipe_ends[2];

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
	return pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) ? "no pipe" : NULL;
}

static size_t drain_pipe(char *copy)
{
	size_t got = 0;
	ssize_t more;

	while ((more = read(pipe_ends[0], copy + got, SPAN_PAGES * PAGE_BYTES - got)) > 0)
		got += more;
	return got;
}

static void check_page(const struct span *page, const char *copy, bool written)
{
	struct mismatch wrong;

	/*
	 * One generation back: the recorded one is that of the mapping. Private memory of huge pages is not copied on
	 * write here: no child shares it.
	 */
	if (written && !(page->area->traits & (AREA_SHMEM | AREA_HUGETLB)) && span_matches(page, copy, -1, &wrong))
		return;
	span_check_copy(page, copy, "vmsplice");
}

static void check_pipe(struct worker *worker, const struct span *span)
{
	bool write = worker_random(worker, 2);

	worker_pause(worker);
	if (write)
		span_stamp(span);
	worker_pause(worker);
	if (drain_pipe(worker->scratch) != span_bytes(span)) {
		report_broken(span->mem, "vmsplice", "the pipe gave less than it took");
		return;
	}
	for (uint32_t i = 0; i < span->count; i++) {
		struct span page = { span->mem, span->area, span->first + i, 1 };

		check_page(&page, (char *)worker->scratch + i * PAGE_BYTES, write);
	}
	span_check(span, "vmsplice");
}

static bool run_once(struct worker *worker)
{
	struct iovec memory;
	struct span span;
	bool held;

	if (!span_pick_claimed(worker, &span, AREA_ANON | AREA_HUGETLB | AREA_SHMEM, AREA_MERGEABLE, SPAN_PAGES))
		return false;
	memory = (struct iovec){ span_address(&span), span_bytes(&span) };
	/* A pipe has SPAN_PAGES slots by default, and fewer if the user has many pipes. */
	held = vmsplice(pipe_ends[1], &memory, 1, SPLICE_F_NONBLOCK) == (ssize_t)span_bytes(&span);
	if (held)
		check_pipe(worker, &span);
	else
		drain_pipe(worker->scratch);
	span_release(&span);
	return held;
}

static void finish(struct test_memory *mem)
{
	(void)mem;
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

const struct stressor vmsplice_stressor = {
	.name = "vmsplice", .prepare = prepare, .run_once = run_once, .finish = finish,
};
