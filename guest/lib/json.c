// SPDX-License-Identifier: GPL-2.0
#include "json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "util.h"

const char *json_prefix = "";

static void add(struct json *json, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct json *json, const char *format, ...)
{
	size_t room = sizeof(json->text) - json->used;
	va_list args;
	int wrote;

	va_start(args, format);
	wrote = vsnprintf(json->text + json->used, room, format, args);
	va_end(args);
	/* A parser would skip a line that is cut short, and the loss would go unnoticed. */
	if (wrote < 0 || (size_t)wrote >= room)
		die(EXIT_FAILED, "a line of output is longer than %zu bytes", sizeof(json->text));
	json->used += wrote;
}

static void add_string(struct json *json, const char *value)
{
	add(json, "\"");
	for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
		if (*c == '"' || *c == '\\')
			add(json, "\\%c", *c);
		else if (*c < 0x20 || *c >= 0x7f)
			/* Latin-1 keeps the output ASCII whatever bytes an argument holds. */
			add(json, "\\u%04x", *c);
		else
			add(json, "%c", *c);
	}
	add(json, "\"");
}

static void add_key(struct json *json, const char *key)
{
	add(json, "%s", json->used > 1 ? ", " : "");
	add_string(json, key);
	add(json, ": ");
}

void json_begin(struct json *json, const char *event)
{
	json->used = 0;
	add(json, "{");
	json_text(json, "event", event);
}

void json_text(struct json *json, const char *key, const char *value)
{
	add_key(json, key);
	add_string(json, value);
}

void json_int(struct json *json, const char *key, int64_t value)
{
	add_key(json, key);
	add(json, "%" PRId64, value);
}

void json_flag(struct json *json, const char *key, bool value)
{
	add_key(json, key);
	add(json, "%s", value ? "true" : "false");
}

void json_end(struct json *json)
{
	add(json, "}");
	printf("%s%s\n", json_prefix, json->text);
	/* A program that follows the run must see the line now, and a panic must not swallow it. */
	fflush(stdout);
}
