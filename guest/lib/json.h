/* SPDX-License-Identifier: GPL-2.0 */
/* One JSON object a line on stdout, built in memory so that threads never mix their lines. */
#ifndef GUEST_JSON_H
#define GUEST_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json {
	char text[8192];
	size_t used;
};

/* The prefix of every line: "" or, inside KTAP, "# ". */
extern const char *json_prefix;

void json_begin(struct json *json, const char *event);
void json_text(struct json *json, const char *key, const char *value);
void json_int(struct json *json, const char *key, int64_t value);
void json_flag(struct json *json, const char *key, bool value);
void json_end(struct json *json);

#endif
