/* SPDX-License-Identifier: BSD-2-Clause */
/* Random numbers that can be repeated from their seed. */
#pragma once

#include <stdint.h>

struct random {
	uint64_t state;
};

uint64_t random_next(struct random *random);
/* 0 to @n - 1 */
uint32_t random_below(struct random *random, uint32_t n);
/* A number of the kind that breaks arithmetic: edges of widths and signs, or anything. */
uint64_t random_edge(struct random *random);
