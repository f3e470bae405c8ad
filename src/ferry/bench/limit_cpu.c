// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU's TCG that bounds the instructions a second of each CPU of the guest: so it has a CPU that is slow
 * but steady, on a host that has time left for the models of devices. The guest's clock stays the host's.
 *
 * Every QUANTUM instructions a CPU sleeps for what they should have taken, less the CPU time that its thread has needed
 * for them. So the time in which it is idle, or waits for a device's register, comes on top: none of it is made up for.
 * A sleep that ends late is, by as much as LATE_NS. A TB counts once, however often a string instruction repeats in it.
 *
 * Usage: -plugin limit_cpu.so,mips=N
 *
 * Debian has no package with qemu-plugin.h. The declarations are those of API version 7 in QEMU's
 * include/plugins/qemu-plugin.h. Tried with QEMU 11.1; QEMU 10.1 has an older version and refuses to load it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

struct qemu_plugin_tb;
typedef uint64_t plugin_id;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*callback)(struct qemu_plugin_tb *, void *data),
					   void *data);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*callback)(unsigned int cpu, void *data),
					  int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int qemu_plugin_version = 7;

#define NS_PER_S	INT64_C(1000000000)
#define MAX_CPUS	256
#define QUANTUM		4096
#define LATE_NS		100000

static struct cpu {
	uint64_t insns;
	int64_t used_ns;
	int64_t ahead_ns;
} __attribute__((aligned(64))) cpus[MAX_CPUS];

static unsigned long mips;

static int64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NS_PER_S + time.tv_nsec;
}

static void limit(struct cpu *cpu)
{
	int64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID), begun;

	if (!cpu->used_ns)
		prctl(PR_SET_TIMERSLACK, 1);
	cpu->ahead_ns += (int64_t)(cpu->insns * 1000 / mips) - (used - cpu->used_ns);
	cpu->used_ns = used;
	cpu->insns = 0;
	if (cpu->ahead_ns > 0) {
		begun = now_ns(CLOCK_MONOTONIC);
		nanosleep(&(struct timespec){ cpu->ahead_ns / NS_PER_S, cpu->ahead_ns % NS_PER_S }, NULL);
		cpu->ahead_ns -= now_ns(CLOCK_MONOTONIC) - begun;
	}
	if (cpu->ahead_ns < -LATE_NS)
		cpu->ahead_ns = -LATE_NS;
}

static void on_block(unsigned int index, void *data)
{
	struct cpu *cpu = &cpus[index];

	cpu->insns += (uintptr_t)data;
	if (cpu->insns >= QUANTUM)
		limit(cpu);
}

static void on_translation(struct qemu_plugin_tb *tb, void *data)
{
	(void)data;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, (void *)(uintptr_t)qemu_plugin_tb_n_insns(tb));
}

EXPORTED int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || sscanf(argv[0], "mips=%lu", &mips) != 1 || !mips) {
		fprintf(stderr, "limit_cpu: usage: -plugin limit_cpu.so,mips=N\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation, NULL);
	return 0;
}
