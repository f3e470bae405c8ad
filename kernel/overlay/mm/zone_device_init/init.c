// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Initialisation of the struct pages of a device
 *
 * memremap_pages() calls memmap_init_zone_device() for each range, outside of
 * the hotplug lock and before the driver uses the pages.
 *
 * Life cycle of a range:
 *
 * 1. memmap_init_device_range() makes and checks a template (template.c). If
 *    there is none, all chunks take the slow path.
 * 2. The CPUs of the node claim chunks of the range (parallel.c).
 * 3. The first chunks are initialised alternately by the slow path and from the
 *    template, and timed; the others by the faster method (calibrate.c).
 *
 * All stores come before those by which the caller publishes the range: each
 * helper drains its own, and has finished or never begun when
 * memmap_init_parallel() returns.
 *
 * The parameters zone_device_init.nontemporal= and zone_device_init.threads=
 * can be written at any time, and apply to the next range.
 */

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/topology.h>

#include "internal.h"

/* Less work than this, nearly 1 ms, is not worth the wake-up of a helper. */
#define MEMMAP_CHUNKS_PER_THREAD	8

bool memmap_nontemporal = true;
unsigned int memmap_threads;	/* 0: the CPUs of the node */

/**
 * memmap_nr_threads() - CPUs that may share a range
 * @range: the range
 *
 * Return: the number of CPUs; 0 or 1 if the caller is to work alone.
 */
unsigned int __ref memmap_nr_threads(const struct memmap_range *range)
{
	/* The work is in the struct pages, and compounds may have few. */
	unsigned long pages = (range->end_pfn - range->start_pfn) /
			      pgmap_vmemmap_nr(range->pgmap) *
			      memmap_compound_nr(range->start_pfn,
						 range->altmap, range->pgmap);
	unsigned int threads = READ_ONCE(memmap_threads);

	if (!threads)
		threads = cpumask_weight_and(cpumask_of_node(range->nid),
					     memmap_allowed_cpus());
	/* All CPUs serve a node without any, as a CXL memory node is. */
	if (!threads)
		threads = cpumask_weight(memmap_allowed_cpus());
	return min3(threads,
		    pages / (MEMMAP_CHUNK_PFNS * MEMMAP_CHUNKS_PER_THREAD),
		    MEMMAP_THREADS_MAX);
}

/**
 * memmap_choose() - decide how to initialise a range
 * @job: the range; receives the template
 *
 * Return: MEMMAP_AUTO if the template can be used, else MEMMAP_FULL.
 */
enum memmap_method __ref memmap_choose(struct memmap_job *job)
{
	if (!READ_ONCE(memmap_nontemporal) ||
	    !memmap_template_possible(job->range) ||
	    !memmap_template_make(job->range, &job->template))
		return MEMMAP_FULL;
	return MEMMAP_AUTO;
}

/**
 * memmap_init_device_range() - initialise the struct pages of a range
 * @range: the range, in use by the caller only
 *
 * Context: process context, may sleep. Allocates memory to share the work, and
 * does without if there is none.
 */
void __ref memmap_init_device_range(const struct memmap_range *range)
{
	struct memmap_job job = { .range = range };

	if (range->start_pfn >= range->end_pfn)
		return;
	job.method = memmap_choose(&job);
	memmap_init_parallel(&job, memmap_nr_threads(range));
}

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "zone_device_init."

module_param_named(nontemporal, memmap_nontemporal, bool, 0644);
MODULE_PARM_DESC(nontemporal,
		 "Copy struct pages from a template where that is faster");

static int memmap_threads_set(const char *value,
			      const struct kernel_param *param)
{
	int err = param_set_uint_minmax(value, param, 0, MEMMAP_THREADS_MAX);

	return err == -ERANGE ? -EINVAL : err;
}

static const struct kernel_param_ops memmap_threads_ops = {
	.set = memmap_threads_set,
	.get = param_get_uint,
};

module_param_cb(threads, &memmap_threads_ops, &memmap_threads, 0644);
MODULE_PARM_DESC(threads,
		 "CPUs that share a range, 1 to 16; 0: those of its node");
