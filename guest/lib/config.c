// SPDX-License-Identifier: GPL-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "migration.h"
#include "sysfs.h"
#include "util.h"

#define DEBUGFS_DIR "/sys/kernel/debug"
#define DEBUGFS_PREFIX "debugfs:"

static void add_write(struct config *config, char *setting)
{
	char *equals = strchr(setting, '=');

	if (config->write_count == MAX_WRITES)
		die(EXIT_USAGE, "--config %s: more than %d settings", config->label, MAX_WRITES);
	if (!equals || equals == setting || !equals[1])
		die(EXIT_USAGE, "--config %s: '%s' is not FILE=VALUE", config->label, setting);
	*equals = '\0';
	/* A setting outside of the two directories is refused. */
	if (setting[0] == '/' || strstr(setting, ".."))
		die(EXIT_USAGE, "--config %s: '%s' is outside of " MIGRATION_DIR, config->label, setting);
	config->writes[config->write_count].path = setting;
	config->writes[config->write_count].value = equals + 1;
	config->write_count++;
}

static void config_parse(struct config *config, const char *text)
{
	size_t label = strcspn(text, ":");
	char *rest, *setting;

	if (!label || label >= sizeof(config->label) || strlen(text) >= sizeof(config->text))
		die(EXIT_USAGE, "--config: '%s' has no label, or is too long", text);
	*config = (struct config){ 0 };
	memcpy(config->label, text, label);
	strcpy(config->text, text[label] ? text + label + 1 : "");
	rest = config->text;
	while ((setting = strtok_r(rest, ",", &rest)))
		add_write(config, setting);
}

void config_list_add(void *data, const char *text)
{
	struct config_list *list = data;
	struct config *config = &list->all[list->count];

	if (list->count == MAX_CONFIGS)
		die(EXIT_USAGE, "--config: more than %d", MAX_CONFIGS);
	config_parse(config, text);
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->all[i].label, config->label))
			die(EXIT_USAGE, "--config: label '%s' is used twice", config->label);
	list->count++;
}

void config_list_try(const struct config_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		config_apply(&list->all[i]);
}

static bool has_write(const struct config *config, const char *file)
{
	for (size_t i = 0; i < config->write_count; i++)
		if (!strcmp(config->writes[i].path, file))
			return true;
	return false;
}

static void path_of(const char *file, char *path, size_t size)
{
	size_t prefix = strlen(DEBUGFS_PREFIX);

	if (!strncmp(file, DEBUGFS_PREFIX, prefix))
		snprintf(path, size, DEBUGFS_DIR "/%s", file + prefix);
	else
		snprintf(path, size, MIGRATION_DIR "/%s", file);
}

void config_apply(const struct config *config)
{
	static const struct config *last;
	char path[sizeof(MIGRATION_DIR) + sizeof(config->text) + 1];

	for (size_t i = 0; i < config->write_count; i++) {
		const char *value = config->writes[i].value;

		path_of(config->writes[i].path, path, sizeof(path));
		if (sysfs_set_until_exit(path, value))
			continue;
		if (errno == ENOENT)
			die(EXIT_MISSING, "--config %s: no %s (a kernel without the feature, or a module not loaded)",
			    config->label, path);
		die(errno == EINVAL ? EXIT_USAGE : EXIT_FAILED, "--config %s: %s refuses '%s': %m", config->label,
		    path, value);
	}
	/* Last: a migrator that is not selected any more does not obey them. */
	for (size_t i = 0; last && i < last->write_count; i++)
		if (!has_write(config, last->writes[i].path)) {
			path_of(last->writes[i].path, path, sizeof(path));
			sysfs_restore(path);
		}
	last = config;
}
