/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a log2 histogram says: bounds, quantiles, moments. Pure functions. Counts are those of the
 * slots: `n` may be ahead of them while a kernel program is between its two additions.
 */
#pragma once

#include "duet/shared.h"
#include "report/value.h"

#define HISTOGRAM_SLOTS 64

uint64_t histogram_count(const struct hist *hist);
/* Lowest and highest value that a slot holds (slot 0: 0 and 1, though it takes negative ones too). */
uint64_t histogram_low(unsigned int slot);
uint64_t histogram_high(unsigned int slot);
/* First and last slot that hold something; false for an empty one. */
bool histogram_range(const struct hist *hist, unsigned int *first, unsigned int *last);
/* STATUS_MISSING for an empty one, never 0. */
struct number histogram_quantile(const struct hist *hist, uint32_t per_mille);
struct number histogram_mean(const struct hist *hist);
/* "[1K, 2K)", "<= 1"; with UNIT_NS "[1.02 us, 2.05 us)". */
void histogram_label(unsigned int slot, enum value_unit unit, struct out *out);
/* "n=3 mean=1.50 p50=1 p99=2", for a place in the middle of a line. */
void histogram_summary(const struct hist *hist, struct out *out);

/* The parts that stand for a histogram where there is one cell per number. */
enum histogram_part {
	HISTOGRAM_N,
	HISTOGRAM_MEAN,
	HISTOGRAM_P50,
	HISTOGRAM_P99,
	HISTOGRAM_MAX, /* highest value of the highest slot in use */
	HISTOGRAM_PARTS,
};
const char *histogram_part_name(enum histogram_part part);
/* @whole is a VALUE_HIST; gives its flags on. @ret->text is left alone. */
void histogram_part_value(const struct value *whole, enum histogram_part part, struct value *ret);
