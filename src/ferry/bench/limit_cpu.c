// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU's TCG that bounds the instructions a second of each CPU of the guest: so it has a CPU that is slow
 * but steady, on a host that has time left for the models of devices. The guest's clock stays the host's.
 *
 * A CPU that is ahead sleeps, every QUANTUM instructions. One that was idle may not catch up, because it had nothing to
 * do; one whose sleep ended late may, by as much as LATE_NS.
 *
 * Usage: -plugin limit_cpu.so,mips=N
 *
 * Debian has no package with qemu-plugin.h. The declarations are those of API version 7 in QEMU's
 * include/plugins/qemu-plugin.h. Tried with QEMU 11.1; QEMU 10.1 has an older version and refuses to load it.
 */
#include <errno.h>
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

#define MAX_CPUS	256
/* Instructions between two looks at the clock. */
#define QUANTUM		4096
#define LATE_NS		100000

static struct cpu {
	uint64_t insns;
	int64_t due_ns;
} __attribute__((aligned(64))) cpus[MAX_CPUS];

static unsigned long mips;

static void limit(struct cpu *cpu)
{
	struct timespec time;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &time);
	now = time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
	if (!cpu->due_ns)
		prctl(PR_SET_TIMERSLACK, 1);
	cpu->due_ns += cpu->insns * 1000 / mips;
	cpu->insns = 0;
	if (cpu->due_ns < now - LATE_NS)
		cpu->due_ns = now - LATE_NS;
	if (cpu->due_ns <= now)
		return;
	time.tv_sec = cpu->due_ns / 1000000000;
	time.tv_nsec = cpu->due_ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
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
