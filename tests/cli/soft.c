// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Arithmetic that BPF has no instructions for: floating point, 128 bits, signed division. Compiled
 * twice, by gcc-bpf as a user half and natively: both must print the same. For soft.t.
 */
typedef unsigned long long u64;
typedef long long s64;
typedef __int128 s128;
typedef unsigned __int128 u128;

#ifdef __BPF__
#define SEC(name) __attribute__((section(name), used))
extern int __printf_n(const char *format, const u64 *values, unsigned int count);
char its_license[] SEC("license") = "Dual BSD/GPL";
#else
#include <stdio.h>
static int __printf_n(const char *format, const u64 *values, unsigned int count)
{
	return count == 1 ? printf(format, values[0]) : printf(format, values[0], values[1]);
}
#endif

union bits64 {
	double number;
	u64 bits;
};
union bits32 {
	float number;
	unsigned int bits;
};

static void show(const char *name, u64 value)
{
	u64 values[2];

	values[0] = (unsigned long)name;
	values[1] = value;
	__printf_n("%s %llx\n", values, 2);
}

/* What is no number has many forms: one stands for all. */
static void show_double(const char *name, double value)
{
	union bits64 bits = { .number = value };

	show(name, (bits.bits & ~(1ull << 63)) > 0x7ff0000000000000ull ? 0x7ff8000000000000ull
								       : bits.bits);
}

static void show_float(const char *name, float value)
{
	union bits32 bits = { .number = value };

	show(name, (bits.bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits.bits);
}

static void show_wide(const char *name, u128 value)
{
	show(name, (u64)(value >> 64));
	show(name, (u64)value);
}

/* Not constant: gcc-bpf 12 writes wrong floating-point constants into code. */
double doubles_of[] = { 0.0,   -0.0,   1.0,     -1.5,         3.14159265358979,   1e10,
			-1e15, 1e-300, 1.7e308, 4294967296.0, 9007199254740993.0, 0.1 };
float floats_of[] = { 0.0f,   -0.0f,  1.0f,  -1.5f,         3.14159265f, 1e10f,
		      -1e15f, 1e-30f, 1e30f, 4294967296.0f, 3e-39f,      0.1f };
double none_of[] = { __builtin_nan(""), __builtin_inf(), -__builtin_inf() };
float none_f_of[] = { __builtin_nanf(""), __builtin_inff(), -__builtin_inff() };
double big = 4294967296.0, huge = 1e15, most_of = 9e18;
int five = 5, minus_three = -3;
float big_f = 4294967296.0f, most_f = 9e18f;

#define KEEP static __attribute__((noinline, noclone, unused))

KEEP void doubles(const double *x, const double *y)
{
	show_double("add", *x + *y);
	show_double("sub", *x - *y);
	show_double("mul", *x * *y);
	show_double("div", *x / *y);
	show_double("neg", -*x);
	show("lt", *x < *y);
	show("le", *x <= *y);
	show("gt", *x > *y);
	show("ge", *x >= *y);
	show("eq", *x == *y);
	show("ne", *x != *y);
	show("unordered", __builtin_isunordered(*x, *y));
	show("less", __builtin_isless(*x, *y));
	show_float("narrow", *x);
}

KEEP void floats(const float *x, const float *y)
{
	show_float("addf", *x + *y);
	show_float("subf", *x - *y);
	show_float("mulf", *x * *y);
	show_float("divf", *x / *y);
	show("ltf", *x < *y);
	show("lef", *x <= *y);
	show("gtf", *x > *y);
	show("eqf", *x == *y);
	show("unorderedf", __builtin_isunordered(*x, *y));
	show_double("widen", *x);
}

KEEP void from_double(const double *x)
{
	show("to s64", (s64)*x);
	show("to s32", (s64)(int)(*x / big));
	if (*x >= 0) {
		show("to u64", (u64)*x);
		show("to u32", (unsigned int)(*x / big));
		show_wide("to u128", (u128)(*x * huge));
	}
	show_wide("to s128", (u128)(s128)(*x * huge));
	show_double("powi", __builtin_powi(*x, five));
	show_double("powi", __builtin_powi(*x, minus_three));
}

KEEP void from_float(const float *x)
{
	show("f to s64", (s64)*x);
	show("f to s32", (s64)(int)(*x / big_f));
	if (*x >= 0) {
		show("f to u64", (u64)*x);
		show("f to u32", (unsigned int)(*x / big_f));
	}
}

KEEP void to_floating(const s64 *x)
{
	show_double("from s64", *x);
	show_double("from u64", (u64)*x);
	show_double("from s32", (int)*x);
	show_double("from u32", (unsigned int)*x);
	show_float("f from s64", *x);
	show_float("f from u64", (u64)*x);
	show_float("f from s32", (int)*x);
	show_float("f from u32", (unsigned int)*x);
}

KEEP void integers(const s64 *x, const s64 *y)
{
	if (*y && *y != -1) {
		show("sdiv", *x / *y);
		show("smod", *x % *y);
	}
	if ((int)*y && (int)*y != -1) {
		show("sdiv32", (s64)((int)*x / (int)*y));
		show("smod32", (s64)((int)*x % (int)*y));
	}
	if (*x) {
		show("clz", __builtin_clzll(*x));
		show("ctz", __builtin_ctzll(*x));
	}
	show("ffs", __builtin_ffsll(*x));
	show("popcount", __builtin_popcountll(*x));
	show("parity", __builtin_parityll(*x));
	show("bswap", __builtin_bswap64(*x));
}

/* Loops and jumps around the calls: instructions are put in behind each. */
KEEP void wide(const s64 *x, const s64 *y)
{
	u128 a = (u128)(u64)*x << 40 ^ (u64)*y, b = (s128)*y * 3 + 1;
	u64 high;
	int i;

	show_wide("wmul", a * b);
	if (b) {
		show_wide("wudiv", a / b);
		show_wide("wumod", a % b);
		if ((s128)b != -1) {
			show_wide("wsdiv", (u128)((s128)a / (s128)b));
			show_wide("wsmod", (u128)((s128)a % (s128)b));
		}
	}
	for (i = 0; i < 128; i += 37) {
		show_wide("wshl", a << i);
		show_wide("wshr", a >> i);
		show_wide("wsar", (u128)((s128)a >> i));
	}
	high = (u128)(u64)*x * (u64)*y >> 64;
	for (i = 0; i < 3; i++) {
		high = (u128)high * 0x9e3779b97f4a7c15ull >> 64 ^ i;
		if (high & 1)
			continue;
		high += (u64)((u128)high * (u64)*y / 7);
	}
	show("high", high);
	show("wlt", (s128)a < (s128)b);
	show_double("from u128", a);
	show_double("from s128", (s128)b);
	show_float("f from u128", a);
}

s64 integers_of[] = { 0,
		      1,
		      -1,
		      2,
		      -7,
		      10000,
		      -65536,
		      1ll << 31,
		      -(1ll << 31),
		      0x123456789abcdef,
		      (s64)(1ull << 63),
		      ~(s64)(1ull << 63) };

KEEP void everything(void)
{
	const int n = sizeof(doubles_of) / sizeof(doubles_of[0]);
	int i, k;

	for (i = 0; i < n; i++) {
		double most = doubles_of[i] > most_of ? most_of : doubles_of[i];
		float mostf = floats_of[i] > most_f ? most_f : floats_of[i];

		for (k = 0; k < n; k++) {
			doubles(&doubles_of[i], &doubles_of[k]);
			floats(&floats_of[i], &floats_of[k]);
			integers(&integers_of[i], &integers_of[k]);
			wide(&integers_of[i], &integers_of[k]);
		}
		for (k = 0; k < 3; k++) {
			doubles(&doubles_of[i], &none_of[k]);
			doubles(&none_of[k], &doubles_of[i]);
			floats(&none_f_of[k], &floats_of[i]);
		}
		from_double(&most);
		from_float(&mostf);
		to_floating(&integers_of[i]);
	}
	doubles(&none_of[0], &none_of[1]);
	doubles(&none_of[1], &none_of[2]);
}

#ifdef __BPF__
SEC("user/exit") int report(void *e)
{
	everything();
	return 0;
}
#else
int main(void)
{
	everything();
	return 0;
}
#endif
