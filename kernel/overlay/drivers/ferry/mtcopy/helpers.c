// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Helper CPUs of mtcopy
 *
 * For each node an order lists the CPUs, best first (mm/ferry/placement.c). A
 * batch takes the first idle CPUs of its destination's order and passes over
 * busy ones: a helper on a busy CPU would wait or take time from the task that
 * runs there, and migration on a busy machine must not be slower than without
 * helpers. The search is bounded for the same reason: it checks only as many
 * CPUs as take a small part of the time of the copy. A CPU that was picked
 * looks idle until the helper runs, so a mark keeps other batches from picking
 * it too, until its helper ends. A CPU in a deep idle state runs its helper
 * late: that helper claims less, and the caller does not wait for it.
 *
 * Isolated CPUs are for other work. cpusets isolate CPUs at any time, so the
 * orders have all, and each batch passes over those that are isolated then.
 *
 * Life cycle: the module makes the orders when it loads, and makes them again
 * when a CPU goes online. Every batch reads them under RCU. An order that names
 * an offline CPU does no harm: that CPU is not idle.
 *
 * Locking: mtcopy_order_mutex serialises the writers of the orders. The order
 * is CPU hotplug lock -> mtcopy_order_mutex.
 */

#include <kunit/static_stub.h>
#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/ferry.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "internal.h"

/*
 * The idle check of a remote CPU is a cache miss or two, 0.2 us; the copy of
 * this much takes 1.6 us at 10 GB/s. So the search takes at most about an
 * eighth of the copy's time; 256 KiB, the least that helpers copy, allow 16
 * checks.
 */
#define MTCOPY_CHECK_BYTES	SZ_16K

/*
 * Two threads gain wherever a second CPU is idle. How many more gain depends on
 * the machine (the batch copy series saw gains up to 8), so the operator
 * decides.
 */
struct mtcopy_tuning mtcopy_tuning = {
	.threads = 4,
	.nontemporal = MTCOPY_AUTO,
};

struct mtcopy_cpu_order {
	struct rcu_head rcu;
	unsigned int nr;
	unsigned int cpus[] __counted_by(nr);
};

/* A batch has picked the CPU. */
static DEFINE_PER_CPU(int, mtcopy_picked);

static DEFINE_MUTEX(mtcopy_order_mutex);
static struct mtcopy_cpu_order __rcu *mtcopy_cpu_orders[MAX_NUMNODES];
static int mtcopy_hotplug_state;

static struct mtcopy_cpu_order *mtcopy_cpu_order_alloc(int nid)
{
	unsigned int nr = nr_cpu_ids;
	struct mtcopy_cpu_order *order = kvmalloc_flex(*order, cpus, nr);

	if (!order)
		return NULL;
	order->nr = nr;
	order->nr = ferry_place_cpus(nid, order->cpus, nr);
	if (order->nr)
		return order;
	kvfree(order);
	return NULL;
}

/**
 * mtcopy_helpers_refresh() - make the orders of all nodes again
 *
 * Context: process context. Takes mtcopy_order_mutex, allocates memory.
 * Return: 0, or -ENOMEM: the orders that were not made are as they were.
 */
int mtcopy_helpers_refresh(void)
{
	struct mtcopy_cpu_order *order, *old;
	int nid;

	guard(mutex)(&mtcopy_order_mutex);
	/* For offline nodes, too: a node may get memory but no CPU later. */
	for_each_node(nid) {
		order = mtcopy_cpu_order_alloc(nid);
		if (!order)
			return -ENOMEM;
		old = rcu_replace_pointer(mtcopy_cpu_orders[nid], order,
					  lockdep_is_held(&mtcopy_order_mutex));
		kvfree_rcu(old, rcu);
	}
	return 0;
}

static int mtcopy_cpu_online(unsigned int cpu)
{
	mtcopy_helpers_refresh();
	return 0;
}

/**
 * mtcopy_is_isolated() - is a CPU for other work?
 * @cpu: the CPU
 *
 * Context: within an RCU read-side critical section, which keeps the masks.
 * Return: true if the CPU is in no scheduling domain, or is to be kept free of
 * the kernel's noise.
 */
bool mtcopy_is_isolated(unsigned int cpu)
{
	KUNIT_STATIC_STUB_REDIRECT(mtcopy_is_isolated, cpu);
	return !housekeeping_cpu(cpu, HK_TYPE_DOMAIN) ||
	       !housekeeping_cpu(cpu, HK_TYPE_KERNEL_NOISE);
}

static bool mtcopy_pick(unsigned int cpu)
{
	int *picked = per_cpu_ptr(&mtcopy_picked, cpu);

	return ferry_cpu_idle(cpu) && !READ_ONCE(*picked) &&
	       !cmpxchg(picked, 0, 1);
}

/**
 * mtcopy_release_helper() - let other batches pick a CPU
 * @cpu: a CPU from mtcopy_pick_helpers(); its helper has ended or never began
 *
 * Context: any.
 */
void mtcopy_release_helper(unsigned int cpu)
{
	WRITE_ONCE(*per_cpu_ptr(&mtcopy_picked, cpu), 0);
}

/**
 * mtcopy_pick_helpers() - choose idle CPUs for a batch
 * @nid:	destination node
 * @cpus:	receives the CPUs
 * @max:	CPUs that are wanted
 * @bytes:	size of the batch
 *
 * Context: any.
 * Return: number of CPUs in @cpus, each for mtcopy_release_helper(). The
 * calling CPU is busy and not among them.
 */
unsigned int mtcopy_pick_helpers(int nid, unsigned int *cpus, unsigned int max,
				 size_t bytes)
{
	unsigned int checks = DIV_ROUND_UP(bytes, MTCOPY_CHECK_BYTES);
	const struct mtcopy_cpu_order *order;
	unsigned int i, nr = 0;

	guard(rcu)();
	order = rcu_dereference(mtcopy_cpu_orders[nid]);
	for (i = 0; order && i < order->nr && checks && nr < max; i++) {
		/* Two bits that hardly change: no check of the CPU itself. */
		if (mtcopy_is_isolated(order->cpus[i]))
			continue;
		checks--;
		if (mtcopy_pick(order->cpus[i]))
			cpus[nr++] = order->cpus[i];
	}
	return nr;
}

/**
 * mtcopy_helpers_init() - make the orders and keep them up to date
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
					mtcopy_cpu_online, NULL);
	if (err < 0)
		goto exit;
	mtcopy_hotplug_state = err;
	return 0;
exit:
	mtcopy_helpers_exit();
	return err;
}

/**
 * mtcopy_helpers_exit() - free the orders
 *
 * Context: process context, no batch in flight.
 */
void mtcopy_helpers_exit(void)
{
	int nid;

	if (mtcopy_hotplug_state)
		cpuhp_remove_state_nocalls(mtcopy_hotplug_state);
	for (nid = 0; nid < MAX_NUMNODES; nid++)
		kvfree(rcu_dereference_protected(mtcopy_cpu_orders[nid], true));
}
