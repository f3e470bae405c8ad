// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Which CPUs help mtcopy
 *
 * For each node a plan lists the CPUs, best first (mm/ferry/spread.c). A batch takes the
 * first idle ones. A busy CPU is passed over: a helper there would wait, or take time from
 * whoever runs, and migration on a busy machine must not be slower than without helpers.
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
#include <linux/slab.h>
#include <linux/smp.h>

#include "mtcopy.h"

struct mtcopy_plan {
	struct rcu_head rcu;
	unsigned int nr;
	unsigned int cpus[] __counted_by(nr);
};

static DEFINE_MUTEX(mtcopy_plans_mutex);
static struct mtcopy_plan __rcu *mtcopy_plans[MAX_NUMNODES];
static int mtcopy_hotplug_state;

static int mtcopy_plan_node(int nid)
{
	struct mtcopy_plan *plan, *old;
	unsigned int nr = nr_cpu_ids;

	plan = kvmalloc_flex(*plan, cpus, nr);
	if (!plan)
		return -ENOMEM;
	plan->nr = nr;
	plan->nr = ferry_spread_cpus(nid, READ_ONCE(mtcopy_tuning.spread),
				     plan->cpus, nr);
	if (!plan->nr) {
		kvfree(plan);
		return -ENOMEM;
	}
	old = rcu_replace_pointer(mtcopy_plans[nid], plan,
				  lockdep_is_held(&mtcopy_plans_mutex));
	kvfree_rcu(old, rcu);
	return 0;
}

/**
 * mtcopy_helpers_refresh() - make the plans anew
 *
 * Context: process context. Takes mtcopy_plans_mutex, allocates memory.
 * Return: 0 or -ENOMEM, with the plans of some nodes old.
 */
int mtcopy_helpers_refresh(void)
{
	int nid, err;

	guard(mutex)(&mtcopy_plans_mutex);
	/* Offline ones too: memory may come online later, behind CPUs that do not. */
	for_each_node(nid) {
		err = mtcopy_plan_node(nid);
		if (err)
			return err;
	}
	return 0;
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
 *
 * Context: any.
 * Return: how many there are. The calling CPU, being busy, is not among them.
 */
unsigned int mtcopy_pick_helpers(int nid, unsigned int *cpus, unsigned int max)
{
	const struct mtcopy_plan *plan;
	unsigned int i, nr = 0;

	guard(rcu)();
	plan = rcu_dereference(mtcopy_plans[nid]);
	for (i = 0; plan && i < plan->nr && nr < max; i++)
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
