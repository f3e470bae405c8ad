// SPDX-License-Identifier: GPL-2.0
/*
 * io_uring fixed buffers: the kernel holds a long-term pin, and reads and writes the pages through the
 * pin, not through the mapping. Mapping and pin must always refer to the same page.
 */
#include "stressors.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"

/* The part of io_uring that one request at a time needs, by raw system calls. */
struct uring {
	int fd;
	void *rings;
	size_t rings_bytes;
	struct io_uring_sqe *entries;
	size_t entries_bytes;
	struct io_uring_params params;
};

#define ENTRIES 1

static void *map_ring(int fd, size_t bytes, off_t what)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
}

/* Both rings are in one mapping (IORING_FEAT_SINGLE_MMAP, since Linux 5.4). */
static size_t rings_bytes(const struct io_uring_params *params)
{
	size_t sq = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
	size_t cq = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

	return sq > cq ? sq : cq;
}

static bool uring_open(struct uring *ring)
{
	*ring = (struct uring){ 0 };
	ring->fd = syscall(SYS_io_uring_setup, ENTRIES, &ring->params);
	if (ring->fd < 0)
		return false;
	ring->rings_bytes = rings_bytes(&ring->params);
	ring->entries_bytes = ring->params.sq_entries * sizeof(*ring->entries);
	ring->rings = map_ring(ring->fd, ring->rings_bytes, IORING_OFF_SQ_RING);
	ring->entries = map_ring(ring->fd, ring->entries_bytes, IORING_OFF_SQES);
	if (ring->rings != MAP_FAILED && (void *)ring->entries != MAP_FAILED)
		return true;
	close(ring->fd);
	return false;
}

static _Atomic uint32_t *ring_word(const struct uring *ring, uint32_t offset)
{
	return (_Atomic uint32_t *)((char *)ring->rings + offset);
}

static int take_result(struct uring *ring)
{
	const struct io_uring_cqe *results =
		(void *)((char *)ring->rings + ring->params.cq_off.cqes);
	_Atomic uint32_t *head = ring_word(ring, ring->params.cq_off.head);
	uint32_t slot = atomic_load(head) & (ring->params.cq_entries - 1);
	int result = results[slot].res;

	atomic_store(head, atomic_load(head) + 1);
	return result;
}

static ssize_t uring_transfer(struct uring *ring, int opcode, int fd, void *memory, size_t bytes)
{
	_Atomic uint32_t *tail = ring_word(ring, ring->params.sq_off.tail);
	uint32_t slot = atomic_load(tail) & (ring->params.sq_entries - 1);
	uint32_t to_submit = 1;

	ring->entries[slot] = (struct io_uring_sqe){
		.opcode = opcode, .fd = fd, .addr = (uintptr_t)memory, .len = bytes,
	};
	atomic_store(ring_word(ring, ring->params.sq_off.array) + slot, slot);
	atomic_store(tail, atomic_load(tail) + 1);
	for (;;) {
		long done = syscall(SYS_io_uring_enter, ring->fd, to_submit, 1, IORING_ENTER_GETEVENTS,
				    NULL, 0);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0)
			to_submit = 0;
		/* The completion has arrived when the tail is ahead of the head. */
		if (atomic_load(ring_word(ring, ring->params.cq_off.tail)) !=
		    atomic_load(ring_word(ring, ring->params.cq_off.head)))
			return take_result(ring);
	}
}

static struct uring ring;
static int file = -1;

static const char *prepare(struct test_memory *mem)
{
	(void)mem;
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
	report_broken(span->mem, "uring", "transfer of %zu bytes: %s", span_bytes(span),
		      done < 0 ? strerror(-done) : "cut short");
	return false;
}

static void write_through_pin(struct worker *worker, const struct span *span)
{
	span_stamp_copy(span, worker->scratch, 1);
	if (pwrite(file, worker->scratch, span_bytes(span), 0) != (ssize_t)span_bytes(span)) {
		report_broken(span->mem, "uring", "pwrite: %m");
		return;
	}
	if (transfer(span, IORING_OP_READ_FIXED)) {
		span_advance(span);
		span_check(span, "uring");
	}
}

static void read_through_pin(struct worker *worker, const struct span *span)
{
	span_stamp(span);
	if (!transfer(span, IORING_OP_WRITE_FIXED))
		return;
	if (pread(file, worker->scratch, span_bytes(span), 0) != (ssize_t)span_bytes(span))
		report_broken(span->mem, "uring", "pread: %m");
	else
		span_check_copy(span, worker->scratch, "uring");
}

static bool run_once(struct worker *worker)
{
	struct iovec buffer;
	struct span span;
	bool pinned;

	if (!span_pick_claimed(worker, &span, AREA_ANON | AREA_HUGETLB | AREA_SHMEM, AREA_MERGEABLE, SPAN_PAGES))
		return false;
	/* Fails if the kernel cannot migrate a page to memory that allows long-term pins; try others. */
	buffer = (struct iovec){ span_address(&span), span_bytes(&span) };
	pinned = !syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_BUFFERS, &buffer, 1);
	if (pinned) {
		worker_pause(worker);
		write_through_pin(worker, &span);
		worker_pause(worker);
		read_through_pin(worker, &span);
		syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
		span_check(&span, "uring");
	}
	span_release(&span);
	return pinned;
}

static void finish(struct test_memory *mem)
{
	(void)mem;
	munmap(ring.rings, ring.rings_bytes);
	munmap(ring.entries, ring.entries_bytes);
	close(ring.fd);
	close(file);
}

const struct stressor uring_stressor = {
	.name = "uring", .prepare = prepare, .run_once = run_once, .finish = finish,
};
