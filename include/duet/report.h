/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reports and numbers of the user half. Part of duet.h. The format (text, CSV, JSON) is chosen on
 * the command line. Reports return 0 or a negative errno.
 *
 * Options of print_map() and table() are one string literal of words:
 *   sort=-A,B top=N where=EXPRESSION cols=A,B key=NAME title='TEXT' unit=ns|bytes
 *   NAME=EXPRESSION[:FORMAT] since-last percpu live
 * FORMAT: .2  .1%  d  ns  bytes. docs/scripts.md tells what each does.
 * A wrong column fails when the script is opened, with the columns that there are.
 */
#pragma once

/* The literal lies in a section of its own, behind the map's name, so that duet can check it
 * before anything runs. */
#define __DUET_REPORT(function, map, options)                                           \
	({                                                                              \
		static const char __options[] __DUET_NOTE("print") = #map "\0" options; \
		function((map), __options + sizeof(#map));                              \
	})

extern int __print_map(const void *map, const char *options);
extern int __table(const void *map, const char *options);

/* print_map(&map, "options"): the map as a table: a row per element, columns from its types. */
#define print_map(map, options) __DUET_REPORT(__print_map, map, options)
/* table(&map, "options"): the same, but in place on a terminal (each call replaces the last). */
#define table(map, options) __DUET_REPORT(__table, map, options)

/* report_top: tables from now on have at most @rows rows, whatever their top= says; 0: as it says. */
extern int report_top(__u64 rows);
/* print_hist: one histogram; options: "title=TEXT unit=ns". */
extern int print_hist(const struct hist *hist, const char *options);
/* print_hists: every histogram of a HIST() map, under its key; options: "top=N unit=ns". */
extern int print_hists(const void *map, const char *options);

/* ---- numbers ---------------------------------------------------------------------------------- */

/* ratio: a / b as a double, for printf("%.2f"); 0 when b is 0. */
extern double ratio(__u64 a, __u64 b);
/* per_mille: a * 1000 / b, rounded down, without overflow of the product; 0 when b is 0. */
extern __u64 per_mille(__u64 a, __u64 b);
/* mul_div: a * b / c with a 128-bit product, the low 64 bits of it; 0 when c is 0. */
extern __u64 mul_div(__u64 a, __u64 b, __u64 c);

/*
 * BPF has no floating point: a script may declare, hand on and print doubles, and computes with
 * these.
 */
/* f64_add: a + b. */
extern double f64_add(double a, double b);
/* f64_sub: a - b. */
extern double f64_sub(double a, double b);
/* f64_mul: a * b. */
extern double f64_mul(double a, double b);
/* f64_div: a / b. */
extern double f64_div(double a, double b);
/* f64_neg: -a. */
extern double f64_neg(double a);
/* f64_lt: is a < b? 0 or 1; all comparisons but f64_ne give 0 when one is not a number. */
extern int f64_lt(double a, double b);
/* f64_le: is a <= b? */
extern int f64_le(double a, double b);
/* f64_gt: is a > b? */
extern int f64_gt(double a, double b);
/* f64_ge: is a >= b? */
extern int f64_ge(double a, double b);
/* f64_ne: is a != b, or one of them not a number? */
extern int f64_ne(double a, double b);
/* f64_eq: is a == b? */
extern int f64_eq(double a, double b);
/* f64_from_s64: a signed integer as a double. */
extern double f64_from_s64(__s64 value);
/* f64_from_u64: an unsigned integer as a double. */
extern double f64_from_u64(__u64 value);
/* f64_to_s64: rounded towards zero; the nearest limit when out of range, 0 for not a number. */
extern __s64 f64_to_s64(double value);
/* f64_to_u64: the same, unsigned. */
extern __u64 f64_to_u64(double value);
