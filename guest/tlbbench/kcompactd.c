// SPDX-License-Identifier: GPL-2.0
/*
 * Compaction as it begins by itself: an allocation of a higher order finds no free block on a node whose free memory is
 * fragmented, does not wait, and wakes kcompactd, which compacts until there is such a block. Page faults under
 * MADV_HUGEPAGE allocate so with the setting "defer". A process of its own takes them: its calls must not flush the
 * TLBs of the readers.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "folio.h"
#include "sysfs.h"
#include "util.h"
#include "workload.h"

/* Long enough for kcompactd to make a few blocks. */
#define RETRY_NS 2000000
#define POLL_NS 20000000

/* Fill address space with folios of this size, one after the other; try again as long as a fault gets a single page. */
static _Noreturn void allocate(int node, size_t bytes, size_t folio_bytes)
{
	char *base = folio_reserve(bytes);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sysfs_disown();
	if (mprotect(base, bytes, PROT_READ | PROT_WRITE) || madvise(base, bytes, MADV_HUGEPAGE))
		die(EXIT_MISSING, "no memory of large folios: %m");
	node_bind(base, bytes, node);
	for (size_t at = 0; at < bytes;) {
		base[at] = 1;
		if (folio_census(base + at, folio_bytes, folio_bytes).exact) {
			at += folio_bytes;
			continue;
		}
		if (madvise(base + at, folio_bytes, MADV_DONTNEED))
			die(EXIT_FAILED, "madvise(MADV_DONTNEED): %m");
		sleep_ns(RETRY_NS);
	}
	pause();
	_exit(EXIT_FAILED);
}

static pid_t start_allocating(const struct options *options)
{
	size_t folio_bytes = PAGE_BYTES << options->order;
	pid_t child;

	if (!thp_allow_only(folio_bytes, false) || !sysfs_set_until_exit(THP_DIR "/defrag", "defer"))
		die(EXIT_MISSING, "the kernel allocates no folios of order %u: %m", options->order);
	/* A boost of the watermarks would let kswapd wake kcompactd for a whole pageblock, whatever the order. */
	if (!sysfs_set_until_exit("/proc/sys/vm/watermark_boost_factor", "0"))
		die(EXIT_FAILED, "vm.watermark_boost_factor: %m");
	child = fork();
	if (child < 0)
		die(EXIT_FAILED, "fork: %m");
	/* The holes are not enough for as much as the target. */
	if (!child)
		allocate(options->from, options->bytes, folio_bytes);
	return child;
}

struct work run_kcompactd(const struct target *target, const struct options *options)
{
	uint64_t start = clock_ns(), limit = options->limit_s * UINT64_C(1000000000);
	pid_t child = start_allocating(options);
	struct counters before, now;
	struct work work = { 0 };
	int status;

	(void)target;
	counters_read(&before);
	do {
		sleep_ns(POLL_NS);
		if (waitpid(child, &status, WNOHANG))
			die(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED, "the process that allocates has ended");
		counters_read(&now);
		work.moved = counters_delta(&before, &now, "pgmigrate_success");
		work.failed = counters_delta(&before, &now, "pgmigrate_fail");
		work.ns = clock_ns() - start;
	} while (work.moved < options->moves && work.ns < limit);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return work;
}
