// SPDX-License-Identifier: GPL-2.0
#include "pattern.h"

#include "folio.h"
#include "util.h"

static uint64_t expected_word(const struct pattern *rolling, uint32_t page, uint32_t word)
{
	/* How many generations ago this word was stored, unless all words were stored since. */
	uint32_t age = (rolling->last - word) % PAGE_WORDS;
	uint32_t generation = age < rolling->last - rolling->whole ? rolling->last - age : rolling->whole;

	return stamp_word(page, generation, word);
}

static volatile uint64_t *word_at(const struct pattern *rolling, uint32_t page, uint32_t word)
{
	return (volatile uint64_t *)(rolling->base + page * PAGE_BYTES) + word;
}

static void check_word(const struct pattern *rolling, uint32_t page, uint32_t word)
{
	uint64_t expected = expected_word(rolling, page, word);
	uint64_t found = *word_at(rolling, page, word);
	char expected_text[80], found_text[80];

	if (found == expected)
		return;
	stamp_describe(expected, expected_text, sizeof(expected_text));
	stamp_describe(found, found_text, sizeof(found_text));
	die(EXIT_FAILED, "wrong byte in page %u at offset %zu: expected %s, found %s",
	     page, word * sizeof(found), expected_text, found_text);
}

static uint32_t pages(const struct pattern *rolling)
{
	return rolling->bytes / PAGE_BYTES;
}

void pattern_fill(struct pattern *rolling)
{
	rolling->whole = ++rolling->last;
	for (uint32_t page = 0; page < pages(rolling); page++)
		stamp_write(rolling->base + page * PAGE_BYTES, page, rolling->whole);
}

void pattern_check(const struct pattern *rolling)
{
	for (uint32_t page = 0; page < pages(rolling); page++)
		check_word(rolling, page, rolling->last % PAGE_WORDS);
}

void pattern_step(struct pattern *rolling)
{
	uint32_t next = rolling->last + 1;

	pattern_check(rolling);
	for (uint32_t page = 0; page < pages(rolling); page++)
		*word_at(rolling, page, next % PAGE_WORDS) = stamp_word(page, next, next % PAGE_WORDS);
	rolling->last = next;
}

void pattern_verify(const struct pattern *rolling)
{
	for (uint32_t page = 0; page < pages(rolling); page++)
		for (uint32_t word = 0; word < PAGE_WORDS; word++)
			check_word(rolling, page, word);
}
