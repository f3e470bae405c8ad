// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Clients: callers that ask for a migrator
 *
 * The operator decides which migrator copies for a reason of migration. A
 * caller inside the kernel may know better: a driver of CXL or GPU memory has
 * an engine beside that memory, and where memory is encrypted per owner only
 * certain hardware can copy it at all. Such a caller opens a client, and
 * migrates by ferry_client_migrate() instead of migrate_pages().
 *
 * The migrator of a client copies whatever is selected, and however small a
 * batch is. If it does not copy a folio, the move phase does; or the folio
 * fails to migrate, if the client requires the migrator. Then neither an early
 * retry nor a kind of folio that is not eligible is copied by the CPU.
 *
 * ferry_client_migrate() gives migrate_pages() callbacks of its own, which call
 * those of the caller. The copy phase recognises the client by them, so that
 * a migration of reclaim or compaction on behalf of an allocation in the same
 * task is none of the client's.
 *
 * An open client holds a reference to the migrator, as a selection does, and
 * keeps the static key on that mm/migrate.c tests.
 *
 * Locking: ferry_mutex, to open and to close.
 */

#include <linux/err.h>
#include <linux/export.h>
#include <linux/migrate.h>
#include <linux/slab.h>

#include "internal.h"

/**
 * struct ferry_client_call - a call of ferry_client_migrate()
 * @client:	the client
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 */
struct ferry_client_call {
	const struct ferry_client *client;
	new_folio_t *get_new_folio;
	free_folio_t *put_new_folio;
	unsigned long private;
};

static struct folio *ferry_client_alloc(struct folio *src,
					unsigned long private)
{
	struct ferry_client_call *call = (void *)private;

	return call->get_new_folio(src, call->private);
}

static void ferry_client_free(struct folio *dst, unsigned long private)
{
	struct ferry_client_call *call = (void *)private;

	call->put_new_folio(dst, call->private);
}

/**
 * ferry_client_of() - the client that a call of migrate_pages() is for
 * @get_new_folio: its first callback
 * @private:	the argument of that
 *
 * Context: any.
 * Return: the client, or NULL.
 */
const struct ferry_client *ferry_client_of(new_folio_t get_new_folio,
					   unsigned long private)
{
	if (get_new_folio != ferry_client_alloc)
		return NULL;
	return ((struct ferry_client_call *)private)->client;
}

/**
 * ferry_client_open() - prepare to migrate by a certain migrator
 * @migrator:	its name
 * @required:	folios that it does not copy must not migrate
 *
 * Context: process context. Takes ferry_mutex.
 * Return: a client for ferry_client_close(), or an ERR_PTR(): -ENOENT if no
 * such migrator is registered, -ENODEV if its module is going away, -ENOMEM, or
 * an error of the migrator's enable().
 */
struct ferry_client *ferry_client_open(const char *migrator, bool required)
{
	struct ferry_client *client = kzalloc_obj(*client);
	int err;

	if (!client)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&ferry_mutex);
	client->entry = ferry_find(migrator);
	client->required = required;
	err = client->entry ? ferry_batches_alloc() : -ENOENT;
	if (!err)
		err = ferry_entry_get(client->entry);
	if (!err)
		ferry_clients_add(1);
	mutex_unlock(&ferry_mutex);
	if (!err)
		return client;
	kfree(client);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(ferry_client_open);

/**
 * ferry_client_close() - end a client
 * @client: from ferry_client_open(); no call of ferry_client_migrate() is left
 *
 * Context: process context. Takes ferry_mutex.
 */
void ferry_client_close(struct ferry_client *client)
{
	mutex_lock(&ferry_mutex);
	ferry_clients_add(-1);
	ferry_entry_put(client->entry);
	mutex_unlock(&ferry_mutex);
	kfree(client);
}
EXPORT_SYMBOL_GPL(ferry_client_close);

/**
 * ferry_client_migrate() - migrate folios by the migrator of a client
 * @client:	the client
 * @from:	folios, as for migrate_pages()
 * @get_new_folio: allocates a destination
 * @put_new_folio: frees it, or NULL
 * @private:	argument of both
 * @mode:	mode of the migration
 * @reason:	its reason, not MR_COMPACTION
 * @ret_succeeded: receives the number of base pages that moved, or NULL
 *
 * Context: as migrate_pages().
 * Return: as migrate_pages(), -EINVAL for MR_COMPACTION.
 */
int ferry_client_migrate(const struct ferry_client *client,
			 struct list_head *from, new_folio_t get_new_folio,
			 free_folio_t put_new_folio, unsigned long private,
			 enum migrate_mode mode, enum migrate_reason reason,
			 unsigned int *ret_succeeded)
{
	struct ferry_client_call call = {
		.client = client,
		.get_new_folio = get_new_folio,
		.put_new_folio = put_new_folio,
		.private = private,
	};

	/* With that reason the argument is a struct compact_control. */
	if (WARN_ON_ONCE(reason == MR_COMPACTION))
		return -EINVAL;
	return migrate_pages(from, ferry_client_alloc,
			     put_new_folio ? ferry_client_free : NULL,
			     (unsigned long)&call, mode, reason,
			     ret_succeeded);
}
EXPORT_SYMBOL_GPL(ferry_client_migrate);
