// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: What an operator can set
 *
 * memmap.method= and memmap.threads= on the command line, the same in
 * /sys/module/memmap/parameters while running; they count from the next range on. Each is
 * one word, read once per range.
 *
 * Lock order: the parameter lock, held by the caller; none is taken.
 */

#include <linux/atomic.h>
#include <linux/moduleparam.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "memmap."

struct memmap_knobs memmap_knobs = {
	.method = MEMMAP_METHOD_AUTO,
	.threads = MEMMAP_THREADS_AUTO,
};

const char * const memmap_method_names[MEMMAP_NR_METHODS] = {
	[MEMMAP_FIELDS] = "fields",
	[MEMMAP_CACHED] = "cached",
	[MEMMAP_BLOCK] = "block",
	[MEMMAP_STREAMING] = "streaming",
};

static int memmap_method_set(const char *value, const struct kernel_param *param)
{
	int method;

	if (sysfs_streq(value, "auto")) {
		/* Written twice, it asks for another contest. */
		if (xchg(&memmap_knobs.method, MEMMAP_METHOD_AUTO) == MEMMAP_METHOD_AUTO)
			memmap_contest_forget();
		return 0;
	}
	method = sysfs_match_string(memmap_method_names, value);
	if (method < 0)
		return method;
	WRITE_ONCE(memmap_knobs.method, method);
	return 0;
}

static int memmap_method_get(char *buffer, const struct kernel_param *param)
{
	unsigned int method, set = READ_ONCE(memmap_knobs.method);
	int len = sysfs_emit(buffer, set == MEMMAP_METHOD_AUTO ? "[auto]" : "auto");

	for (method = 0; method < MEMMAP_NR_METHODS; method++)
		len += sysfs_emit_at(buffer, len, set == method ? " [%s]" : " %s",
				     memmap_method_names[method]);
	return len + sysfs_emit_at(buffer, len, "\n");
}

static const struct kernel_param_ops memmap_method_ops = {
	.set = memmap_method_set,
	.get = memmap_method_get,
};

module_param_cb(method, &memmap_method_ops, NULL, 0644);
MODULE_PARM_DESC(method, "How ZONE_DEVICE struct pages are written: auto or one of those listed");

static int memmap_threads_set(const char *value, const struct kernel_param *param)
{
	return param_set_uint_minmax(value, param, MEMMAP_THREADS_AUTO, MEMMAP_THREADS_MAX);
}

static const struct kernel_param_ops memmap_threads_ops = {
	.set = memmap_threads_set,
	.get = param_get_uint,
};

module_param_cb(threads, &memmap_threads_ops, &memmap_knobs.threads, 0644);
MODULE_PARM_DESC(threads, "CPUs that share the work, 1 to 16; 0: those of the node");
