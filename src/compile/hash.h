/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A 128-bit hash that names cache entries: two multiply-and-fold lanes over 8-byte words. Not
 * cryptographic: whoever can choose the contents of the cache already writes to it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct hash {
	uint64_t a, b;
};

static inline uint64_t hash_fold(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline void hash_word(struct hash *hash, uint64_t word)
{
	hash->a = hash_fold(hash->a ^ word, 0x9e3779b97f4a7c15) + 0x8ebc6af09c88c6e3;
	hash->b = hash_fold(hash->b + word, 0xd6e8feb86659fd93) ^ (hash->a >> 32);
}

/* Every piece carries its length, so that "ab","c" and "a","bc" differ. */
static inline void hash_data(struct hash *hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t word;
	size_t left = size;

	hash_word(hash, size + 1);
	for (; left >= 8; left -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		hash_word(hash, word);
	}
	word = 0;
	if (left)
		memcpy(&word, bytes, left);
	hash_word(hash, word);
}

static inline void hash_text(struct hash *hash, const char *text)
{
	hash_data(hash, text ? text : "", text ? strlen(text) : 0);
}

#define HASH_TEXT_SIZE 33

static inline void hash_name(const struct hash *hash, char text[HASH_TEXT_SIZE])
{
	snprintf(text, HASH_TEXT_SIZE, "%016llx%016llx", (unsigned long long)hash->a,
		 (unsigned long long)hash->b);
}
