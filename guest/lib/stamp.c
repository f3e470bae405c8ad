// SPDX-License-Identifier: GPL-2.0
#include "stamp.h"

#include <inttypes.h>
#include <stdio.h>

void stamp_write(void *memory, uint32_t page, uint32_t generation)
{
	/* volatile: other agents look at this memory, so every word is to be stored once, in order. */
	volatile uint64_t *words = memory;

	for (uint32_t i = 0; i < PAGE_WORDS; i++)
		words[i] = stamp_word(page, generation, i);
}

bool stamp_check(const void *memory, uint32_t page, uint32_t generation, struct mismatch *wrong)
{
	const volatile uint64_t *words = memory;

	for (uint32_t i = 0; i < PAGE_WORDS; i++) {
		uint64_t found = words[i];
		uint64_t expected = stamp_word(page, generation, i);

		if (found != expected) {
			*wrong = (struct mismatch){ page, i, expected, found };
			return false;
		}
	}
	return true;
}

void stamp_describe(uint64_t word, char *text, size_t size)
{
	uint32_t generation = word >> 9 & STAMP_GENERATIONS;

	if (!generation)
		snprintf(text, size, "no stamp (0x%016" PRIx64 ")", word);
	else
		snprintf(text, size, "page %u generation %u word %u (0x%016" PRIx64 ")",
			 (unsigned int)(word >> 40), generation - 1,
			 (unsigned int)(word % PAGE_WORDS), word);
}
