// SPDX-License-Identifier: GPL-2.0
/* A uprobe set in code that has moved: a CPU that runs the code through an old TLB entry misses the breakpoint. */
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
#define RETURNED 7

#if defined(__x86_64__)
static const unsigned char code[] = { 0xb8, RETURNED, 0, 0, 0, 0xc3 };	/* mov $7, %eax; ret */
#elif defined(__aarch64__)
static const unsigned char code[] = { RETURNED << 5, 0, 0x80, 0x52, 0xc0, 0x03, 0x5f, 0xd6 };	/* mov w0, #7; ret */
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

static void fixture_setup_uprobe(struct fixture *fx)
{
	mount_debugfs();
	if (sizeof(code) == 1 || access(TRACING "/uprobe_events", W_OK))
		test_skip(fx, "no uprobes (CONFIG_UPROBE_EVENTS)");
	snprintf(path, sizeof(path), "%s/stale_tlb-%d.code", fx->options->dir, (int)getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd < 0 || ftruncate(fd, PAGE_BYTES) || write(fd, code, sizeof(code)) != sizeof(code))
		test_skip(fx, "%s: %s", path, strerror(errno));
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fx->base = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fx->base == MAP_FAILED)
		die(EXIT_FAILED, "no address space: %m");
	fx->reader->calls = true;
}

static bool set_uprobe(struct fixture *fx)
{
	char definition[sizeof(path) + 32];

	snprintf(definition, sizeof(definition), "p:stale_tlb/code %s:0x0", path);
	if (trace_write("uprobe_events", definition) && trace_write("events/stale_tlb/code/enable", "1"))
		return true;
	test_error(fx, "cannot set the uprobe: %s", strerror(errno));
	return false;
}

/* The hits that uprobe_profile counts, in lines of "  PATH  EVENT  HITS". */
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

static bool call_code(struct fixture *fx)
{
	reader_sample(fx->reader, fx->base, 1);
	if (!fx->reader->results[0].fault && fx->reader->results[0].value == RETURNED)
		return true;
	test_error(fx, "the function does not return %d", RETURNED);
	return false;
}

static void run_uprobe(struct fixture *fx)
{
	bool set;

	/* Map the file's page again, in place of the copy that holds the last breakpoint. */
	if (mmap(fx->base, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		test_skip(fx, "cannot map code of %s: %s", path, strerror(errno));
	call_code(fx);
	fixture_move(fx);
	fx->report->deferred += fx->was_deferred;
	set = set_uprobe(fx);
	if (call_code(fx) && set && hits() != 1)
		test_stale(fx, "the reader ran past the breakpoint");
	trace_write("events/stale_tlb/code/enable", "0");
	trace_write("uprobe_events", "-:stale_tlb/code");
	fx->report->triggered += set;
}

static void fixture_teardown_uprobe(struct fixture *fx)
{
	munmap(fx->base, PAGE_BYTES);
	close(fd);
	unlink(path);
}

const struct test uprobe_tests[] = {
	{
		.name = "uprobe", .description = "a uprobe is set in code that the reader calls",
		.machine = true, .pages = 1, .min_deferred = 50, .min_triggered = 100,
		.fixture_setup = fixture_setup_uprobe, .fixture_teardown = fixture_teardown_uprobe,
		.run_round = run_uprobe,
	},
	{ 0 }
};
