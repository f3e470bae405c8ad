// SPDX-License-Identifier: GPL-2.0
/* A breakpoint set by uprobes in code that has moved: whoever runs the code by an old TLB entry misses it. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util.h"

#define TRACING "/sys/kernel/tracing"
#define ANSWER 7	/* what the function returns */

#if defined(__x86_64__)
static const unsigned char code[] = { 0xb8, ANSWER, 0, 0, 0, 0xc3 };	/* mov $7, %eax; ret */
#elif defined(__aarch64__)
static const unsigned char code[] = { ANSWER << 5, 0, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 };	/* mov w0, #7; ret */
#else
static const unsigned char code[1];
#endif

static char path[256];
static int fd = -1;

static bool trace_write(const char *file, const char *text)
{
	char name[96];
	int to;
	bool done;

	snprintf(name, sizeof(name), TRACING "/%s", file);
	to = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	done = to >= 0 && write(to, text, strlen(text)) == (ssize_t)strlen(text);
	if (to >= 0)
		close(to);
	return done;
}

static void write_code(struct bed *bed)
{
	int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	if (to < 0 || ftruncate(to, PAGE_BYTES) || write(to, code, sizeof(code)) != sizeof(code))
		bed_skip(bed, "%s: %s", path, strerror(errno));
	close(to);
}

static void open_probe(struct bed *bed)
{
	bed_debugfs();
	if (sizeof(code) == 1 || access(TRACING "/uprobe_events", W_OK))
		bed_skip(bed, "no uprobes (CONFIG_UPROBE_EVENTS)");
	snprintf(path, sizeof(path), "%s/litmus-%d.code", bed->options->dir, (int)getpid());
	write_code(bed);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	bed->base = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bed->base == MAP_FAILED)
		die(EXIT_FAILED, "no address space: %m");
	bed->reader->calls = true;
}

/* Mapped anew, so that the page is the file's and not one with a breakpoint. */
static void map_code(struct bed *bed)
{
	if (mmap(bed->base, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		bed_skip(bed, "code of %s cannot be mapped: %s", path, strerror(errno));
}

static bool set_probe(struct bed *bed)
{
	char definition[sizeof(path) + 32];

	snprintf(definition, sizeof(definition), "p:litmus/code %s:0x0", path);
	if (trace_write("uprobe_events", definition) && trace_write("events/litmus/code/enable", "1"))
		return true;
	bed_broken(bed, "the probe cannot be set: %s", strerror(errno));
	return false;
}

static void remove_probe(void)
{
	trace_write("events/litmus/code/enable", "0");
	trace_write("uprobe_events", "-:litmus/code");
}

/* uprobe_profile: "  PATH  EVENT  HITS". */
static uint64_t hits(void)
{
	FILE *file = fopen(TRACING "/uprobe_profile", "re");
	char line[512], name[64];
	uint64_t count = 0, found = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*s %63s %" SCNu64, name, &count) == 2 && !strcmp(name, "code"))
			found = count;
	if (file)
		fclose(file);
	return found;
}

static bool call(struct bed *bed)
{
	reader_look(bed->reader, bed->base, 1);
	if (!bed->reader->sights[0].fault && bed->reader->sights[0].value == ANSWER)
		return true;
	bed_broken(bed, "the function does not return %d", ANSWER);
	return false;
}

static void round_probe(struct bed *bed)
{
	bool set;

	map_code(bed);
	call(bed);
	bed_move(bed);
	bed->report->deferred += bed->was_deferred;
	set = set_probe(bed);
	if (call(bed) && set && hits() != 1)
		bed_stale(bed, "round %" PRIu64 ": the reader ran past the breakpoint", bed->report->rounds);
	remove_probe();
	bed->report->acted += set;
}

static void close_probe(struct bed *bed)
{
	munmap(bed->base, PAGE_BYTES);
	close(fd);
	unlink(path);
}

const struct event probe_events[] = {
	{
		.name = "uprobe", .what = "a breakpoint set in code that the reader runs",
		.machine = true,
		.pages = 1, .deferred = 50, .acted = 100,
		.open = open_probe, .round = round_probe, .close = close_probe,
	},
	{ 0 }
};
