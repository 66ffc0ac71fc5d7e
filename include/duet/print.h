/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * printf and kin for the user half. Part of duet.h.
 *
 * A BPF call takes at most five arguments, so these are macros that pack up to 12 values into an
 * array; the compiler still checks the format against the values. Values may be integers,
 * pointers, strings, floats and doubles. Integers are extended to 64 bits with their own sign, so
 * `%d` of a negative int and `%lld` of a long long are right alike.
 */
#pragma once

#include <duet/libc.h>

extern int __printf_n(const char *format, const unsigned long long *values, unsigned int count);
extern int __fprintf_n(FILE *file, const char *format, const unsigned long long *values,
		       unsigned int count);
extern int __dprintf_n(int fd, const char *format, const unsigned long long *values,
		       unsigned int count);
extern int __snprintf_n(char *buffer, size_t size, const char *format,
			const unsigned long long *values, unsigned int count);
/* Never called: the prototype that formats are checked against. */
extern int printf(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

/* The bits of a float widened to those of the double of the same value. */
static inline __attribute__((always_inline)) unsigned long long __duet_float_bits(unsigned int bits)
{
	unsigned long long sign = (unsigned long long)(bits >> 31) << 63,
			   fraction = bits & 0x7fffff;
	unsigned int exponent = bits >> 23 & 0xff;

	if (exponent == 0xff)
		return sign | 0x7ffULL << 52 | fraction << 29;
	if (!exponent) {
		if (!fraction)
			return sign;
		/* A subnormal float is a normal double. */
		for (exponent = 1023 - 126; !(fraction >> 23); exponent--)
			fraction <<= 1;
		return sign | (unsigned long long)exponent << 52 | (fraction & 0x7fffff) << 29;
	}
	return sign | (unsigned long long)(exponent + 1023 - 127) << 52 | fraction << 29;
}

/* One value as 8 bytes. The conditional operator promotes small integers and decays arrays. */
#define __duet_is(x, type) __builtin_types_compatible_p(typeof(1 ? (x) : (x)), type)
#define __duet_bits(x, type, as)                                                        \
	(((union {                                                                      \
		 typeof(__builtin_choose_expr(__duet_is(x, type), (x), (type)0)) value; \
		 as bits;                                                               \
	 }){ .value = __builtin_choose_expr(__duet_is(x, type), (x), (type)0) })        \
		 .bits)
#define __duet_value(x)                                                                       \
	__builtin_choose_expr(                                                                \
		__duet_is(x, double), __duet_bits(x, double, unsigned long long),             \
		__builtin_choose_expr(__duet_is(x, float),                                    \
				      __duet_float_bits(__duet_bits(x, float, unsigned int)), \
				      __duet_integer(x)))
#define __duet_integer(x)                                                                          \
	((unsigned long long)__builtin_choose_expr(__duet_is(x, double) || __duet_is(x, float), 0, \
						   (x)))

#define __DUET_COUNT_(_, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, N, ...) N
#define __DUET_COUNT(...)                                                                       \
	__DUET_COUNT_(_, ##__VA_ARGS__, many, many, many, many, many, many, many, many, 12, 11, \
		      10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define __duet_pack0(...)
#define __duet_pack1(x)       __duet_value(x)
#define __duet_pack2(x, ...)  __duet_value(x), __duet_pack1(__VA_ARGS__)
#define __duet_pack3(x, ...)  __duet_value(x), __duet_pack2(__VA_ARGS__)
#define __duet_pack4(x, ...)  __duet_value(x), __duet_pack3(__VA_ARGS__)
#define __duet_pack5(x, ...)  __duet_value(x), __duet_pack4(__VA_ARGS__)
#define __duet_pack6(x, ...)  __duet_value(x), __duet_pack5(__VA_ARGS__)
#define __duet_pack7(x, ...)  __duet_value(x), __duet_pack6(__VA_ARGS__)
#define __duet_pack8(x, ...)  __duet_value(x), __duet_pack7(__VA_ARGS__)
#define __duet_pack9(x, ...)  __duet_value(x), __duet_pack8(__VA_ARGS__)
#define __duet_pack10(x, ...) __duet_value(x), __duet_pack9(__VA_ARGS__)
#define __duet_pack11(x, ...) __duet_value(x), __duet_pack10(__VA_ARGS__)
#define __duet_pack12(x, ...) __duet_value(x), __duet_pack11(__VA_ARGS__)
#define __duet_packmany(...)                                           \
	({                                                             \
		_Static_assert(0, "at most 12 values: use two calls"); \
		0ULL;                                                  \
	})
#define __duet_paste_(a, b) a##b
#define __duet_paste(a, b)  __duet_paste_(a, b)
/* Checks the format and declares __values[]. */
#define __duet_format(format, ...)                            \
	(void)sizeof((printf)(format, ##__VA_ARGS__));        \
	const unsigned long long __values[] = { __duet_paste( \
		__duet_pack, __DUET_COUNT(__VA_ARGS__))(__VA_ARGS__) }

/* printf: to the script's standard output (a machine format's file with -o). Characters, or < 0. */
#define printf(format, ...)                                         \
	({                                                          \
		__duet_format(format, ##__VA_ARGS__);               \
		__printf_n(format, __values, sizeof(__values) / 8); \
	})
/* fprintf: to an open FILE. */
#define fprintf(file, format, ...)                                         \
	({                                                                 \
		__duet_format(format, ##__VA_ARGS__);                      \
		__fprintf_n(file, format, __values, sizeof(__values) / 8); \
	})
/* dprintf: to a file descriptor. */
#define dprintf(fd, format, ...)                                         \
	({                                                               \
		__duet_format(format, ##__VA_ARGS__);                    \
		__dprintf_n(fd, format, __values, sizeof(__values) / 8); \
	})
/* snprintf: at most @size bytes with the final NUL; returns what the whole text would need. */
#define snprintf(buffer, size, format, ...)                                         \
	({                                                                          \
		__duet_format(format, ##__VA_ARGS__);                               \
		__snprintf_n(buffer, size, format, __values, sizeof(__values) / 8); \
	})
/* text(array, format, ...): snprintf into a char array whose size the compiler knows. */
#define text(array, format, ...)                                                                  \
	({                                                                                        \
		_Static_assert(!__builtin_types_compatible_p(typeof(array), typeof(&(array)[0])), \
			       "text: wants an array, not a pointer: use snprintf");              \
		snprintf(array, sizeof(array), format, ##__VA_ARGS__);                            \
	})
