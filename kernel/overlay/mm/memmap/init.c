// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Initialising the struct pages of a device
 *
 * memremap_pages() calls memmap_init_zone_device() for each range, outside of the hotplug
 * lock and before the driver uses the pages; that calls this. A range is cut into
 * chunks. Its first pages or compounds yield the template (template.c), the first chunks are a
 * contest between the ways to write it (contest.c), and the rest is shared by the CPUs of the
 * node (crew.c) and written in the way that won (fill.c).
 *
 * Life cycle: a job lives on the caller's stack for one range. All stores are visible to
 * whoever the caller tells of the range afterwards: helpers drain their own, and have
 * finished, or never begun, when memmap_crew_init() returns.
 *
 * Lock order: none is held on entry; the crew's cursor lock nests inside nothing.
 */

#include <linux/cpumask.h>
#include <linux/mm.h>
#include <linux/topology.h>

#include "internal.h"

/* Less work than this, close to a ms of it, is not worth a helper's wake-up. */
#define MEMMAP_CHUNKS_PER_THREAD	8

/**
 * memmap_init_chunk() - initialise a part of a range
 * @job:	the range, its template
 * @method:	how; @job's own or one on trial
 * @pfn:	first PFN, which begins a page or compound
 * @end_pfn:	end, at most memmap_chunk_end()
 *
 * Context: any that the slow path allows. Distinct chunks may be initialised at once.
 */
void __ref memmap_init_chunk(const struct memmap_job *job, enum memmap_method method,
			     unsigned long pfn, unsigned long end_pfn)
{
	const struct memmap_range *range = job->range;
	unsigned long nr = memmap_compound_nr(pfn, range->altmap, range->pgmap);

	if (method == MEMMAP_FIELDS)
		memmap_init_fields(range, pfn, end_pfn, nr);
	else
		memmap_template_apply(range, pfn, end_pfn, nr, &job->template, method);
}

/**
 * memmap_threads() - how many CPUs may share a range
 * @range:	the range
 * @pfn:	where what is left of it begins
 *
 * Return: that many, or 0 and 1 alike if it is too small to be shared.
 */
unsigned int __ref memmap_threads(const struct memmap_range *range, unsigned long pfn)
{
	/* Struct pages are what takes time, and compounds may have few. */
	unsigned long pages = (range->end_pfn - pfn) / pgmap_vmemmap_nr(range->pgmap) *
			      memmap_compound_nr(pfn, range->altmap, range->pgmap);
	unsigned long chunks = pages / MEMMAP_CHUNK_PFNS;
	unsigned int threads = READ_ONCE(memmap_knobs.threads);

	if (threads == MEMMAP_THREADS_AUTO)
		threads = cpumask_weight_and(cpumask_of_node(range->nid), cpu_online_mask);
	/* A node without CPUs, as CXL memory is, is served by all. */
	if (!threads)
		threads = num_online_cpus();
	return min3(threads, chunks / MEMMAP_CHUNKS_PER_THREAD, MEMMAP_THREADS_MAX);
}

/**
 * memmap_choose() - how to write a range
 * @job:	the range; receives the template
 * @pfn:	where it begins; moves on by what was written to find out
 *
 * Return: the way to write what follows @pfn.
 */
enum memmap_method __ref memmap_choose(struct memmap_job *job, unsigned long *pfn)
{
	const struct memmap_range *range = job->range;
	unsigned int method = READ_ONCE(memmap_knobs.method);

	if (method == MEMMAP_FIELDS || !memmap_template_possible(range))
		return MEMMAP_FIELDS;
	if (!memmap_template_make(range, &job->template))
		return MEMMAP_FIELDS;
	return method == MEMMAP_METHOD_AUTO ? memmap_contest(job, pfn) : method;
}

/**
 * memmap_init_device_range() - initialise the struct pages of a ZONE_DEVICE range
 * @range:	the range, known to the caller only
 *
 * Context: process context, may sleep. Allocates memory to share the work, and does without
 * if there is none.
 */
void __ref memmap_init_device_range(const struct memmap_range *range)
{
	struct memmap_job job = { .range = range };
	unsigned long pfn = range->start_pfn;

	if (pfn >= range->end_pfn)
		return;
	job.method = memmap_choose(&job, &pfn);
	memmap_crew_init(&job, pfn, memmap_threads(range, pfn));
}
