/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One printable value, and where it is read from: a place (BTF type and bit offset) in a source
 * (the bytes of a key or of a value, one copy per CPU, perhaps with those of the last print).
 * Reading never leaves the source. Nothing is scaled or rounded before an emitter writes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "duet/shared.h"
#include "obj/types.h"
#include "report/out.h"
#include "report/report.h"

/* The worse one wins in an expression: the order matters. */
enum value_status {
	STATUS_OK,
	STATUS_SCALED,        /* an estimate: the event shared its counter */
	STATUS_MISSING,       /* no number: division by zero, an empty histogram */
	STATUS_BACKWARDS,     /* less than at the last print */
	STATUS_APART,         /* a ratio of estimates from different windows of time */
	STATUS_NOT_COUNTED,   /* the event never ran */
	STATUS_NOT_SUPPORTED, /* the machine has no such event */
};

/* "ok", "scaled", "missing", "went backwards", "not together", "not counted", "not supported". */
const char *status_name(enum value_status status);

#define WINDOW_MIXED 255

struct number {
	bool is_real;
	enum value_status status;
	__int128 integer;
	double real;
	double share;   /* running / enabled of the worst operand; meaningful when scaled */
	uint8_t window; /* that of its counter, WINDOW_MIXED; 0: none, or not known */
};

static inline struct number number_integer(__int128 integer)
{
	return (struct number){ .integer = integer, .share = 1 };
}

static inline struct number number_flag(enum value_status status)
{
	return (struct number){ .status = status, .share = 1 };
}

/* STATUS_MISSING instead of NaN and infinities. */
struct number number_real(double real);
static inline bool number_known(const struct number *number)
{
	return number->status <= STATUS_SCALED;
}
double number_double(const struct number *number);
/* < 0, 0, > 0; unknown ones are equal to each other and less than every known one. */
int number_compare(const struct number *a, const struct number *b);

enum value_unit {
	UNIT_COUNT, /* 1,234 */
	UNIT_PLAIN, /* an identifier: 1234 */
	UNIT_NS,
	UNIT_BYTES,
	UNIT_PERCENT, /* of 1 */
	UNIT_BOOL,
};

enum value_kind {
	VALUE_NONE,
	VALUE_NUMBER,
	VALUE_COUNTER, /* number is the scaled one, counter has its parts */
	VALUE_TEXT,    /* UTF-8 in text */
	VALUE_HIST,
	VALUE_STACK, /* frames in text, each behind its 0 byte, innermost first */
};

struct value {
	enum value_kind kind;
	enum value_unit unit;
	int digits; /* decimals of a real; -1: not said */
	struct number number;
	struct pmu_sum counter;
	struct hist hist;
	struct out text;
};
void value_deinit(struct value *value);

/* As a person reads it: the number (or its status) into @text, "(scaled 37 %)" into @flag. */
void value_text(const struct value *value, struct out *text, struct out *flag);
/* As a program reads it: exact, nothing for what has no number. */
void value_exact(const struct value *value, struct out *text);

enum place_class {
	PLACE_INTEGER,
	PLACE_BOOL,
	PLACE_ENUM,
	PLACE_POINTER,
	PLACE_REAL,
	PLACE_STRING,
	PLACE_COUNTER, /* struct pmu_sum */
	PLACE_HIST,    /* struct hist */
	PLACE_ARRAY,
	PLACE_STRUCT,
	PLACE_UNION,
	PLACE_SECTION, /* BTF_KIND_DATASEC */
	PLACE_BYTES,   /* no type known: hex */
	PLACE_NOTHING, /* void, functions, forward declarations */
};

enum place_meaning {
	MEANING_NONE,
	MEANING_NS,
	MEANING_BYTES,
	MEANING_CGROUP,
	MEANING_KSTACK,
	MEANING_USTACK,
	MEANING_KADDR,
	MEANING_PID, /* numbers that nobody adds up */
	MEANING_CPU,
};

struct place {
	uint32_t type; /* resolved id; 0 for bytes */
	enum place_class class;
	enum place_meaning meaning;
	uint64_t bit_offset;
	uint32_t bits;    /* width of an integer or bit field; bytes * 8 of bytes */
	bool key;         /* of the key: never summed, never subtracted */
	bool unsupported; /* holds values of an event that this machine lacks */
	uint8_t window;   /* struct report_counter's */
};

/* The place of something of @type; @bits 0 unless it is a bit field. */
struct place place_of(const struct types *types, uint32_t type, uint64_t bit_offset, uint32_t bits);
/* Element @index of an array place. */
struct place place_element(const struct types *types, const struct place *array, uint32_t index);
uint32_t place_elements(const struct types *types, const struct place *array);
/* Member @index of a struct, union or section, its name in @name ("" when anonymous). */
struct place place_member(const struct types *types, const struct place *of, uint32_t index,
			  const char **name);
uint32_t place_members(const struct types *types, const struct place *of);
/* Can it be added over CPUs and subtracted from the last print? */
bool place_adds(const struct place *place);
bool place_has_number(const struct place *place);

struct source {
	const uint8_t *data;
	const uint8_t *previous; /* same shape, subtracted; NULL: none */
	size_t size;             /* of one copy */
	size_t stride;           /* from one CPU's copy to the next */
	uint32_t cpus;           /* copies */
	uint32_t pid;            /* whose user addresses these are; 0: unknown */
};

/* The number at a place that has one (place_has_number). */
struct number place_number(const struct types *types, const struct place *place,
			   const struct source *source);
/* The summed and subtracted histogram; false when it went backwards. */
bool place_hist(const struct place *place, const struct source *source, struct hist *ret);
/* Everything but arrays, structs, unions and sections, which emit_place() walks. */
void place_value(const struct types *types, const struct place *place, const struct source *source,
		 const struct report_names *names, struct value *ret);
