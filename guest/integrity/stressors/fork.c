// SPDX-License-Identifier: GPL-2.0
/*
 * Fork a child that shares pages until either side writes. The pages are claimed during fork(2), so the
 * child knows their expected content until it exits, whatever the parent writes later.
 */
#include "stressors.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"
#include "folio.h"

/* In shared memory, because the child must not print: another thread may have held stdio's lock at fork(2). */
static struct mismatch *wrong;

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
	wrong = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return wrong == MAP_FAILED ? "no shared memory" : NULL;
}

static bool is_good(const struct span *span)
{
	return span_matches(span, span_address(span), 0, wrong);
}

static _Noreturn void child_main(struct worker *worker, const struct span *span)
{
	bool good;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	good = is_good(span);
	worker_pause(worker);
	good = good && is_good(span);
	if (good) {
		/* The store makes a private copy for the child. */
		span_stamp(span);
		worker_pause(worker);
		good = is_good(span);
	}
	_exit(good ? 0 : 1);
}

static bool run_once(struct worker *worker)
{
	struct span span;
	int status;
	pid_t child;

	if (!span_pick_claimed(worker, &span, AREA_ANON, AREA_MERGEABLE, SPAN_PAGES))
		return false;
	child = fork();
	if (child == 0)
		child_main(worker, &span);
	span_release(&span);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
		report_wrong(span.mem, span.area, wrong, "fork");
	else if (status)
		report_broken(span.mem, "fork", "a child ended with wait status 0x%x", status);
	return true;
}

static void finish(struct test_memory *mem)
{
	(void)mem;
	munmap(wrong, PAGE_BYTES);
}

const struct stressor fork_stressor = {
	.name = "fork", .prepare = prepare, .run_once = run_once, .finish = finish,
};
