// SPDX-License-Identifier: GPL-2.0
/*
 * Times memmap_init_zone_device() in any kernel, and calls it as device drivers do.
 *
 * While the module is loaded, a return probe times each call and prints it:
 *   memmap_watch: {"event": "init", "pages": 26214400, "ns": 91234567}
 * With rounds= the module also maps and unmaps a range of @gib GiB of address space, which takes no
 * memory but the struct pages, and prints each round:
 *   memmap_watch: {"event": "remap", "type": "private", "order": 0, "round": 0, ...}
 * "memmap_kib" is the free memory that mapping took: less than a struct page for each page if the
 * vmemmap of compound pages is deduplicated, as CXL's and devdax's in memory is (type=generic order=9).
 * With faults=1, every second call runs with injected allocation failures, and nothing around it does.
 * Parameters: type=private|coherent|fsdax|generic, order=, gib=, rounds=, nid=, faults=.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/ioport.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static char *type = "private";
module_param(type, charp, 0444);
MODULE_PARM_DESC(type, "private, coherent, fsdax or generic");
static unsigned int order;
module_param(order, uint, 0444);
MODULE_PARM_DESC(order, "of the compound pages");
static unsigned int gib = 1;
module_param(gib, uint, 0444);
MODULE_PARM_DESC(gib, "address space to map, in GiB");
static unsigned int rounds;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often to map and unmap it; 0: only watch");
static bool faults;
module_param(faults, bool, 0444);
MODULE_PARM_DESC(faults, "let fault injection see every second initialisation");
static int nid;
module_param(nid, int, 0444);
MODULE_PARM_DESC(nid, "node of the struct pages");

struct watch_call {
	u64 began_ns;
	unsigned long pages;
};

/* Duration of the last call; the task that made the call writes and reads it. */
static u64 watch_init_ns;
static atomic_t watch_calls;

/* Make the task filter of the fault injectors match this task, or not. */
static void watch_inject(bool on)
{
#ifdef CONFIG_FAULT_INJECTION
	current->make_it_fail = on;
#endif
}
NOKPROBE_SYMBOL(watch_inject);

static int watch_entry(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct watch_call *call = (void *)instance->data;

	watch_inject(faults && atomic_inc_return(&watch_calls) % 2);
	call->pages = regs_get_kernel_argument(regs, 2);
	call->began_ns = ktime_get_mono_fast_ns();
	return 0;
}
NOKPROBE_SYMBOL(watch_entry);

static int watch_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct watch_call *call = (void *)instance->data;

	watch_init_ns = ktime_get_mono_fast_ns() - call->began_ns;
	watch_inject(false);
	pr_info("{\"event\": \"init\", \"pages\": %lu, \"ns\": %llu}\n", call->pages, watch_init_ns);
	return 0;
}
NOKPROBE_SYMBOL(watch_return);

static struct kretprobe watch_probe = {
	.kp.symbol_name = "memmap_init_zone_device",
	.entry_handler = watch_entry,
	.handler = watch_return,
	.data_size = sizeof(struct watch_call),
	.maxactive = 16,
};

static vm_fault_t watch_migrate_to_ram(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static void watch_folio_free(struct folio *folio)
{
}

static const struct dev_pagemap_ops watch_ops = {
	.migrate_to_ram = watch_migrate_to_ram,
	.folio_free = watch_folio_free,
};

static struct dev_pagemap watch_pgmap;

static unsigned long watch_free_kib(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return info.freeram << (PAGE_SHIFT - 10);
}

static int watch_round(unsigned int round)
{
	unsigned long free_kib = watch_free_kib();
	u64 remap_ns, unmap_ns;
	long memmap_kib;
	void *address;

	watch_init_ns = 0;
	remap_ns = ktime_get_mono_fast_ns();
	address = memremap_pages(&watch_pgmap, nid);
	remap_ns = ktime_get_mono_fast_ns() - remap_ns;
	if (IS_ERR(address)) {
		pr_info("{\"event\": \"failed\", \"round\": %u, \"error\": %ld}\n", round,
			PTR_ERR(address));
		return PTR_ERR(address);
	}
	memmap_kib = free_kib - watch_free_kib();
	unmap_ns = ktime_get_mono_fast_ns();
	memunmap_pages(&watch_pgmap);
	unmap_ns = ktime_get_mono_fast_ns() - unmap_ns;
	pr_info("{\"event\": \"remap\", \"type\": \"%s\", \"order\": %u, \"gib\": %u, \"round\": %u, \"remap_ns\": %llu, \"init_ns\": %llu, \"unmap_ns\": %llu, \"memmap_kib\": %ld}\n",
		type, order, gib, round, remap_ns, watch_init_ns, unmap_ns, memmap_kib);
	return 0;
}

static int watch_type(void)
{
	static const char * const names[] = {
		[MEMORY_DEVICE_PRIVATE] = "private",
		[MEMORY_DEVICE_COHERENT] = "coherent",
		[MEMORY_DEVICE_FS_DAX] = "fsdax",
		[MEMORY_DEVICE_GENERIC] = "generic",
	};
	int i;

	for (i = MEMORY_DEVICE_PRIVATE; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], type))
			return i;
	return -EINVAL;
}

/* Run all rounds, even if one fails: the reader of the log counts them. */
static int watch_rounds(void)
{
	resource_size_t size = (resource_size_t)gib << 30, align = PAGE_SIZE << order;
	struct resource *resource;
	unsigned int round;
	int kind = watch_type();

	if (kind < 0)
		return kind;
	/* Compound pages begin at a multiple of their size. */
	resource = request_free_mem_region(&iomem_resource, size + align, "memmap_watch");
	if (IS_ERR(resource))
		return PTR_ERR(resource);
	watch_pgmap.type = kind;
	watch_pgmap.vmemmap_shift = order;
	watch_pgmap.range.start = ALIGN(resource->start, align);
	watch_pgmap.range.end = watch_pgmap.range.start + size - 1;
	watch_pgmap.nr_range = 1;
	watch_pgmap.ops = &watch_ops;
	watch_pgmap.owner = &watch_pgmap;
	for (round = 0; round < rounds; round++)
		watch_round(round);
	release_mem_region(resource->start, resource_size(resource));
	return 0;
}

static int __init watch_start(void)
{
	int error = register_kretprobe(&watch_probe);

	if (error)
		return error;
	if (rounds)
		error = watch_rounds();
	if (error)
		unregister_kretprobe(&watch_probe);
	return error;
}

static void __exit watch_stop(void)
{
	unregister_kretprobe(&watch_probe);
}

module_init(watch_start);
module_exit(watch_stop);
MODULE_DESCRIPTION("Times the initialisation of device memory maps");
MODULE_LICENSE("GPL");
