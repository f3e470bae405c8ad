// SPDX-License-Identifier: GPL-2.0
#include "hugetlb.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "sysfs.h"

struct pool {
	char size[96];		/* the file of the folios that the node has */
	char free[96];		/* of those that are free */
};

static struct pool pool_of(int node, size_t folio_bytes)
{
	struct pool pool;
	char dir[72];

	snprintf(dir, sizeof(dir), "/sys/devices/system/node/node%d/hugepages/hugepages-%zukB", node,
		 folio_bytes / 1024);
	snprintf(pool.size, sizeof(pool.size), "%s/nr_hugepages", dir);
	snprintf(pool.free, sizeof(pool.free), "%s/free_hugepages", dir);
	return pool;
}

/* A reserve that the kernel made at boot is used as it is: later there may be no room for 1 GiB. */
static bool reserve(const struct pool *pool, size_t count)
{
	uint64_t free = sysfs_number(pool->free);
	char wanted[32];

	if (free >= count)
		return true;
	snprintf(wanted, sizeof(wanted), "%" PRIu64, sysfs_number(pool->size) + count - free);
	return sysfs_set_until_exit(pool->size, wanted) && sysfs_number(pool->free) >= count;
}

static void release(size_t folio_bytes, const int nodes[2])
{
	for (int i = 0; i < 2; i++)
		sysfs_restore(pool_of(nodes[i], folio_bytes).size);
}

char *hugetlb_map(size_t bytes, size_t folio_bytes, const int nodes[2])
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | __builtin_ctzl(folio_bytes) << MAP_HUGE_SHIFT;
	char *base = MAP_FAILED;
	bool reserved = true;

	for (int i = 0; i < 2 && reserved; i++) {
		struct pool pool = pool_of(nodes[i], folio_bytes);

		reserved = reserve(&pool, bytes / folio_bytes);
	}
	if (reserved)
		base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (base != MAP_FAILED)
		return base;
	release(folio_bytes, nodes);
	return NULL;
}

void hugetlb_unmap(char *base, size_t bytes, size_t folio_bytes, const int nodes[2])
{
	munmap(base, bytes);
	release(folio_bytes, nodes);
}
