// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Files of mtcopy
 *
 * The files of /sys/kernel/mm/migration/mtcopy/, as described in
 * Documentation/ABI/testing/sysfs-kernel-mm-migration. A write may happen at
 * any time: a batch reads each knob once. No lock is needed.
 */

#include <linux/ferry_sysfs.h>

#include "internal.h"

atomic64_t mtcopy_helper_ns;	/* time that helpers copied */

static const char * const mtcopy_nontemporal_words[] = {
	[MTCOPY_NEVER] = "never",
	[MTCOPY_ALWAYS] = "always",
	[MTCOPY_AUTO] = "auto",
	NULL,
};

static struct attribute *mtcopy_attrs[] = {
	FERRY_KNOB_NUMBER(threads, &mtcopy_tuning.threads,
			  1, MTCOPY_MAX_THREADS, NULL),
	FERRY_KNOB_WORDS(nontemporal, &mtcopy_tuning.nontemporal,
			 mtcopy_nontemporal_words, NULL),
	FERRY_COUNTER(helper_ns, &mtcopy_helper_ns),
	NULL,
};

static const struct attribute_group mtcopy_group = {
	.attrs = mtcopy_attrs,
};

const struct attribute_group *mtcopy_groups[] = {
	&mtcopy_group,
	NULL,
};
