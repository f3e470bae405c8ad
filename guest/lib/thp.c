// SPDX-License-Identifier: GPL-2.0
#include "thp.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stamp.h"
#include "sysfile.h"

static bool set_size(const char *size_dir, bool shmem, const char *value)
{
	char path[sizeof(THP_DIR) + 300];

	snprintf(path, sizeof(path), THP_DIR "/%s/%s", size_dir, shmem ? "shmem_enabled" : "enabled");
	return sysfile_set_until_exit(path, value);
}

static bool forbid_all(bool shmem)
{
	DIR *dir = opendir(THP_DIR);
	struct dirent *entry;
	bool done = true;

	if (!dir)
		return false;
	while (done && (entry = readdir(dir)))
		/* ENOENT: not every size exists for both kinds of memory. */
		if (!strncmp(entry->d_name, "hugepages-", 10))
			done = set_size(entry->d_name, shmem, "never") || errno == ENOENT;
	closedir(dir);
	return done;
}

bool thp_allow(size_t folio_bytes, bool shmem)
{
	char size_dir[64];

	snprintf(size_dir, sizeof(size_dir), "hugepages-%zukB", folio_bytes / 1024);
	return set_size(size_dir, shmem, shmem ? "advise" : "madvise");
}

bool thp_allow_only(size_t folio_bytes, bool shmem)
{
	/* Single pages come by MADV_NOHUGEPAGE, whatever the machine allows. */
	if (folio_bytes == PAGE_BYTES)
		return true;
	return forbid_all(shmem) && thp_allow(folio_bytes, shmem);
}
