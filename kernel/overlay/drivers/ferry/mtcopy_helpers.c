// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Which CPUs help mtcopy
 *
 * For each node a plan lists the CPUs, best first (mm/ferry/spread.c). A batch takes the
 * first idle ones. A busy CPU is passed over: a helper there would wait, or take time from
 * whoever runs, and migration on a busy machine must not be slower than without helpers.
 * That holds for the search, too: it looks at so many CPUs as take a small part of the time
 * that the copy does.
 *
 * Life cycle: made when the module loads; made anew when the spread knob changes or a CPU
 * comes or goes; read under RCU by every batch.
 *
 * Lock order: CPU hotplug lock -> mtcopy_plans_mutex.
 */

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/ferry.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "mtcopy.h"

/*
 * A look at a remote CPU is a cache miss or two, 0.2 us; copying this much takes 1.6 us at
 * 10 GB/s. So looking costs at most about an eighth of the copy; 256 KiB, the least that is
 * copied with help, are worth 16 looks.
 */
#define MTCOPY_LOOK_BYTES	SZ_16K

struct mtcopy_plan {
	struct rcu_head rcu;
	struct mtcopy_plan *next;	/* until it is published */
	int nid;
	unsigned int nr;
	unsigned int cpus[] __counted_by(nr);
};

static DEFINE_MUTEX(mtcopy_plans_mutex);
static struct mtcopy_plan __rcu *mtcopy_plans[MAX_NUMNODES];
static int mtcopy_hotplug_state;

static struct mtcopy_plan *mtcopy_plan_node(int nid)
{
	unsigned int nr = nr_cpu_ids;
	struct mtcopy_plan *plan = kvmalloc_flex(*plan, cpus, nr);

	if (!plan)
		return NULL;
	plan->nid = nid;
	plan->nr = nr;
	plan->nr = ferry_spread_cpus(nid, READ_ONCE(mtcopy_tuning.spread),
				     plan->cpus, nr);
	if (plan->nr)
		return plan;
	kvfree(plan);
	return NULL;
}

static void mtcopy_plan_publish(struct mtcopy_plan *plan)
{
	struct mtcopy_plan *old;

	old = rcu_replace_pointer(mtcopy_plans[plan->nid], plan,
				  lockdep_is_held(&mtcopy_plans_mutex));
	kvfree_rcu(old, rcu);
}

/**
 * mtcopy_helpers_refresh() - make the plans anew
 *
 * Context: process context. Takes mtcopy_plans_mutex, allocates memory.
 * Return: 0 or -ENOMEM, with all plans as they were.
 */
int mtcopy_helpers_refresh(void)
{
	struct mtcopy_plan *made = NULL, *plan;
	int nid, err = 0;

	guard(mutex)(&mtcopy_plans_mutex);
	/* Offline ones too: memory may come online later, behind CPUs that do not. */
	for_each_node(nid) {
		plan = mtcopy_plan_node(nid);
		if (!plan) {
			err = -ENOMEM;
			break;
		}
		plan->next = made;
		made = plan;
	}
	while ((plan = made)) {
		made = plan->next;
		if (err)
			kvfree(plan);
		else
			mtcopy_plan_publish(plan);
	}
	return err;
}

static int mtcopy_cpu_changed(unsigned int cpu)
{
	/* A stale plan only names CPUs that ferry_cpu_idle() then passes over. */
	mtcopy_helpers_refresh();
	return 0;
}

/**
 * mtcopy_pick_helpers() - choose CPUs to help with a batch
 * @nid:	destination node
 * @cpus:	receives the CPUs
 * @max:	how many are wanted
 * @bytes:	what there is to copy
 *
 * Context: any.
 * Return: how many were found. The calling CPU, being busy, is not among them.
 */
unsigned int mtcopy_pick_helpers(int nid, unsigned int *cpus, unsigned int max,
				 size_t bytes)
{
	unsigned int i, nr = 0, looks = DIV_ROUND_UP(bytes, MTCOPY_LOOK_BYTES);
	const struct mtcopy_plan *plan;

	guard(rcu)();
	plan = rcu_dereference(mtcopy_plans[nid]);
	for (i = 0; plan && i < min(plan->nr, looks) && nr < max; i++)
		if (ferry_cpu_idle(plan->cpus[i]))
			cpus[nr++] = plan->cpus[i];
	return nr;
}

/**
 * mtcopy_helpers_init() - make the plans and keep them fresh
 *
 * Context: process context.
 * Return: 0 or a negative errno.
 */
int mtcopy_helpers_init(void)
{
	int err = mtcopy_helpers_refresh();

	if (err)
		goto exit;
	err = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "mm/ferry:mtcopy",
					mtcopy_cpu_changed, mtcopy_cpu_changed);
	if (err < 0)
		goto exit;
	mtcopy_hotplug_state = err;
	return 0;
exit:
	mtcopy_helpers_exit();
	return err;
}

/**
 * mtcopy_helpers_exit() - drop the plans
 *
 * Context: process context, no batch in flight.
 */
void mtcopy_helpers_exit(void)
{
	int nid;

	if (mtcopy_hotplug_state)
		cpuhp_remove_state_nocalls(mtcopy_hotplug_state);
	for (nid = 0; nid < MAX_NUMNODES; nid++)
		kvfree(rcu_dereference_protected(mtcopy_plans[nid], true));
}
