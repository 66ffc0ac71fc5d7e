/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log2 histograms: struct hist (duet/shared.h) as a global variable, inside a map's value, or the
 * value itself. Part of duet.h.
 */
#pragma once

/* HIST(name, n, K): a hash table of histograms, at most n. hist_add(map_at(&name, &key), v). */
#define HIST(name, n, K) HASH(name, n, K, struct hist)

/* The slot that @value is counted in: 0 for values below 2 (negative ones too: a number above
 * 2^63 is taken for a negative delta), else the position of the highest set bit. */
static __always_inline __u32 hist_log2(__u64 value)
{
	return (__s64)value < 0 ? 0 : __duet_log2(value);
}

/* Counts @value, atomically. @hist may be NULL (a full map): then nothing is counted. */
static __always_inline void hist_add(struct hist *hist, __u64 value)
{
	__u32 slot = hist_log2(value) & 63;

	if (!hist)
		return;
	__sync_fetch_and_add(&hist->slot[slot], 1);
	__sync_fetch_and_add(&hist->sum, value);
	__sync_fetch_and_add(&hist->n, 1);
}

/* ---- user half ------------------------------------------------------------------------------ */

/* hist_quantile: the value below which @per_mille of 1000 values lie, interpolated in its slot;
 * 0 for an empty histogram. hist_quantile(&h, 990) is the p99. */
extern __u64 hist_quantile(const struct hist *hist, __u32 per_mille);
/* hist_mean: sum / n as a double; 0 for an empty histogram. */
extern double hist_mean(const struct hist *hist);
/* hist_move: moves all counts into @to (overwritten) and leaves zeros in @from, which may be
 * counting at the same time: every slot is swapped, nothing is lost. */
extern void hist_move(struct hist *to, struct hist *from);
/* hist_take: what came into the histogram at @key of @map since the last hist_take() of it; valid
 * until the hook returns. NULL: no such element. */
extern const struct hist *hist_take(const void *map, const void *key);
/* map_hist: the histogram at @key as it is now; valid until the hook returns. NULL: absent. */
extern const struct hist *map_hist(const void *map, const void *key);
