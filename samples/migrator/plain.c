// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest complete migrator: it copies on the calling CPU, leaves folios
 * above a settable order to the move phase, and rejects compaction's batches.
 */

#include <linux/ferry.h>
#include <linux/ferry_sysfs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>

static unsigned long plain_max_order = MAX_PAGE_ORDER;

static int plain_copy(struct ferry_batch *batch)
{
	unsigned long max_order = READ_ONCE(plain_max_order);
	unsigned int i;

	batch->serial = true;
	if (batch->reason == MR_COMPACTION)
		return -EOPNOTSUPP;
	for (i = 0; i < batch->nr; i++) {
		struct ferry_pair *pair = &batch->pairs[i];

		if (folio_order(pair->src) > max_order)
			pair->status = -E2BIG;
		else
			pair->status = folio_mc_copy(pair->dst, pair->src);
		cond_resched();
	}
	return 0;
}

static struct attribute *plain_attrs[] = {
	FERRY_KNOB_NUMBER(max_order, &plain_max_order, 0, MAX_PAGE_ORDER, NULL),
	NULL,
};
ATTRIBUTE_GROUPS(plain);

static const struct ferry_migrator plain = {
	.name = "plain",
	.owner = THIS_MODULE,
	.groups = plain_groups,
	.copy = plain_copy,
};

static int __init plain_init(void)
{
	return ferry_register(&plain);
}
module_init(plain_init);

static void __exit plain_exit(void)
{
	ferry_unregister(&plain);
}
module_exit(plain_exit);

MODULE_DESCRIPTION("The smallest migrator");
MODULE_LICENSE("GPL");
