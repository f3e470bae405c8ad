/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Threads that read and write random pages of memory. A request is an access to several pages, one after the other, as
 * a look-up in a store makes them, and its time is measured. With MEMORY_HUGETLB the memory is not what moves, and each
 * access to a page is a fault.
 */
#ifndef STALLBENCH_TOUCH_H
#define STALLBENCH_TOUCH_H

#include "histogram.h"
#include "options.h"

struct touched {
	char *base;
	int fd;			/* of the file that base maps, or -1 */
	bool waits;
	bool faults;
	size_t pages;
	unsigned int threads;
	unsigned int request_pages;
};

/* Memory on the first node, known to be all zeros. Replaces that of an earlier call. */
void touch_open(struct touched *touched, const struct options *options);

/* Start the threads. */
void touch_start(const struct touched *touched);

/*
 * End them, and add the times of their requests to *histogram: with `waits`, of those in which the thread slept.
 * Returns the number of all requests. Ends the program with EXIT_FAILED if a thread did not read what it had
 * written before.
 */
uint64_t touch_stop(const struct touched *touched, struct histogram *histogram);

#endif
