// SPDX-License-Identifier: GPL-2.0
/*
 * Select migrators under load and, with --module, load, select, deselect and unload a module; enable and disable runs.
 * Try values and actions that the kernel must refuse, and check that they change nothing.
 */
#include "stressors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../report.h"
#include "../span.h"
#include "migration.h"
#include "sysfs.h"

#define MOST_THREADS 64
#define UNLOAD_NS UINT64_C(120000000000)	/* limit for batches in flight on a slow debug kernel */
#define BATCH_NS UINT64_C(100000000)		/* time for a batch or two on such a kernel */
#define FIRST_BATCH_NS UINT64_C(60000000000)	/* the run needs one at least */

static bool module_load(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool loaded;
	int error;

	if (fd < 0)
		return false;
	loaded = !syscall(SYS_finit_module, fd, "", 0);
	error = errno;
	close(fd);
	errno = error;
	return loaded;
}

static bool module_unload(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[64];

	/* The kernel's name of a module is its file's, without suffix and with _ for -. */
	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path);
	name[strcspn(name, ".")] = '\0';
	for (char *c = name; *c; c++)
		if (*c == '-')
			*c = '_';
	return !syscall(SYS_delete_module, name, O_NONBLOCK);
}

static uint64_t moved_before;

static const char *prepare(struct test_memory *mem)
{
	struct migrators migrators;

	(void)mem;
	if (!migrators_list(&migrators))
		die(EXIT_MISSING, "--switch: no " MIGRATION_DIR "/migrator: %m (CONFIG_FERRY)");
	moved_before = moved_in_runs();
	return NULL;
}

/* Select a migrator and check that it is selected; no other thread selects one. */
static bool select_and_check(struct test_memory *mem, const char *name)
{
	struct migrators now;

	if (!migrator_select(name)) {
		report_broken(mem, "switch", "cannot select '%s': %m", name);
		return false;
	}
	if (migrators_list(&now) && !strcmp(now.names[now.selected], name))
		return true;
	report_broken(mem, "switch", "selected '%s', but the selected one is '%s'", name, now.names[now.selected]);
	return false;
}

static void check_refused(struct test_memory *mem, const char *path, const char *value)
{
	char before[512], after[512];

	if (!sysfs_read_line(path, before, sizeof(before))) {
		report_broken(mem, "switch", "cannot read %s: %m", path);
		return;
	}
	if (sysfs_write(path, value))
		report_broken(mem, "switch", "%s accepts '%s'", path, value);
	else if (errno != EINVAL)
		report_broken(mem, "switch", "%s refuses '%s' with the wrong error: %m", path, value);
	sysfs_read_line(path, after, sizeof(after));
	if (strcmp(before, after))
		report_broken(mem, "switch", "%s changed from '%s' to '%s' by a refused value", path, before, after);
}

/* Change the number of threads, if the migrator has that setting. */
static void change_threads(struct worker *worker, const char *migrator, bool restore)
{
	char path[128], value[16];

	snprintf(path, sizeof(path), MIGRATION_DIR "/%s/threads", migrator);
	if (access(path, W_OK))
		return;
	snprintf(value, sizeof(value), "%u", 1 + worker_random(worker, MOST_THREADS));
	/* The settings of a module go with it, so there is nothing to restore. */
	if (!(restore ? sysfs_set_until_exit(path, value) : sysfs_write(path, value)))
		report_broken(worker->mem, "switch", "%s refuses '%s': %m", path, value);
	check_refused(worker->mem, path, "0");
	check_refused(worker->mem, path, "65");
}

static bool switch_migrator(struct worker *worker)
{
	struct migrators migrators;
	const char *name;

	if (!migrators_list(&migrators) || !migrators.count) {
		report_broken(worker->mem, "switch", "no migrator is listed");
		return false;
	}
	name = migrators.names[worker_random(worker, migrators.count)];
	change_threads(worker, name, true);
	check_refused(worker->mem, MIGRATION_DIR "/migrator", "no-such-migrator");
	return select_and_check(worker->mem, name);
}

/* Return the migrator that is listed now and was not before, or NULL. */
static const char *new_migrator(const struct migrators *before, struct migrators *now)
{
	if (!migrators_list(now))
		return NULL;
	for (size_t i = 0; i < now->count; i++)
		if (migrators_find(before, now->names[i]) < 0)
			return now->names[i];
	return NULL;
}

/* Unloading a module in use fails with EAGAIN or EBUSY. */
static bool in_use(int error)
{
	return error == EAGAIN || error == EBUSY;
}

static bool unload_when_idle(struct test_memory *mem, const char *path)
{
	uint64_t start = clock_ns();

	while (!module_unload(path)) {
		if (!in_use(errno) || clock_ns() - start > UNLOAD_NS) {
			report_broken(mem, "switch", "cannot unload %s, which is not selected: %m", path);
			return false;
		}
		sleep_ns(1000000);
	}
	return true;
}

static uint64_t stat_of(const char *migrator, const char *name)
{
	char path[128], value[32];

	snprintf(path, sizeof(path), MIGRATION_DIR "/stats/%s/%s", migrator, name);
	return sysfs_read_line(path, value, sizeof(value)) ? strtoull(value, NULL, 10) : 0;
}

/* Calls of the migrator: on a busy machine mtcopy rejects batches. */
static uint64_t batches_of(const char *migrator)
{
	return stat_of(migrator, "batches") + stat_of(migrator, "rejected");
}

/* Wait until the migrator was called for a batch; without one the unload would not be under load. */
static void wait_for_batch(struct worker *worker, const char *migrator)
{
	uint64_t before = batches_of(migrator), start = clock_ns();
	uint64_t limit = atomic_load(&worker->mem->switches_while_busy) ? BATCH_NS : FIRST_BATCH_NS;

	do {
		worker_pause(worker);
		if (batches_of(migrator) != before) {
			atomic_fetch_add(&worker->mem->switches_while_busy, 1);
			return;
		}
	} while (clock_ns() - start < limit);
}

static bool use_migrator(struct worker *worker, const char *migrator, const char *path)
{
	/* Change settings before the migrator is selected and while it copies. */
	change_threads(worker, migrator, false);
	if (!select_and_check(worker->mem, migrator))
		return false;
	wait_for_batch(worker, migrator);
	change_threads(worker, migrator, false);
	if (module_unload(path))
		report_broken(worker->mem, "switch", "%s can be unloaded while selected", path);
	else if (!in_use(errno))
		report_broken(worker->mem, "switch", "unloading %s while selected fails with the wrong error: %m",
			      path);
	worker_pause(worker);
	return select_and_check(worker->mem, worker_random(worker, 2) ? "off" : "kernel");
}

static bool load_and_unload(struct worker *worker)
{
	const char *path = worker->mem->options->module;
	struct migrators before, now;
	const char *migrator;

	if (!migrators_list(&before) || !module_load(path)) {
		report_broken(worker->mem, "switch", "cannot load %s: %m", path);
		return false;
	}
	migrator = new_migrator(&before, &now);
	if (!migrator)
		report_broken(worker->mem, "switch", "%s is loaded, but no new migrator is listed", path);
	else if (!use_migrator(worker, migrator, path))
		return false;
	if (!unload_when_idle(worker->mem, path))
		return false;
	if (new_migrator(&before, &now))
		report_broken(worker->mem, "switch", "%s is unloaded, but its migrator is listed", path);
	return true;
}

/* Enable runs or disable them, in turn, if the kernel has them. */
static void switch_runs(struct worker *worker)
{
	const char *path = MIGRATION_DIR "/runs";
	char now[16];

	if (!sysfs_read_line(path, now, sizeof(now)))
		return;
	if (!sysfs_set_until_exit(path, now[0] == '0' ? "1" : "0"))
		report_broken(worker->mem, "switch", "%s does not change from %s: %m", path, now);
	check_refused(worker->mem, path, "2");
}

static bool run_once(struct worker *worker)
{
	worker_pause(worker);
	switch_runs(worker);
	return worker->mem->options->module ? load_and_unload(worker) : switch_migrator(worker);
}

static void finish(struct test_memory *mem)
{
	if (mem->options->module && !atomic_load(&mem->switches_while_busy))
		report_broken(mem, "switch", "no load: the module's migrator was called for no batch");
	if (!access(MIGRATION_DIR "/runs", F_OK) && moved_in_runs() == moved_before)
		report_broken(mem, "switch", "no load: no page was moved in a run");
}

const struct stressor switch_stressor = {
	.name = "switch", .prepare = prepare, .run_once = run_once, .finish = finish, .eager = true,
};
