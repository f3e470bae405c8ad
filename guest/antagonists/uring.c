// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring fixed buffers: pages pinned for long, and written and read by the kernel through the
 * pin, not through the mapping. Before, during and after, mapping and pin must be the same page.
 */
#include "antagonists.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../check/report.h"
#include "../check/span.h"
#include "uring.h"

static struct uring ring;
static int file = -1;

static const char *prepare(struct arena *arena)
{
	(void)arena;
	if (!uring_open(&ring))
		return "no io_uring (CONFIG_IO_URING, or forbidden)";
	file = memfd_create("uring", MFD_CLOEXEC);
	return file < 0 ? "no memfd" : NULL;
}

static bool transfer(const struct span *span, int opcode)
{
	ssize_t done = uring_transfer(&ring, opcode, file, span_address(span), span_bytes(span));

	if (done == (ssize_t)span_bytes(span))
		return true;
	report_broken(span->arena, "uring", "transfer of %zu bytes: %s", span_bytes(span),
		      done < 0 ? strerror(-done) : "cut short");
	return false;
}

static void write_through_pin(struct actor *actor, const struct span *span)
{
	span_draw(span, actor->scratch, 1);
	if (pwrite(file, actor->scratch, span_bytes(span), 0) != (ssize_t)span_bytes(span)) {
		report_broken(span->arena, "uring", "pwrite: %m");
		return;
	}
	if (transfer(span, IORING_OP_READ_FIXED)) {
		span_advance(span);
		span_check(span, "uring");
	}
}

static void read_through_pin(struct actor *actor, const struct span *span)
{
	span_stamp(span);
	if (!transfer(span, IORING_OP_WRITE_FIXED))
		return;
	if (pread(file, actor->scratch, span_bytes(span), 0) != (ssize_t)span_bytes(span))
		report_broken(span->arena, "uring", "pread: %m");
	else
		span_check_copy(span, actor->scratch, "uring");
}

static bool act(struct actor *actor)
{
	struct span span;
	bool pinned;

	if (!span_pick_claimed(actor, &span, AREA_ANON | AREA_SHMEM, AREA_TWINS, SPAN_PAGES))
		return false;
	/* Fails where a page cannot be brought to where it may stay for long; try others. */
	pinned = uring_pin(&ring, span_address(&span), span_bytes(&span));
	if (pinned) {
		actor_pause(actor);
		write_through_pin(actor, &span);
		actor_pause(actor);
		read_through_pin(actor, &span);
		uring_unpin(&ring);
		span_check(&span, "uring");
	}
	span_release(&span);
	return pinned;
}

static void finish(struct arena *arena)
{
	(void)arena;
	uring_close(&ring);
	close(file);
}

const struct antagonist uring_antagonist = {
	.name = "uring", .prepare = prepare, .act = act, .finish = finish,
};
