// SPDX-License-Identifier: BSD-2-Clause
/*
 * Arithmetic by function, with results of 64 bits. Floats and doubles travel as their bits; the names
 * are documented in GCC's internals manual, "The GCC low-level runtime library". Those with __bpf_
 * are gcc-bpf's own for the same. Where C leaves a result undefined: conversions give the nearest
 * end, 0 for what is no number; division by zero gives 0, the remainder the dividend.
 */
#include "hook/soft.h"

#include <string.h>

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float as_float(uint64_t bits)
{
	uint32_t lower = (uint32_t)bits;
	float value;

	memcpy(&value, &lower, sizeof(value));
	return value;
}

static uint64_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Comparisons: < 0, 0 or > 0 as the operands are; with what is no number such that it is false. */
#define ARITHMETIC(mode, type, bits)                                         \
	NATIVE(add##mode##3)                                                 \
	{                                                                    \
		return bits(as_##type(a1) + as_##type(a2));                  \
	}                                                                    \
	NATIVE(sub##mode##3)                                                 \
	{                                                                    \
		return bits(as_##type(a1) - as_##type(a2));                  \
	}                                                                    \
	NATIVE(mul##mode##3)                                                 \
	{                                                                    \
		return bits(as_##type(a1) * as_##type(a2));                  \
	}                                                                    \
	NATIVE(div##mode##3)                                                 \
	{                                                                    \
		return bits(as_##type(a1) / as_##type(a2));                  \
	}                                                                    \
	NATIVE(neg##mode##2)                                                 \
	{                                                                    \
		return bits(-as_##type(a1));                                 \
	}                                                                    \
	NATIVE(le##mode##2)                                                  \
	{                                                                    \
		type x = as_##type(a1), y = as_##type(a2);                   \
                                                                             \
		RETURN_ERROR(x < y ? -1 : x == y ? 0 : 1);                   \
	}                                                                    \
	NATIVE(ge##mode##2)                                                  \
	{                                                                    \
		type x = as_##type(a1), y = as_##type(a2);                   \
                                                                             \
		RETURN_ERROR(x > y ? 1 : x == y ? 0 : -1);                   \
	}                                                                    \
	NATIVE(unord##mode##2)                                               \
	{                                                                    \
		type x = as_##type(a1), y = as_##type(a2);                   \
                                                                             \
		return x != x || y != y;                                     \
	}                                                                    \
	NATIVE(floatdi##mode)                                                \
	{                                                                    \
		return bits((type)(int64_t)a1);                              \
	}                                                                    \
	NATIVE(floatundi##mode)                                              \
	{                                                                    \
		return bits((type)a1);                                       \
	}                                                                    \
	NATIVE(floatsi##mode)                                                \
	{                                                                    \
		return bits((type)(int32_t)a1);                              \
	}                                                                    \
	NATIVE(floatunsi##mode)                                              \
	{                                                                    \
		return bits((type)(uint32_t)a1);                             \
	}                                                                    \
	NATIVE(floatti##mode)                                                \
	{                                                                    \
		return bits((type)(__int128)wide(a1, a2));                   \
	}                                                                    \
	NATIVE(floatunti##mode)                                              \
	{                                                                    \
		return bits((type)wide(a1, a2));                             \
	}                                                                    \
	NATIVE(fix##mode##di)                                                \
	{                                                                    \
		return to_s64(as_##type(a1));                                \
	}                                                                    \
	NATIVE(fixuns##mode##di)                                             \
	{                                                                    \
		return to_u64(as_##type(a1));                                \
	}                                                                    \
	NATIVE(fix##mode##si)                                                \
	{                                                                    \
		RETURN_ERROR(to_s32(as_##type(a1)));                         \
	}                                                                    \
	NATIVE(fixuns##mode##si)                                             \
	{                                                                    \
		uint64_t value = to_u64(as_##type(a1));                      \
                                                                             \
		return value > UINT32_MAX ? UINT32_MAX : value;              \
	}                                                                    \
	/* In the order of libgcc, whose results it has to the last bit. */  \
	NATIVE(powi##mode##2)                                                \
	{                                                                    \
		uint32_t n = (int32_t)a2 < 0 ? -(uint32_t)a2 : (uint32_t)a2; \
		type base = as_##type(a1), result = n % 2 ? base : 1;        \
                                                                             \
		while (n >>= 1) {                                            \
			base *= base;                                        \
			if (n % 2)                                           \
				result *= base;                              \
		}                                                            \
		return bits((int32_t)a2 < 0 ? 1 / result : result);          \
	}

static unsigned __int128 wide(uint64_t low, uint64_t high)
{
	return (unsigned __int128)high << 64 | low;
}

static int64_t to_s64(double value)
{
	if (value != value)
		return 0;
	if (value >= 9223372036854775808.0)
		return INT64_MAX;
	return value <= -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
}

static uint64_t to_u64(double value)
{
	if (value != value || value <= 0)
		return 0;
	return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}

static int32_t to_s32(double value)
{
	int64_t whole = to_s64(value);

	return whole > INT32_MAX ? INT32_MAX : whole < INT32_MIN ? INT32_MIN : (int32_t)whole;
}

ARITHMETIC(df, double, double_bits)
ARITHMETIC(sf, float, float_bits)

NATIVE(extendsfdf2)
{
	return double_bits(as_float(a1));
}

NATIVE(truncdfsf2)
{
	return float_bits((float)as_double(a1));
}

/* ---- integers ------------------------------------------------------------------------------------ */

static int64_t divide(int64_t x, int64_t y)
{
	return !y ? 0 : y == -1 ? (int64_t)(-(uint64_t)x) : x / y;
}

static int64_t modulo(int64_t x, int64_t y)
{
	return !y ? x : y == -1 ? 0 : x % y;
}

NATIVE(divdi3)
{
	return divide(a1, a2);
}

NATIVE(moddi3)
{
	return modulo(a1, a2);
}

NATIVE(udivdi3)
{
	return a2 ? a1 / a2 : 0;
}

NATIVE(umoddi3)
{
	return a2 ? a1 % a2 : a1;
}

NATIVE(divsi3)
{
	RETURN_ERROR((int32_t)divide((int32_t)a1, (int32_t)a2));
}

NATIVE(modsi3)
{
	RETURN_ERROR((int32_t)modulo((int32_t)a1, (int32_t)a2));
}

NATIVE(udivsi3)
{
	return (uint32_t)a2 ? (uint32_t)a1 / (uint32_t)a2 : 0;
}

NATIVE(umodsi3)
{
	return (uint32_t)a2 ? (uint32_t)a1 % (uint32_t)a2 : (uint32_t)a1;
}

#define BITS(mode, type, suffix, width)                              \
	NATIVE(bswap##mode##2)                                       \
	{                                                            \
		return __builtin_bswap##width((type)a1);             \
	}                                                            \
	NATIVE(clz##mode##2)                                         \
	{                                                            \
		return (type)a1 ? __builtin_clz##suffix(a1) : width; \
	}                                                            \
	NATIVE(ctz##mode##2)                                         \
	{                                                            \
		return (type)a1 ? __builtin_ctz##suffix(a1) : width; \
	}                                                            \
	NATIVE(ffs##mode##2)                                         \
	{                                                            \
		return __builtin_ffs##suffix(a1);                    \
	}                                                            \
	NATIVE(parity##mode##2)                                      \
	{                                                            \
		return __builtin_parity##suffix(a1);                 \
	}                                                            \
	NATIVE(popcount##mode##2)                                    \
	{                                                            \
		return __builtin_popcount##suffix(a1);               \
	}
BITS(di, uint64_t, ll, 64)
BITS(si, uint32_t, , 32)

NATIVE(clzti2)
{
	return a2 ? (uint64_t)__builtin_clzll(a2) : a1 ? 64 + (uint64_t)__builtin_clzll(a1) : 128;
}

NATIVE(ctzti2)
{
	return a1 ? (uint64_t)__builtin_ctzll(a1) : a2 ? 64 + (uint64_t)__builtin_ctzll(a2) : 128;
}

NATIVE(popcountti2)
{
	return __builtin_popcountll(a1) + __builtin_popcountll(a2);
}

/* 0, 1, 2: less, equal, greater. */
NATIVE(cmpti2)
{
	__int128 x = (__int128)wide(a1, a2), y = (__int128)wide(a3, a4);

	return x < y ? 0 : x == y ? 1 : 2;
}

NATIVE(ucmpti2)
{
	unsigned __int128 x = wide(a1, a2), y = wide(a3, a4);

	return x < y ? 0 : x == y ? 1 : 2;
}

#define INLINED(name, as)                                          \
	{                                                          \
		"__" #name, name, &hook_contract_none, VM_F64_##as \
	}
#define ROW(name)                                     \
	{                                             \
		"__" #name, name, &hook_contract_none \
	}
#define CALLED(name, as) ROW(name)
#define ALIAS(alias, name)                             \
	{                                              \
		"__" #alias, name, &hook_contract_none \
	}
/* @row: INLINED or CALLED. */
#define FLOATING(mode, row)                                                                        \
	row(add##mode##3, ADD), row(sub##mode##3, SUB), row(mul##mode##3, MUL),                    \
		row(div##mode##3, DIV), row(neg##mode##2, NEG), row(floatdi##mode, FROM_S64),      \
		row(floatundi##mode, FROM_U64), row(fix##mode##di, TO_S64), ROW(fixuns##mode##di), \
		ROW(fix##mode##si), ROW(fixuns##mode##si), ROW(floatsi##mode),                     \
		ROW(floatunsi##mode), ROW(floatti##mode), ROW(floatunti##mode), ROW(le##mode##2),  \
		ALIAS(lt##mode##2, le##mode##2), ALIAS(eq##mode##2, le##mode##2),                  \
		ALIAS(ne##mode##2, le##mode##2), ROW(ge##mode##2),                                 \
		ALIAS(gt##mode##2, ge##mode##2), ROW(unord##mode##2), ROW(powi##mode##2),          \
		ALIAS(bpf_floatsi##mode, floatsi##mode),                                           \
		ALIAS(bpf_floatunsi##mode, floatunsi##mode),                                       \
		ALIAS(bpf_fix_trunc##mode##si, fix##mode##si)
#define INTEGER(mode)                                                                         \
	ROW(div##mode##3), ROW(mod##mode##3), ROW(udiv##mode##3), ROW(umod##mode##3),         \
		ROW(bswap##mode##2), ROW(clz##mode##2), ROW(ctz##mode##2), ROW(ffs##mode##2), \
		ROW(parity##mode##2), ROW(popcount##mode##2)

const struct hook_function hook_functions_soft[] = {
	FLOATING(df, INLINED),
	FLOATING(sf, CALLED),
	ROW(extendsfdf2),
	ROW(truncdfsf2),
	ALIAS(bpf_extendsfdf2, extendsfdf2),
	ALIAS(bpf_truncdfsf2, truncdfsf2),
	INTEGER(di),
	INTEGER(si),
	ROW(clzti2),
	ROW(ctzti2),
	ROW(popcountti2),
	ROW(cmpti2),
	ROW(ucmpti2),
	{ NULL },
};
