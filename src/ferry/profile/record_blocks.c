// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin for QEMU's TCG that records, in order, the blocks of instructions that the guest executes between two
 * markers. guest/lib/profile.h defines the markers, and src/ferry/profile/trace.py reads the files:
 *
 *	PREFIX.trace	32-bit words: the number of each executed block, or one of the markers.
 *	PREFIX.blocks	a line for each block that was executed: its number, its address, its count of instructions, its
 *			bytes, and the last instruction; numbers are hexadecimal but for the first and the third.
 *
 * A block counts as executed to its end; the few that fault before are counted too high. All of this is for a guest with
 * one CPU, so nothing is locked.
 *
 * Usage: -plugin record_blocks.so,out=PREFIX
 *
 * Debian has no package with qemu-plugin.h. The declarations are those of API versions 1 to 4 in QEMU's
 * include/qemu/qemu-plugin.h, which differ in qemu_plugin_insn_data() only. Tried with QEMU 7.2 and 10.0. QEMU 11.1
 * has given up these versions and refuses to load it.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef uint64_t plugin_id;

struct qemu_info_t {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
};

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*callback)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, void (*callback)(unsigned int cpu, void *data),
					  int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*callback)(unsigned int cpu, void *data), int flags, void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*callback)(plugin_id id, void *data), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
/* Only here to tell API version 2 and later from 1. */
int qemu_plugin_num_vcpus(void) __attribute__((weak));

#define EXPORTED __attribute__((visibility("default")))
#define MAX_INSN_BYTES 15

EXPORTED int qemu_plugin_version = 1;

/* QEMU reads the version after it has loaded the plugin. */
__attribute__((constructor)) static void choose_version(void)
{
	if (qemu_plugin_num_vcpus)
		qemu_plugin_version = 2;
}

/* Words of the trace that are no block; the second one also stops the recording. */
#define MARK_BEGIN	UINT32_C(0xffffffff)
#define MARK_END	UINT32_C(0xfffffffe)

/* See guest/lib/profile.h: nopl BEGIN(%rax) and nopl END(%rax). */
static const uint8_t nop[] = { 0x0f, 0x1f, 0x80 };
#define NOP_BEGIN	UINT32_C(0x46650001)
#define NOP_END		UINT32_C(0x46650000)

struct block {
	struct block *next;
	uint64_t address;
	uint32_t number;
	uint32_t insns;
	uint32_t bytes;
	uint8_t last_size;
	uint8_t last[MAX_INSN_BYTES];
	bool executed;
};

static struct block *blocks;
static uint32_t block_count;
static bool recording;
static FILE *trace;
static char prefix[4096];
/* qemu_plugin_insn_data() copies the bytes, as of API version 3. */
static bool data_copies;

static void put(uint32_t word)
{
	if (fwrite(&word, sizeof(word), 1, trace) != 1) {
		perror("record_blocks");
		exit(1);
	}
}

static void on_block(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (!recording)
		return;
	block->executed = true;
	put(block->number);
}

static void on_begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	recording = true;
	put(MARK_BEGIN);
}

static void on_end(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	recording = false;
	put(MARK_END);
}

/* Return the instruction's size, which is at most MAX_INSN_BYTES. */
static size_t read_insn(const struct qemu_plugin_insn *insn, uint8_t *bytes)
{
	size_t (*copy)(const struct qemu_plugin_insn *insn, void *bytes, size_t size);
	size_t size = qemu_plugin_insn_size(insn);

	if (data_copies) {
		copy = (void *)qemu_plugin_insn_data;
		return copy(insn, bytes, size);
	}
	memcpy(bytes, qemu_plugin_insn_data(insn), size);
	return size;
}

static void find_marker(struct qemu_plugin_insn *insn)
{
	uint8_t bytes[MAX_INSN_BYTES];
	uint32_t displacement;

	if (read_insn(insn, bytes) != sizeof(nop) + sizeof(displacement))
		return;
	memcpy(&displacement, bytes + sizeof(nop), sizeof(displacement));
	if (memcmp(bytes, nop, sizeof(nop)))
		return;
	if (displacement == NOP_BEGIN)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, 0, NULL);
	else if (displacement == NOP_END)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, 0, NULL);
}

static void on_translation(plugin_id id, struct qemu_plugin_tb *tb)
{
	struct block *block = calloc(1, sizeof(*block));
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct qemu_plugin_insn *last = NULL;

	(void)id;
	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(tb);
	block->number = block_count++;
	block->insns = count;
	for (size_t i = 0; i < count; i++) {
		last = qemu_plugin_tb_get_insn(tb, i);
		block->bytes += qemu_plugin_insn_size(last);
		find_marker(last);
	}
	if (last)
		block->last_size = read_insn(last, block->last);
	block->next = blocks;
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, block);
}

static FILE *open_file(const char *suffix)
{
	char name[sizeof(prefix) + 16];
	FILE *file;

	snprintf(name, sizeof(name), "%s.%s", prefix, suffix);
	file = fopen(name, "w");
	if (!file)
		perror(name);
	return file;
}

static void on_exit_of_guest(plugin_id id, void *data)
{
	FILE *file = open_file("blocks");

	(void)id;
	(void)data;
	for (struct block *block = blocks; file && block; block = block->next) {
		if (!block->executed)
			continue;
		fprintf(file, "%" PRIu32 " %" PRIx64 " %" PRIu32 " %" PRIx32 " ", block->number, block->address,
			block->insns, block->bytes);
		for (int i = 0; i < block->last_size; i++)
			fprintf(file, "%02x", block->last[i]);
		fputc('\n', file);
	}
	if (!file || fclose(file) || fclose(trace))
		perror("record_blocks");
}

EXPORTED int qemu_plugin_install(plugin_id id, const struct qemu_info_t *info, int argc, char **argv)
{
	data_copies = info->version.cur >= 3;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			snprintf(prefix, sizeof(prefix), "%s", argv[i] + 4);
	trace = *prefix ? open_file("trace") : NULL;
	if (!trace)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
	return 0;
}
