// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic with results of 128 bits: see hook/soft.h. Operands lie in r1, r2 and r3, r4, lower half
 * first. */
#include "hook/soft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;

#define ADDED 3 /* slots behind a call: r1 = &upper ll; r1 = *(u64 *)(r1 + 0) */

static wide pair(uint64_t low, uint64_t high)
{
	return (wide)high << 64 | low;
}

static uint64_t give(void *context, wide value)
{
	struct hook_half *half = context;

	half->upper = (uint64_t)(value >> 64);
	return (uint64_t)value;
}

static double as_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static float as_float(uint64_t bits)
{
	uint32_t lower = (uint32_t)bits;
	float value;

	memcpy(&value, &lower, sizeof(value));
	return value;
}

NATIVE(multi3)
{
	return give(context, pair(a1, a2) * pair(a3, a4));
}

NATIVE(udivti3)
{
	wide y = pair(a3, a4);

	return give(context, y ? pair(a1, a2) / y : 0);
}

NATIVE(umodti3)
{
	wide y = pair(a3, a4);

	return give(context, y ? pair(a1, a2) % y : pair(a1, a2));
}

NATIVE(divti3)
{
	__int128 x = (__int128)pair(a1, a2), y = (__int128)pair(a3, a4);

	return give(context, !y ? 0 : y == -1 ? -(wide)x : (wide)(x / y));
}

NATIVE(modti3)
{
	__int128 x = (__int128)pair(a1, a2), y = (__int128)pair(a3, a4);

	return give(context, !y ? (wide)x : y == -1 ? 0 : (wide)(x % y));
}

NATIVE(negti2)
{
	return give(context, -pair(a1, a2));
}

NATIVE(ashlti3)
{
	return give(context, pair(a1, a2) << (a3 & 127));
}

NATIVE(lshrti3)
{
	return give(context, pair(a1, a2) >> (a3 & 127));
}

NATIVE(ashrti3)
{
	return give(context, (wide)((__int128)pair(a1, a2) >> (a3 & 127)));
}

/* Out of range: the nearest end; what is no number: 0. */
static wide from_double(double value, bool is_signed)
{
	const double top = 170141183460469231731687303715884105728.0; /* 2^127 */
	const wide most = is_signed ? ~(wide)0 >> 1 : ~(wide)0;

	if (value != value || (!is_signed && value <= 0))
		return 0;
	if (value >= (is_signed ? top : 2 * top))
		return most;
	if (!is_signed)
		return (wide)value;
	return value <= -top ? (wide)1 << 127 : (wide)(__int128)value;
}

NATIVE(fixdfti)
{
	return give(context, from_double(as_double(a1), true));
}

NATIVE(fixunsdfti)
{
	return give(context, from_double(as_double(a1), false));
}

NATIVE(fixsfti)
{
	return give(context, from_double(as_float(a1), true));
}

NATIVE(fixunssfti)
{
	return give(context, from_double(as_float(a1), false));
}

#define ROW(name)                                     \
	{                                             \
		"__" #name, name, &hook_contract_none \
	}

const struct hook_function hook_functions_wide[] = {
	ROW(multi3),     ROW(divti3),  ROW(udivti3),    ROW(modti3),  ROW(umodti3),
	ROW(negti2),     ROW(ashlti3), ROW(lshrti3),    ROW(ashrti3), ROW(fixdfti),
	ROW(fixunsdfti), ROW(fixsfti), ROW(fixunssfti), { NULL },
};

/* ---- the upper half ------------------------------------------------------------------------------ */

static bool is_wide(const struct vm_native *native)
{
	for (const struct hook_function *row = hook_functions_wide; row->name; row++) {
		if (native->with_context && native->function == (void *)row->function)
			return true;
	}
	return false;
}

static bool calls_wide(const struct hook_half *half, const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
	       (uint32_t)insn->imm < half->nnatives && is_wide(&half->natives[insn->imm]);
}

static bool is_lddw(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

/* Where each slot goes, in half->moved; returns how many there will be. */
static uint32_t place(struct hook_half *half, uint32_t *moved, uint32_t count)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		moved[i] = at++;
		if (is_lddw(&half->code[i]) && i + 1 < count)
			moved[++i] = at++;
		else if (calls_wide(half, &half->code[i]))
			at += ADDED;
	}
	return at;
}

/* The distance of a jump or local call: in imm or in off; NULL: none. */
static int adjust(struct bpf_insn *insn, const uint32_t *moved, uint32_t at, uint32_t count,
		  struct err *err)
{
	uint8_t class = BPF_CLASS(insn->code), operation = BPF_OP(insn->code);
	bool call = insn->code == (BPF_JMP | BPF_CALL);
	bool in_imm = call || (class == BPF_JMP32 && operation == BPF_JA);
	int64_t target, distance;

	if ((class != BPF_JMP && class != BPF_JMP32) || operation == BPF_EXIT ||
	    (operation == BPF_CALL && (!call || insn->src_reg != BPF_PSEUDO_CALL)))
		return 0;
	target = (int64_t)at + 1 + (in_imm ? insn->imm : insn->off);
	if (target < 0 || target >= count)
		return 0; /* the validator refuses it */
	distance = (int64_t)moved[target] - moved[at] - 1;
	if (in_imm)
		insn->imm = (int32_t)distance;
	else if (distance != (int16_t)distance)
		return err_set(err, -EINVAL,
			       "a jump over so many calls of 128-bit arithmetic that "
			       "it becomes too long: split the function");
	else
		insn->off = (int16_t)distance;
	return 0;
}

/* Code in its new places, and how it goes on behind the calls. */
static void copy(const struct hook_half *half, const uint32_t *moved, uint32_t count,
		 struct bpf_insn *ret, uint32_t *origins)
{
	uint64_t upper = (uintptr_t)&half->upper;

	for (uint32_t i = 0; i < count; i++) {
		struct bpf_insn *to = &ret[moved[i]];

		*to = half->code[i];
		origins[moved[i]] = i;
		if (is_lddw(to) && i + 1 < count) {
			i++;
			ret[moved[i]] = half->code[i];
			origins[moved[i]] = i;
			continue;
		}
		if (!calls_wide(half, &half->code[i]))
			continue;
		to[1] = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW,
					   .dst_reg = BPF_REG_1,
					   .imm = (int32_t)(uint32_t)upper };
		to[2] = (struct bpf_insn){ .imm = (int32_t)(uint32_t)(upper >> 32) };
		to[3] = (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_DW,
					   .dst_reg = BPF_REG_1,
					   .src_reg = BPF_REG_1 };
		for (uint32_t k = 1; k <= ADDED; k++)
			origins[moved[i] + k] = i;
	}
}

static void move_functions(struct hook_half *half, const uint32_t *moved, uint32_t total)
{
	const struct user_half *user = half->options.user;

	for (size_t i = 0; i < user->nfunctions; i++) {
		uint32_t first = user->functions[i].first, end = first + user->functions[i].count;

		half->functions[i].first = moved[first];
		half->functions[i].count = (end < user->ncode ? moved[end] : total) - moved[first];
	}
}

int hook_widen(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	CLEANUP(free_pointer) uint32_t *moved = calloc(user->ncode + 1, sizeof(*moved));
	struct bpf_insn *code;
	uint32_t total, *origins;
	char where[300];
	int rc = 0;

	if (!moved)
		return err_nomem(err);
	total = place(half, moved, user->ncode);
	half->ncode = total;
	if (total == user->ncode)
		return 0;
	code = calloc(total, sizeof(*code));
	origins = calloc(total, sizeof(*origins));
	if (!code || !origins) {
		free(code);
		free(origins);
		return err_nomem(err);
	}
	copy(half, moved, user->ncode, code, origins);
	for (uint32_t i = 0; i < user->ncode && !rc; i++) {
		if (i && is_lddw(&half->code[i - 1]) && !half->code[i].code)
			continue;
		rc = adjust(&code[moved[i]], moved, i, user->ncode, err);
		if (rc)
			err_prepend(err, rc, "%s", hook_where(half, i, where, sizeof(where)));
	}
	move_functions(half, moved, total);
	free(half->code);
	half->code = code;
	half->origins = origins;
	return rc;
}

uint32_t hook_half_insn(const struct hook_half *half, uint32_t insn)
{
	return half->origins && insn < half->ncode ? half->origins[insn] : insn;
}

int hook_widen_allow(struct hook_half *half, struct err *err)
{
	if (half->origins && vm_region_add(half->vm, &half->upper, sizeof(half->upper), 0))
		return err_nomem(err);
	return 0;
}
