// SPDX-License-Identifier: BSD-2-Clause
/* Doubles travel as their bits: BPF has no floating-point registers. */
#include "hook/checked.h"

#include <string.h>

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t as_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#define F64_BINARY(name, operator)                                    \
	NATIVE(fn_f64_##name)                                         \
	{                                                             \
		return as_bits(as_double(a1) operator as_double(a2)); \
	}
#define F64_COMPARE(name, operator)                          \
	NATIVE(fn_f64_##name)                                \
	{                                                    \
		return as_double(a1) operator as_double(a2); \
	}
F64_BINARY(add, +)
F64_BINARY(sub, -)
F64_BINARY(mul, *)
F64_BINARY(div, /)
F64_COMPARE(lt, <)
F64_COMPARE(le, <=)
F64_COMPARE(gt, >)
F64_COMPARE(ge, >=)
F64_COMPARE(eq, ==)
F64_COMPARE(ne, !=)

NATIVE(fn_f64_neg)
{
	return as_bits(-as_double(a1));
}

NATIVE(fn_f64_from_s64)
{
	return as_bits((double)(int64_t)a1);
}

NATIVE(fn_f64_from_u64)
{
	return as_bits((double)a1);
}

/* Out of range: the nearest end, NaN: 0; C leaves both undefined. */
NATIVE(fn_f64_to_s64)
{
	double value = as_double(a1);

	if (value != value)
		return 0;
	if (value >= 9223372036854775808.0)
		return INT64_MAX;
	return value <= -9223372036854775808.0 ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)value;
}

NATIVE(fn_f64_to_u64)
{
	double value = as_double(a1);

	if (value != value || value <= 0)
		return 0;
	return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}

NATIVE(fn_ratio)
{
	return as_bits(a2 ? (double)a1 / (double)a2 : 0);
}

NATIVE(fn_per_mille)
{
	return a2 ? (uint64_t)((unsigned __int128)a1 * 1000 / a2) : 0;
}

NATIVE(fn_mul_div)
{
	return a3 ? (uint64_t)((unsigned __int128)a1 * a2 / a3) : 0;
}

const struct hook_function hook_functions_math[] = {
	{ "ratio", fn_ratio, &hook_contract_none },
	{ "per_mille", fn_per_mille, &hook_contract_none },
	{ "mul_div", fn_mul_div, &hook_contract_none },
	{ "f64_add", fn_f64_add, &hook_contract_none, VM_F64_ADD },
	{ "f64_sub", fn_f64_sub, &hook_contract_none, VM_F64_SUB },
	{ "f64_mul", fn_f64_mul, &hook_contract_none, VM_F64_MUL },
	{ "f64_div", fn_f64_div, &hook_contract_none, VM_F64_DIV },
	{ "f64_neg", fn_f64_neg, &hook_contract_none, VM_F64_NEG },
	{ "f64_lt", fn_f64_lt, &hook_contract_none, VM_F64_LT },
	{ "f64_le", fn_f64_le, &hook_contract_none, VM_F64_LE },
	{ "f64_gt", fn_f64_gt, &hook_contract_none, VM_F64_GT },
	{ "f64_ge", fn_f64_ge, &hook_contract_none, VM_F64_GE },
	{ "f64_eq", fn_f64_eq, &hook_contract_none, VM_F64_EQ },
	{ "f64_ne", fn_f64_ne, &hook_contract_none, VM_F64_NE },
	{ "f64_from_s64", fn_f64_from_s64, &hook_contract_none, VM_F64_FROM_S64 },
	{ "f64_from_u64", fn_f64_from_u64, &hook_contract_none, VM_F64_FROM_U64 },
	{ "f64_to_s64", fn_f64_to_s64, &hook_contract_none, VM_F64_TO_S64 },
	{ "f64_to_u64", fn_f64_to_u64, &hook_contract_none },
	{ NULL },
};
