// SPDX-License-Identifier: GPL-2.0
#include "mover.h"

#include "util.h"

/* As many as the kernel migrates in one batch, behind one TLB flush. */
#define BATCH_PAGES ((size_t)512)

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

void mover_open(struct mover *mover, const struct target *target, const struct options *options)
{
	*mover = (struct mover){ .target = target, .nodes = { options->to, options->from } };
	moveset_init(&mover->set, target->base, BATCH_PAGES * PAGE_BYTES, PAGE_BYTES);
}

size_t mover_move(struct mover *mover, size_t pages, int flags, struct work *work)
{
	const struct target *target = mover->target;
	size_t count = min(min(BATCH_PAGES, pages), target->pages - mover->at);
	struct move_result result;

	moveset_retarget(&mover->set, target->base + mover->at * PAGE_BYTES, count * PAGE_BYTES, PAGE_BYTES);
	result = moveset_move(&mover->set, mover->nodes[mover->trip], flags, 0);
	work->ns += result.ns;
	work->moved += result.moved;
	work->failed += result.failed;
	mover->at += count;
	if (mover->at == target->pages) {
		mover->at = 0;
		mover->trip ^= 1;
	}
	return count;
}

void mover_close(struct mover *mover)
{
	moveset_free(&mover->set);
}
