/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the event parser: names and the whole (parse.c), terms, modifiers. */
#pragma once

#include "pmu/internal.h"

#define PMU_TERMS_MAX 48

struct pmu_parser {
	const struct pmu_system *system;
	const char *text; /* all of it: messages give positions in it, counted from 1 */
	struct pmu_event *event;
	struct err *err;
};

/* Sets "event 'TEXT': WHY" and returns @code. */
int pmu_refuse(const struct pmu_parser *parser, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Applies @letters, which point into the text, or at its end. */
int pmu_parse_modifiers(const struct pmu_parser *parser, const char *letters);
bool pmu_is_modifiers(const char *letters);

/* One term inside slashes. */
struct pmu_term {
	char name[64];
	char value[64]; /* "" when there is none */
	bool has_value;
	size_t at; /* offset in the event's text, for messages */
};

/* @body, of @size, starts at offset @at of the event's text. @terms has PMU_TERMS_MAX. */
int pmu_split_terms(const struct pmu_parser *parser, const char *body, size_t size, size_t at,
		    struct pmu_term *terms, size_t *count);
int pmu_apply_terms(const struct pmu_parser *parser, const struct pmu_term *terms, size_t count);
/* An event of events/ of the event's PMU. -ENOENT when it has none of that name. */
int pmu_apply_alias(const struct pmu_parser *parser, const struct pmu_term *alias,
		    const struct pmu_term *users, size_t user_count);

/* Decimal, or hexadecimal with 0x; 64 bits. */
int pmu_parse_number(const char *text, uint64_t *ret);
/* "rHEX", up to 64 bits. */
bool pmu_parse_raw(const char *text, uint64_t *ret);

/* "mem:...": a breakpoint event, the whole text. */
bool pmu_is_breakpoint(const char *text);
int pmu_parse_breakpoint(const struct pmu_parser *parser);

/* A name of libpfm4, with its unit masks and without modifiers: -ENOENT when it knows none such, or
 * is not installed; -EINVAL with the reason in @why. */
int pmu_parse_pfm(const struct pmu_parser *parser, const char *name, struct err *why);
