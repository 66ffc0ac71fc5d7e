// SPDX-License-Identifier: BSD-2-Clause
#include "natives.h"

#include <errno.h>
#include <string.h>

#define HANDLE 0x7a3100000040

uint64_t native_handle(uint32_t array)
{
	return HANDLE + 0x100 * array;
}

static uint8_t *element(struct generate_memory *memory, uint64_t handle, uint64_t index)
{
	uint32_t array = (handle - HANDLE) / 0x100, i;

	memcpy(&i, (const void *)(uintptr_t)index, sizeof(i));
	if (i >= generate_arrays[array].entries)
		return NULL;
	return memory->arrays[array] + (size_t)i * generate_arrays[array].stride;
}

/* Spoils what the ABI lets a function spoil, so that nothing may rest there across a call. */
static void spoil(void)
{
#if defined(__x86_64__)
	__asm__ volatile(
		"mov $0x5a5a5a5a5a5a5a5a, %%rax\n\tmov %%rax, %%rcx\n\tmov %%rax, %%rdx\n\t"
		"mov %%rax, %%rsi\n\tmov %%rax, %%rdi\n\tmov %%rax, %%r8\n\t"
		"mov %%rax, %%r9\n\tmov %%rax, %%r10\n\tmov %%rax, %%r11\n\t"
		"movq %%rax, %%xmm0\n\tmovq %%rax, %%xmm1\n\tmovq %%rax, %%xmm7\n\t"
		"movq %%rax, %%xmm15"
		:
		:
		: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1",
		  "xmm7", "xmm15", "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x0, #0x5a5a\n\tmov x1, x0\n\tmov x2, x0\n\tmov x3, x0\n\t"
			 "mov x4, x0\n\tmov x5, x0\n\tmov x6, x0\n\tmov x7, x0\n\tmov x8, x0\n\t"
			 "mov x9, x0\n\tmov x10, x0\n\tmov x11, x0\n\tmov x12, x0\n\t"
			 "mov x13, x0\n\tmov x14, x0\n\tmov x15, x0\n\tmov x16, x0\n\t"
			 "mov x17, x0\n\tfmov d0, x0\n\tfmov d1, x0\n\tfmov d16, x0"
			 :
			 :
			 : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11",
			   "x12", "x13", "x14", "x15", "x16", "x17", "d0", "d1", "d16", "cc",
			   "memory");
#endif
}

static uint64_t lookup(uint64_t array, uint64_t index, uint64_t c, uint64_t d, uint64_t e,
		       void *context)
{
	uint64_t result = (uintptr_t)element(context, array, index);

	(void)c, (void)d, (void)e;
	spoil();
	return result;
}

/* As the kernel's arrays have it. */
static uint64_t update(uint64_t array, uint64_t index, uint64_t value, uint64_t flags, uint64_t e,
		       void *context)
{
	uint8_t *to = element(context, array, index);

	(void)e;
	if (!to)
		return -E2BIG;
	if (flags == BPF_NOEXIST)
		return -EEXIST;
	memcpy(to, (const void *)(uintptr_t)value,
	       generate_arrays[(array - HANDLE) / 0x100].value_size);
	return 0;
}

static uint64_t with_context(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			     void *context)
{
	struct generate_memory *memory = context;

	memory->value[GENERATE_VALUE - 1] += a;
	spoil();
	return a + 3 * b + 5 * c + 7 * d + 11 * e;
}

static uint64_t whole(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	uint64_t result = a ^ b << 1 ^ c << 2 ^ d << 3 ^ e << 4;

	spoil();
	return result;
}

static int16_t narrow(int8_t a, uint16_t b, int32_t c)
{
	return (uint32_t)(a * 3 + b * 5) + c;
}

/* No arithmetic: which of two that are no numbers wins is not our affair. */
static double doubles(double a, uint32_t b, float c)
{
	return b & 1 ? a : (double)(float)(b >> 8) + (c > 0);
}

static uint64_t callback(uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t),
			 uint64_t a, uint64_t b)
{
	return function(a, b, 1, 2, 3) + function(b, a, -1, 0, 7);
}

static double from_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t to_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#define TWO_DOUBLES(name, expression)                                     \
	static uint64_t f64_##name(uint64_t first, uint64_t second)       \
	{                                                                 \
		const double a = from_bits(first), b = from_bits(second); \
                                                                          \
		return expression;                                        \
	}
TWO_DOUBLES(add, to_bits(a + b))
TWO_DOUBLES(sub, to_bits(a - b))
TWO_DOUBLES(mul, to_bits(a *b))
TWO_DOUBLES(div, to_bits(a / b))
TWO_DOUBLES(lt, a < b)
TWO_DOUBLES(le, a <= b)
TWO_DOUBLES(gt, a > b)
TWO_DOUBLES(ge, a >= b)
TWO_DOUBLES(eq, a == b)
TWO_DOUBLES(ne, a != b)

static uint64_t f64_neg(uint64_t a)
{
	return a ^ 1ull << 63;
}

static uint64_t f64_from_s64(int64_t a)
{
	return to_bits(a);
}

static uint64_t f64_from_u64(uint64_t a)
{
	return to_bits(a);
}

/* Not a number: 0; what does not fit: the nearest that does. */
static uint64_t f64_to_s64(uint64_t a)
{
	double value = from_bits(a);

	if (value >= -0x1p63 && value < 0x1p63)
		return (int64_t)value;
	return value > 0 ? INT64_MAX : value < 0 ? (uint64_t)INT64_MIN : 0;
}

#define F64(NAME, c_name, n)                                                          \
	[GENERATE_FLOAT + VM_F64_##NAME - VM_F64_ADD] = { .name = "f64_" #c_name,     \
							  .function = f64_##c_name,   \
							  .result = VM_U64,           \
							  .nargs = n,                 \
							  .args = { VM_U64, VM_U64 }, \
							  .intrinsic = VM_F64_##NAME, \
							  .contract = &anything }

static const struct vm_contract anything;
static const struct vm_contract looks_up = { .args[1] = { .demand = VM_READ, .bytes = 4 } };
static const struct vm_contract updates = { .args[1] = { .demand = VM_READ, .bytes = 4 },
					    .args[2] = { .demand = VM_READ, .bytes = 8 } };
static const struct vm_contract calls_back = { .args[0] = { .demand = VM_CALLBACK } };

const struct vm_native natives[GENERATE_NATIVES] = {
	[GENERATE_LOOKUP] = { .name = "lookup",
			      .function = lookup,
			      .result = VM_U64,
			      .with_context = true,
			      .intrinsic = VM_ARRAY_LOOKUP,
			      .contract = &looks_up },
	[GENERATE_UPDATE] = { .name = "update",
			      .function = update,
			      .result = VM_U64,
			      .with_context = true,
			      .contract = &updates },
	[GENERATE_CONTEXT] = { .name = "with_context",
			       .function = with_context,
			       .result = VM_U64,
			       .with_context = true,
			       .contract = &anything },
	[GENERATE_WHOLE] = { .name = "whole",
			     .function = whole,
			     .result = VM_U64,
			     .nargs = 5,
			     .args = { VM_U64, VM_U64, VM_U64, VM_U64, VM_U64 },
			     .contract = &anything },
	[GENERATE_NARROW] = { .name = "narrow",
			      .function = narrow,
			      .result = VM_S16,
			      .nargs = 3,
			      .args = { VM_S8, VM_U16, VM_S32 },
			      .contract = &anything },
	[GENERATE_DOUBLE] = { .name = "doubles",
			      .function = doubles,
			      .result = VM_DOUBLE,
			      .nargs = 3,
			      .args = { VM_DOUBLE, VM_U32, VM_FLOAT },
			      .contract = &anything },
	[GENERATE_CALLBACK] = { .name = "callback",
				.function = callback,
				.result = VM_U64,
				.nargs = 3,
				.args = { VM_POINTER, VM_U64, VM_U64 },
				.contract = &calls_back },
	F64(ADD, add, 2),
	F64(SUB, sub, 2),
	F64(MUL, mul, 2),
	F64(DIV, div, 2),
	F64(NEG, neg, 1),
	F64(LT, lt, 2),
	F64(LE, le, 2),
	F64(GT, gt, 2),
	F64(GE, ge, 2),
	F64(EQ, eq, 2),
	F64(NE, ne, 2),
	F64(FROM_S64, from_s64, 1),
	F64(FROM_U64, from_u64, 1),
	F64(TO_S64, to_s64, 1),
};
