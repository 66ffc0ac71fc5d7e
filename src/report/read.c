// SPDX-License-Identifier: BSD-2-Clause
/* Numbers and texts out of raw bytes: sums over CPUs, differences to the last print, scaling. */
#include "report/value.h"

#include <inttypes.h>
#include <string.h>

#include "base/reader.h"

#define STACK_MAX 128

/* The bytes of one CPU's copy, or NULL when the place is not inside (types that lie). */
static const uint8_t *bytes_at(const struct place *place, const struct source *source,
			       const uint8_t *data, uint32_t cpu, size_t bytes)
{
	if (!range_inside(place->bit_offset / 8, bytes, source->size))
		return NULL;
	return data + (size_t)cpu * source->stride + place->bit_offset / 8;
}

static bool is_signed(const struct types *types, const struct place *place)
{
	const struct btf_type *t = types_get(types, place->type);
	uint32_t data;

	if (place->class == PLACE_ENUM)
		return BTF_INFO_KFLAG(t->info) || place->bits == t->size * 8;
	if (place->class != PLACE_INTEGER)
		return false;
	memcpy(&data, t + 1, sizeof(data));
	return BTF_INT_ENCODING(data) & BTF_INT_SIGNED;
}

static __int128 read_integer(const struct types *types, const struct place *place,
			     const struct source *source, const uint8_t *data, uint32_t cpu)
{
	unsigned int shift = place->bit_offset % 8, bits = place->bits, i;
	size_t bytes = (shift + bits + 7) / 8;
	const uint8_t *at = bytes_at(place, source, data, cpu, bytes);
	unsigned __int128 value = 0;

	if (!at || !bits || bits > 128)
		return 0;
	for (i = 0; i < bytes && i < 16; i++)
		value |= (unsigned __int128)at[i] << (8 * i);
	value >>= shift;
	if (bytes > 16)
		value |= (unsigned __int128)at[16] << (128 - shift);
	value <<= 128 - bits;
	if (is_signed(types, place))
		return (__int128)value >> (128 - bits);
	value >>= 128 - bits;
	if (value >> 127) /* an unsigned 128-bit integer that large: saturates */
		value >>= 1, value = ~(unsigned __int128)0 >> 1;
	return value;
}

static double read_real(const struct place *place, const struct source *source, const uint8_t *data,
			uint32_t cpu)
{
	const uint8_t *at = bytes_at(place, source, data, cpu, place->bits / 8);
	double value = 0;
	float narrow = 0;

	if (at && place->bits == 64)
		memcpy(&value, at, sizeof(value));
	if (at && place->bits == 32) {
		memcpy(&narrow, at, sizeof(narrow));
		value = narrow;
	}
	return value;
}

/* A set of u64 words, added over CPUs; wraps as the kernel's own additions do. */
static bool read_words(const struct place *place, const struct source *source, const uint8_t *data,
		       uint64_t *words, size_t count)
{
	uint32_t cpu;
	size_t i;

	memset(words, 0, count * sizeof(*words));
	for (cpu = 0; cpu < source->cpus; cpu++) {
		const uint8_t *at = bytes_at(place, source, data, cpu, count * sizeof(*words));
		uint64_t word;

		if (!at)
			return false;
		for (i = 0; i < count; i++) {
			memcpy(&word, at + i * sizeof(word), sizeof(word));
			words[i] += word;
		}
	}
	return true;
}

/* Which copy stands for all where adding makes no sense: the first that holds something. */
static uint32_t telling_cpu(const struct place *place, const struct source *source)
{
	size_t bytes = (place->bit_offset % 8 + place->bits + 7) / 8, i;
	uint32_t cpu;

	for (cpu = 0; cpu < source->cpus; cpu++) {
		const uint8_t *at = bytes_at(place, source, source->data, cpu, bytes);

		for (i = 0; at && i < bytes; i++) {
			if (at[i])
				return cpu;
		}
	}
	return 0;
}

static struct number integer_number(const struct types *types, const struct place *place,
				    const struct source *source)
{
	__int128 sum = 0, before = 0;
	uint32_t cpu;

	if (!place_adds(place) || (source->cpus == 1 && !source->previous)) {
		cpu = telling_cpu(place, source);
		return number_integer(read_integer(types, place, source, source->data, cpu));
	}
	for (cpu = 0; cpu < source->cpus; cpu++) {
		__int128 one = read_integer(types, place, source, source->data, cpu);

		if (__builtin_add_overflow(sum, one, &sum))
			return number_flag(STATUS_MISSING);
		if (!source->previous)
			continue;
		one = read_integer(types, place, source, source->previous, cpu);
		if (__builtin_add_overflow(before, one, &before))
			return number_flag(STATUS_MISSING);
	}
	if (__builtin_sub_overflow(sum, before, &sum))
		return number_flag(STATUS_MISSING);
	if (source->previous && sum < 0)
		return number_flag(STATUS_BACKWARDS);
	return number_integer(sum);
}

static struct number real_number(const struct place *place, const struct source *source)
{
	double sum = 0;
	uint32_t cpu;

	if (!place_adds(place))
		return number_real(
			read_real(place, source, source->data, telling_cpu(place, source)));
	for (cpu = 0; cpu < source->cpus; cpu++) {
		sum += read_real(place, source, source->data, cpu);
		if (source->previous)
			sum -= read_real(place, source, source->previous, cpu);
	}
	return number_real(sum);
}

/* The summed and subtracted counter; false when a part of it went backwards. */
static bool read_counter(const struct place *place, const struct source *source,
			 struct pmu_sum *ret)
{
	struct pmu_sum before;

	if (!read_words(place, source, source->data, (uint64_t *)ret, 3))
		memset(ret, 0, sizeof(*ret));
	if (!source->previous || place->key)
		return true;
	read_words(place, source, source->previous, (uint64_t *)&before, 3);
	if (ret->count < before.count || ret->enabled < before.enabled ||
	    ret->running < before.running)
		return false;
	ret->count -= before.count;
	ret->enabled -= before.enabled;
	ret->running -= before.running;
	return true;
}

/* count * enabled / running in 128 bits: the product of two 64-bit numbers always fits. */
static struct number scale(const struct pmu_sum *sum)
{
	unsigned __int128 value = sum->count;
	struct number number;

	if (!sum->running)
		return number_flag(STATUS_NOT_COUNTED);
	if (sum->running >= sum->enabled)
		return number_integer(value);
	value = value * sum->enabled / sum->running;
	if (value >> 127)
		value = ~(unsigned __int128)0 >> 1;
	number = number_integer(value);
	number.status = STATUS_SCALED;
	number.share = (double)sum->running / (double)sum->enabled;
	return number;
}

static struct number counter_number(const struct place *place, const struct source *source,
				    struct pmu_sum *sum)
{
	bool forwards = read_counter(place, source, sum);
	struct number number;

	if (place->unsupported)
		return number_flag(STATUS_NOT_SUPPORTED);
	if (!forwards) {
		memset(sum, 0, sizeof(*sum));
		return number_flag(STATUS_BACKWARDS);
	}
	number = scale(sum);
	number.window = place->window;
	return number;
}

struct number place_number(const struct types *types, const struct place *place,
			   const struct source *source)
{
	struct pmu_sum sum;

	if (place->unsupported)
		return number_flag(STATUS_NOT_SUPPORTED);
	if (place->class == PLACE_COUNTER)
		return counter_number(place, source, &sum);
	if (place->class == PLACE_REAL)
		return real_number(place, source);
	return integer_number(types, place, source);
}

bool place_hist(const struct place *place, const struct source *source, struct hist *ret)
{
	struct hist before;
	size_t i;

	if (!read_words(place, source, source->data, (uint64_t *)ret, sizeof(*ret) / 8))
		memset(ret, 0, sizeof(*ret));
	if (!source->previous || place->key)
		return true;
	read_words(place, source, source->previous, (uint64_t *)&before, sizeof(before) / 8);
	for (i = 0; i < sizeof(ret->slot) / sizeof(ret->slot[0]); i++) {
		if (ret->slot[i] < before.slot[i])
			return false;
		ret->slot[i] -= before.slot[i];
	}
	if (ret->n < before.n)
		return false;
	ret->n -= before.n;
	ret->sum -= before.sum; /* signed: may go either way */
	return true;
}

static void string_value(const struct place *place, const struct source *source, struct value *ret)
{
	size_t size = place->bits / 8;
	const uint8_t *at = bytes_at(place, source, source->data, telling_cpu(place, source), size);

	ret->kind = VALUE_TEXT;
	if (at && size)
		out_utf8(&ret->text, at, strnlen((const char *)at, size));
}

static void bytes_value(const struct place *place, const struct source *source, struct value *ret)
{
	size_t size = place->bits / 8, i;
	uint32_t cpu;

	ret->kind = VALUE_TEXT;
	for (cpu = 0; cpu < source->cpus; cpu++) {
		const uint8_t *at = bytes_at(place, source, source->data, cpu, size);

		if (cpu)
			out_puts(&ret->text, " | ");
		for (i = 0; at && i < size; i++)
			out_printf(&ret->text, "%s%02x", i ? " " : "", at[i]);
	}
}

/* The enumerator's name into the text; false when no enumerator has that value. */
static bool enumerator(const struct types *types, uint32_t type, __int128 value, struct out *text)
{
	const struct btf_type *t = types_get(types, type);
	bool wide = BTF_INFO_KIND(t->info) == BTF_KIND_ENUM64;
	uint32_t i;

	for (i = 0; i < BTF_INFO_VLEN(t->info); i++) {
		const struct btf_enum *narrow = (const struct btf_enum *)(t + 1) + i;
		const struct btf_enum64 *large = (const struct btf_enum64 *)(t + 1) + i;
		uint64_t bits = wide ? (uint64_t)large->val_hi32 << 32 | large->val_lo32
				     : (uint64_t)(int64_t)narrow->val;
		uint64_t mask = t->size < 8 ? (1ULL << (t->size * 8)) - 1 : ~0ULL;

		if ((bits & mask) != ((uint64_t)value & mask))
			continue;
		out_puts(text, types_string(types, wide ? large->name_off : narrow->name_off));
		return true;
	}
	return false;
}

static void address_value(uint64_t address, const struct report_names *names, struct value *ret)
{
	const char *name = address && names && names->kernel_address
				   ? names->kernel_address(names->context, address)
				   : NULL;

	ret->kind = VALUE_TEXT;
	if (name)
		out_utf8(&ret->text, name, strlen(name));
	else
		out_printf(&ret->text, "0x%" PRIx64, address);
}

static bool stack_value(int32_t id, bool user, uint32_t pid, const struct report_names *names,
			struct value *ret)
{
	uint64_t addresses[STACK_MAX];
	size_t count, i;

	if (!names || !names->stack)
		return false;
	count = names->stack(names->context, id, user, addresses, STACK_MAX);
	ret->kind = VALUE_STACK;
	for (i = 0; i < count && i < STACK_MAX; i++) {
		const char *name = NULL;

		if (!user && names->kernel_address)
			name = names->kernel_address(names->context, addresses[i]);
		else if (user && names->user_address)
			name = names->user_address(names->context, pid, addresses[i]);
		if (name)
			out_utf8(&ret->text, name, strlen(name));
		else
			out_printf(&ret->text, "0x%" PRIx64, addresses[i]);
		out_putc(&ret->text, 0);
	}
	return count > 0;
}

/* What the number stands for, where it has a name; otherwise the number stays. */
static void name_number(const struct types *types, const struct place *place, uint32_t pid,
			const struct report_names *names, struct value *ret)
{
	uint64_t raw = (uint64_t)ret->number.integer;
	const char *name = NULL;

	if (place->class == PLACE_ENUM &&
	    enumerator(types, place->type, ret->number.integer, &ret->text))
		ret->kind = VALUE_TEXT;
	else if (place->class == PLACE_POINTER || place->meaning == MEANING_KADDR)
		address_value(raw, names, ret);
	else if (place->meaning == MEANING_CGROUP && names && names->cgroup)
		name = names->cgroup(names->context, raw);
	else if (place->meaning == MEANING_KSTACK || place->meaning == MEANING_USTACK) {
		if (!stack_value((int32_t)raw, place->meaning == MEANING_USTACK, pid, names, ret))
			ret->kind = VALUE_NUMBER;
	}
	if (name) {
		ret->kind = VALUE_TEXT;
		out_utf8(&ret->text, name, strlen(name));
	}
}

static enum value_unit unit_of(const struct place *place)
{
	if (place->class == PLACE_BOOL)
		return UNIT_BOOL;
	if (place->meaning == MEANING_NS)
		return UNIT_NS;
	if (place->meaning == MEANING_BYTES)
		return UNIT_BYTES;
	if (place->class == PLACE_COUNTER || (place_adds(place) && place->class != PLACE_ENUM))
		return UNIT_COUNT;
	return UNIT_PLAIN;
}

void place_value(const struct types *types, const struct place *place, const struct source *source,
		 const struct report_names *names, struct value *ret)
{
	out_clear(&ret->text);
	ret->kind = VALUE_NONE;
	ret->unit = unit_of(place);
	ret->digits = -1;
	ret->number = number_integer(0);
	switch (place->class) {
	case PLACE_STRING:
		string_value(place, source, ret);
		break;
	case PLACE_BYTES:
		bytes_value(place, source, ret);
		break;
	case PLACE_HIST:
		ret->kind = VALUE_HIST;
		if (!place_hist(place, source, &ret->hist))
			ret->number = number_flag(STATUS_BACKWARDS);
		if (place->unsupported)
			ret->number = number_flag(STATUS_NOT_SUPPORTED);
		break;
	case PLACE_COUNTER:
		ret->kind = VALUE_COUNTER;
		ret->number = counter_number(place, source, &ret->counter);
		break;
	default:
		if (!place_has_number(place))
			break;
		ret->kind = VALUE_NUMBER;
		ret->number = place_number(types, place, source);
		if (number_known(&ret->number))
			name_number(types, place, source->pid, names, ret);
	}
}
