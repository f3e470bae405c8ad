// SPDX-License-Identifier: GPL-2.0
/*
 * Run a command while migrate_pages(2) moves the memory of every process to the other of two nodes and back, and the
 * kernel compacts memory, which also moves the page cache.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <numa.h>

#include "sysfs.h"
#include "util.h"

static uint64_t pages_moved(void)
{
	return sysfs_counter("/proc/vmstat", "pgmigrate_success");
}

/* The call fails for a kernel thread, and for a process that has just ended. */
static void move_processes(struct bitmask *from, struct bitmask *to)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		die(EXIT_FAILED, "/proc: %m");
	while ((entry = readdir(proc))) {
		int pid = atoi(entry->d_name);

		if (pid > 0)
			numa_migrate_pages(pid, from, to);
	}
	closedir(proc);
}

/* The wait status of the command. */
static int move_until_end(pid_t command)
{
	struct bitmask *nodes[] = { numa_parse_nodestring("0"), numa_parse_nodestring("1") };
	unsigned int round;
	int status;

	if (!nodes[0] || !nodes[1])
		die(EXIT_MISSING, "this machine has no nodes 0 and 1");
	for (round = 0;; round++) {
		pid_t ended;

		move_processes(nodes[round % 2], nodes[(round + 1) % 2]);
		sysfs_write("/proc/sys/vm/compact_memory", "1");
		ended = waitpid(command, &status, WNOHANG);
		if (ended < 0)
			die(EXIT_FAILED, "waitpid: %m");
		if (ended)
			return status;
		/* The command also needs the locks that a migration takes. */
		sleep_ns(10000000);
	}
}

int main(int argc, char **argv)
{
	uint64_t before = pages_moved();
	uint64_t moved;
	pid_t command;
	int status;

	if (argc < 2)
		die(EXIT_USAGE, "usage: moveall COMMAND [ARGUMENT]...");
	if (numa_available() < 0)
		die(EXIT_MISSING, "this kernel has no NUMA");
	command = fork();
	if (command < 0)
		die(EXIT_FAILED, "fork: %m");
	if (!command) {
		execvp(argv[1], argv + 1);
		die(EXIT_USAGE, "%s: %m", argv[1]);
	}
	status = move_until_end(command);
	moved = pages_moved() - before;
	fprintf(stderr, "moveall: %llu pages moved\n", (unsigned long long)moved);
	if (!WIFEXITED(status))
		die(EXIT_FAILED, "%s died of signal %d", argv[1], WTERMSIG(status));
	if (!WEXITSTATUS(status) && !moved)
		die(EXIT_FAILED, "no page moved");
	return WEXITSTATUS(status);
}
