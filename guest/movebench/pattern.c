// SPDX-License-Identifier: GPL-2.0
#include "pattern.h"

#include "folio.h"
#include "util.h"

static volatile uint64_t *word_at(const struct pattern *pattern, uint32_t page, uint32_t word)
{
	return (volatile uint64_t *)(pattern->base + page * PAGE_BYTES) + word;
}

static void check_word(const struct pattern *pattern, uint32_t page, uint32_t word)
{
	/* So many generations ago this word was stored, unless all words were stored since. */
	uint32_t age = (pattern->last - word) % PAGE_WORDS;
	uint32_t generation = age < pattern->last - pattern->whole ? pattern->last - age : pattern->whole;
	uint64_t expected = stamp_word(page, generation, word);
	uint64_t found = *word_at(pattern, page, word);
	char expected_text[80], found_text[80];

	if (found == expected)
		return;
	stamp_describe(expected, expected_text, sizeof(expected_text));
	stamp_describe(found, found_text, sizeof(found_text));
	die(EXIT_FAILED, "wrong byte in page %u at offset %zu: expected %s, found %s", page, word * sizeof(found),
	    expected_text, found_text);
}

static uint32_t pages(const struct pattern *pattern)
{
	return pattern->bytes / PAGE_BYTES;
}

void pattern_fill(struct pattern *pattern)
{
	pattern->whole = ++pattern->last;
	for (uint32_t page = 0; page < pages(pattern); page++)
		stamp_write(pattern->base + page * PAGE_BYTES, page, pattern->whole);
}

void pattern_check(const struct pattern *pattern)
{
	for (uint32_t page = 0; page < pages(pattern); page++)
		check_word(pattern, page, pattern->last % PAGE_WORDS);
}

void pattern_step(struct pattern *pattern)
{
	uint32_t next = pattern->last + 1;

	pattern_check(pattern);
	for (uint32_t page = 0; page < pages(pattern); page++) {
		/* This word is checked for the last time: a store hides what was there. */
		check_word(pattern, page, next % PAGE_WORDS);
		*word_at(pattern, page, next % PAGE_WORDS) = stamp_word(page, next, next % PAGE_WORDS);
	}
	pattern->last = next;
}

void pattern_verify(const struct pattern *pattern)
{
	for (uint32_t page = 0; page < pages(pattern); page++)
		for (uint32_t word = 0; word < PAGE_WORDS; word++)
			check_word(pattern, page, word);
}
