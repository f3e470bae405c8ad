// SPDX-License-Identifier: GPL-2.0
#include "rolling.h"

#include "quit.h"
#include "stamp.h"

static uint64_t expected_word(uint32_t page, uint32_t word, uint32_t last)
{
	/* The newest generation, not after `last`, that is stored in this word; 0 if there was none. */
	uint32_t age = (last - word) % PAGE_WORDS;

	return stamp_word(page, age < last ? last - age : 0, word);
}

static void check_word(const char *memory, uint32_t page, uint32_t word, uint32_t last)
{
	uint64_t expected = expected_word(page, word, last);
	uint64_t found = ((const volatile uint64_t *)memory)[word];
	char expected_text[80], found_text[80];

	if (found == expected)
		return;
	stamp_describe(expected, expected_text, sizeof(expected_text));
	stamp_describe(found, found_text, sizeof(found_text));
	quit(EXIT_FAILED, "wrong byte in page %u at offset %zu: expected %s, found %s",
	     page, page * PAGE_BYTES + word * sizeof(found), expected_text, found_text);
}

void rolling_step(char *base, size_t bytes, uint32_t generation)
{
	uint32_t word = generation % PAGE_WORDS;

	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++) {
		char *memory = base + page * PAGE_BYTES;

		check_word(memory, page, (generation - 1) % PAGE_WORDS, generation - 1);
		((volatile uint64_t *)memory)[word] = stamp_word(page, generation, word);
	}
}

void rolling_verify(const char *base, size_t bytes, uint32_t generation)
{
	for (uint32_t page = 0; page < bytes / PAGE_BYTES; page++)
		for (uint32_t word = 0; word < PAGE_WORDS; word++)
			check_word(base + page * PAGE_BYTES, page, word, generation);
}
