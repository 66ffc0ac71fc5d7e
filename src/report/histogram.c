// SPDX-License-Identifier: BSD-2-Clause
#include "report/histogram.h"

uint64_t histogram_count(const struct hist *hist)
{
	uint64_t count = 0;
	unsigned int i;

	for (i = 0; i < HISTOGRAM_SLOTS; i++)
		count += hist->slot[i];
	return count;
}

uint64_t histogram_low(unsigned int slot)
{
	return slot ? 1ULL << slot : 0;
}

uint64_t histogram_high(unsigned int slot)
{
	return slot < 63 ? (2ULL << slot) - 1 : UINT64_MAX;
}

bool histogram_range(const struct hist *hist, unsigned int *first, unsigned int *last)
{
	bool some = false;
	unsigned int i;

	for (i = 0; i < HISTOGRAM_SLOTS; i++) {
		if (!hist->slot[i])
			continue;
		if (!some)
			*first = i;
		*last = i;
		some = true;
	}
	return some;
}

/*
 * The slot is the one that holds the value of rank ceil(q * n), so the result is in the slot of
 * the exact quantile; inside it, values are taken as evenly spread.
 */
uint64_t report_hist_quantile(const struct hist *hist, uint32_t per_mille)
{
	unsigned __int128 wanted, before = 0, width, value;
	unsigned int first = 0, last = 0, i;

	if (!histogram_range(hist, &first, &last))
		return 0;
	if (per_mille > 1000)
		per_mille = 1000;
	wanted = (unsigned __int128)histogram_count(hist) * per_mille;
	for (i = first; i < last; i++) {
		if (hist->slot[i] && before + (unsigned __int128)hist->slot[i] * 1000 >= wanted)
			break;
		before += (unsigned __int128)hist->slot[i] * 1000;
	}
	width = (unsigned __int128)histogram_high(i) - histogram_low(i) + 1;
	/* In double where 128 bits are not enough: a count beyond 2^54 in a slot wider than 2^63. */
	if (__builtin_mul_overflow(width, wanted - before, &value))
		value = (double)width *
			((double)(wanted - before) / ((double)hist->slot[i] * 1000));
	else
		value /= (unsigned __int128)hist->slot[i] * 1000;
	if (value >= width)
		value = width - 1;
	return histogram_low(i) + (uint64_t)value;
}

struct number histogram_quantile(const struct hist *hist, uint32_t per_mille)
{
	if (!histogram_count(hist))
		return number_flag(STATUS_MISSING);
	return number_integer(report_hist_quantile(hist, per_mille));
}

struct number histogram_mean(const struct hist *hist)
{
	if (!hist->n)
		return number_flag(STATUS_MISSING);
	return number_real((double)(int64_t)hist->sum / (double)hist->n);
}

static void out_bound(struct out *out, unsigned int exponent, enum value_unit unit)
{
	if (unit == UNIT_NS)
		out_ns(out, exponent < 64 ? (double)(1ULL << exponent) : 0x1p64);
	else
		out_power(out, exponent);
}

void histogram_label(unsigned int slot, enum value_unit unit, struct out *out)
{
	if (!slot) {
		out_puts(out, unit == UNIT_NS ? "<= 1 ns" : "<= 1");
		return;
	}
	out_putc(out, '[');
	out_bound(out, slot, unit);
	out_puts(out, ", ");
	out_bound(out, slot + 1, unit);
	out_putc(out, ')');
}

static const char *const part_names[] = {
	[HISTOGRAM_N] = "n",     [HISTOGRAM_MEAN] = "mean", [HISTOGRAM_P50] = "p50",
	[HISTOGRAM_P99] = "p99", [HISTOGRAM_MAX] = "max",
};

const char *histogram_part_name(enum histogram_part part)
{
	return part_names[part];
}

static struct number part_number(const struct hist *hist, enum histogram_part part)
{
	unsigned int first, last;

	switch (part) {
	case HISTOGRAM_N:
		return number_integer(histogram_count(hist));
	case HISTOGRAM_MEAN:
		return histogram_mean(hist);
	case HISTOGRAM_P50:
		return histogram_quantile(hist, 500);
	case HISTOGRAM_P99:
		return histogram_quantile(hist, 990);
	default:
		if (!histogram_range(hist, &first, &last))
			return number_flag(STATUS_MISSING);
		return number_integer(histogram_high(last));
	}
}

void histogram_part_value(const struct value *whole, enum histogram_part part, struct value *ret)
{
	ret->kind = VALUE_NUMBER;
	ret->digits = -1;
	ret->unit = part == HISTOGRAM_N ? UNIT_COUNT : whole->unit;
	ret->number = number_known(&whole->number) ? part_number(&whole->hist, part)
						   : number_flag(whole->number.status);
}

void histogram_summary(const struct hist *hist, struct out *out)
{
	struct value whole = { .kind = VALUE_HIST, .hist = *hist }, part = { 0 };
	unsigned int i;

	for (i = 0; i < HISTOGRAM_PARTS; i++) {
		histogram_part_value(&whole, i, &part);
		out_printf(out, "%s%s=", i ? " " : "", part_names[i]);
		value_text(&part, out, out);
	}
}
