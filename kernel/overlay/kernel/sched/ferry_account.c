// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: CPU time of helpers
 *
 * Kernel threads that copy for a migration run for the task that asked for it.
 * ferry_account_helpers() charges their time to that task, for getrusage(2),
 * times(2), CPU timers and RLIMIT_CPU, and to the cpu.stat of its cgroups.
 *
 * The time is charged once. The CPUs' own statistics have it already, as time
 * of the kernel threads, which are in the root cgroup. So the machine's times
 * in /proc/stat, and with them the cpu.stat of the root cgroup, stay as they
 * are. The exception is cpuacct.usage of the root cgroup, of version 1: it is
 * the sum of all charges, and has the time twice.
 *
 * The charge changes neither the task's virtual run time nor the runtime that
 * cpu.max leaves to its cgroup. So cpu.max does not stop helpers. They use idle
 * CPUs only. NUMA balancing, whose scans follow the task's run time, scans the
 * task a little more often.
 *
 * Locking: the lock of the task's run queue. update_curr() holds it when it
 * changes these times, on other CPUs, too, and the tick changes the rest of
 * them with interrupts off.
 */

#include <linux/cgroup.h>
#include <linux/export.h>
#include <linux/ferry.h>
#include <linux/sched/cputime.h>
#include <linux/tsacct_kern.h>

#include "sched.h"

/**
 * ferry_account_helpers() - charge the current task for its helpers
 * @ns: time that other tasks ran on its behalf
 *
 * Context: process context, interrupts on. Takes the lock of the run queue.
 */
void ferry_account_helpers(u64 ns)
{
	struct task_struct *task = current;
	struct rq_flags rf;
	struct rq *rq;

	rq = task_rq_lock(task, &rf);
	task->se.sum_exec_runtime += ns;
	account_group_exec_runtime(task, ns);
	cgroup_account_cputime(task, ns);
	task->stime += ns;
	account_group_system_time(task, ns);
	cgroup_account_cputime_field(task, CPUTIME_SYSTEM, ns);
	acct_account_cputime(task);
	task_rq_unlock(rq, task, &rf);
}
EXPORT_SYMBOL_GPL(ferry_account_helpers);
