// SPDX-License-Identifier: GPL-2.0
/*
 * Allocates blocks of pages on one node, in any kernel, and keeps them until they are freed. Files in the
 * debugfs directory alloc_blocks:
 *
 *   allocate  "NODE ORDER COUNT": tries COUNT times to allocate a block
 *   take      the same, but only blocks that are free as they are, without compaction or reclaim; the first
 *             failure ends it
 *   forget    "NODE": the next compaction of the node's zones skips no part of them
 *   result    "GOT NS": how many blocks the last write to allocate or take got, and how long it took
 *   free      any write frees all blocks
 *
 * The task that writes allocates, so the time of direct compaction is its own. A write ends early, with the
 * blocks so far, if the task gets a fatal signal.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

/*
 * As a page fault allocates a folio:
 * - Movable. For other types asynchronous compaction of an order below a pageblock scans none of the blocks
 *   that are full of user memory.
 * - On this node only, or the allocator takes the blocks of another one.
 * - __GFP_RETRY_MAYFAIL: for an order above 3 asynchronous compaction first, synchronous compaction if that
 *   failed, and NULL if neither made a block. With __GFP_NORETRY the allocation would fail after the first.
 * - kswapd is not woken: it wakes kcompactd, whose work on another CPU no clock here would count.
 */
#define ALLOC_BLOCKS_ANY ((GFP_HIGHUSER_MOVABLE & ~__GFP_KSWAPD_RECLAIM) | __GFP_THISNODE | __GFP_COMP | \
			  __GFP_NOWARN)
#define ALLOC_BLOCKS_MADE (ALLOC_BLOCKS_ANY | __GFP_RETRY_MAYFAIL)
#define ALLOC_BLOCKS_FREE ((ALLOC_BLOCKS_ANY & ~__GFP_DIRECT_RECLAIM) | __GFP_NOMEMALLOC)
/* COMPACT_MAX_DEFER_SHIFT of mm/compaction.c */
#define ALLOC_BLOCKS_MAX_DEFER_SHIFT 6

static DEFINE_MUTEX(alloc_blocks_lock);
static LIST_HEAD(alloc_blocks_list);
static unsigned long alloc_blocks_got;
static u64 alloc_blocks_ns;

/* The caller holds the lock. */
static void alloc_blocks_allocate(int nid, unsigned int order, unsigned long count, gfp_t gfp)
{
	u64 began_ns = ktime_get_ns();
	unsigned long got = 0;

	while (count-- && !fatal_signal_pending(current)) {
		struct page *page = alloc_pages_node(nid, gfp, order);

		cond_resched();
		if (page) {
			list_add(&page->lru, &alloc_blocks_list);
			got++;
		} else if (!(gfp & __GFP_DIRECT_RECLAIM)) {
			break;
		}
	}
	alloc_blocks_ns = ktime_get_ns() - began_ns;
	alloc_blocks_got = got;
}

static void alloc_blocks_free_all(void)
{
	struct page *page, *next;

	mutex_lock(&alloc_blocks_lock);
	list_for_each_entry_safe(page, next, &alloc_blocks_list, lru) {
		list_del(&page->lru);
		__free_pages(page, compound_order(page));
		cond_resched();
	}
	mutex_unlock(&alloc_blocks_lock);
}

static ssize_t alloc_blocks_write(const char __user *from, size_t size, gfp_t gfp)
{
	unsigned int nid, order;
	unsigned long count;
	char text[64];

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = '\0';
	if (sscanf(text, "%u %u %lu", &nid, &order, &count) != 3)
		return -EINVAL;
	if (nid >= MAX_NUMNODES || !node_online(nid) || !order || order > MAX_PAGE_ORDER)
		return -EINVAL;
	if (mutex_lock_interruptible(&alloc_blocks_lock))
		return -EINTR;
	alloc_blocks_allocate(nid, order, count, gfp);
	mutex_unlock(&alloc_blocks_lock);
	return size;
}

static ssize_t allocate_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	return alloc_blocks_write(from, size, ALLOC_BLOCKS_MADE);
}

static ssize_t take_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	return alloc_blocks_write(from, size, ALLOC_BLOCKS_FREE);
}

/*
 * As if a scan to the end of each zone had failed, and compaction had then been deferred for as long as it ever is: it
 * begins by forgetting which blocks it was to skip. A zone that is not compacted then is deferred for as long after its
 * next failure.
 */
static void alloc_blocks_forget(unsigned int nid)
{
	unsigned int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		struct zone *zone = &NODE_DATA(nid)->node_zones[i];

		zone->compact_blockskip_flush = true;
		zone->compact_order_failed = 0;
		zone->compact_defer_shift = ALLOC_BLOCKS_MAX_DEFER_SHIFT;
		zone->compact_considered = 1U << ALLOC_BLOCKS_MAX_DEFER_SHIFT;
	}
}

static ssize_t forget_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned int nid;
	int err = kstrtouint_from_user(from, size, 10, &nid);

	if (err)
		return err;
	if (nid >= MAX_NUMNODES || !node_online(nid))
		return -EINVAL;
	alloc_blocks_forget(nid);
	return size;
}

static ssize_t free_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	alloc_blocks_free_all();
	return size;
}

static ssize_t result_read(struct file *file, char __user *to, size_t size, loff_t *at)
{
	char text[64];
	int length;

	mutex_lock(&alloc_blocks_lock);
	length = scnprintf(text, sizeof(text), "%lu %llu\n", alloc_blocks_got, alloc_blocks_ns);
	mutex_unlock(&alloc_blocks_lock);
	return simple_read_from_buffer(to, size, at, text, length);
}

static const struct file_operations allocate_fops = { .owner = THIS_MODULE, .write = allocate_write };
static const struct file_operations take_fops = { .owner = THIS_MODULE, .write = take_write };
static const struct file_operations forget_fops = { .owner = THIS_MODULE, .write = forget_write };
static const struct file_operations free_fops = { .owner = THIS_MODULE, .write = free_write };
static const struct file_operations result_fops = { .owner = THIS_MODULE, .read = result_read };

static struct dentry *alloc_blocks_dir;

static int __init alloc_blocks_start(void)
{
	alloc_blocks_dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("allocate", 0200, alloc_blocks_dir, NULL, &allocate_fops);
	debugfs_create_file("take", 0200, alloc_blocks_dir, NULL, &take_fops);
	debugfs_create_file("forget", 0200, alloc_blocks_dir, NULL, &forget_fops);
	debugfs_create_file("free", 0200, alloc_blocks_dir, NULL, &free_fops);
	debugfs_create_file("result", 0400, alloc_blocks_dir, NULL, &result_fops);
	return 0;
}

static void __exit alloc_blocks_stop(void)
{
	debugfs_remove(alloc_blocks_dir);
	alloc_blocks_free_all();
}

module_init(alloc_blocks_start);
module_exit(alloc_blocks_stop);
MODULE_DESCRIPTION("Allocates blocks of pages, to time compaction");
MODULE_LICENSE("GPL");
