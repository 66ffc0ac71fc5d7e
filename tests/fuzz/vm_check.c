// SPDX-License-Identifier: BSD-2-Clause
#include "vm_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vm_program.h"

#define CHECK(condition, ...)                                                           \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__);                                   \
			fprintf(stderr, "\n");                                          \
			abort();                                                        \
		}                                                                       \
	} while (0)

/* Engines that must take every valid program. */
#define COMPILER_LANDED true

#define BUDGET      20000
#define STACK_BYTES 16384
#define CANARY      0xc5
#define ELEMENTS    4
#define HANDLE      0x7001

/* Nothing but `memory` and `elements` may change. */
static struct {
	uint8_t before[256], memory[VM_PROGRAM_MEMORY], between[256], elements[ELEMENTS][16],
		after[256];
} arena;

struct end {
	int rc;
	uint64_t result;
	struct vm_fault fault;
	uint8_t memory[VM_PROGRAM_MEMORY], elements[ELEMENTS][16];
};

static uint64_t lookup(uint64_t handle, uint64_t index, uint64_t c, uint64_t d, uint64_t e,
		       void *context)
{
	uint32_t i;

	memcpy(&i, (const void *)(uintptr_t)index, sizeof(i));
	return handle == HANDLE && i < ELEMENTS ? (uintptr_t)arena.elements[i] : 0;
}

static uint64_t sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e;
}

/* A contract with memory in it. */
static uint64_t fill(uint64_t to, uint64_t byte, uint64_t size)
{
	memset((void *)(uintptr_t)to, byte, size);
	return to;
}

static const struct vm_contract looks_up = { .args[1] = { .demand = VM_READ, .bytes = 4 } };
static const struct vm_contract anything;
static const struct vm_contract fills = { .args[0] = { .demand = VM_WRITE, .count = 3 } };

static const struct vm_native natives[] = {
	{ .name = "lookup",
	  .function = lookup,
	  .result = VM_U64,
	  .with_context = true,
	  .intrinsic = VM_ARRAY_LOOKUP,
	  .contract = &looks_up },
	{ .name = "sum",
	  .function = sum,
	  .result = VM_U64,
	  .nargs = 5,
	  .args = { VM_U64, VM_U64, VM_U64, VM_U64, VM_U64 },
	  .contract = &anything },
	{ .name = "fill",
	  .function = fill,
	  .result = VM_U64,
	  .nargs = 3,
	  .args = { VM_POINTER, VM_S32, VM_U64 },
	  .contract = &fills },
	/* Checked mode refuses to call that. */
	{ .name = "unsafe", .function = sum, .result = VM_U64 },
};

#define NATIVES (sizeof(natives) / sizeof(natives[0]))

static bool make(const struct vm_program *program, enum vm_engine_kind engine, bool checked,
		 uint32_t passes_off, struct vm **ret, char *message, size_t message_size)
{
	static const struct vm_array array = { HANDLE, arena.elements, 16, ELEMENTS };
	struct vm_image image = { VM_IMAGE_SIZES,
				  .code = program->code,
				  .ncode = program->ncode,
				  .functions = program->functions,
				  .nfunctions = program->nfunctions,
				  .natives = natives,
				  .nnatives = NATIVES,
				  .arrays = &array,
				  .narrays = 1 };
	struct vm_options options = { .size = sizeof(options),
				      .stack_bytes = STACK_BYTES,
				      .call_depth = 16,
				      .instruction_budget = BUDGET,
				      .engine = engine,
				      .checked = checked,
				      .passes_off = passes_off };
	uint32_t bad = 0;
	int rc;

	/* What a compiler may need more than the interpreter, whose way to a result is the long one. */
	if (engine == VM_ENGINE_JIT)
		options.instruction_budget *= 4;
	rc = vm_create(&image, &options, ret, message, message_size, &bad);
	CHECK(!rc || rc == -EINVAL, "%d: %s", rc, message);
	CHECK(!rc == !message[0] && !strchr(message, '\n'), "%d: \"%s\"", rc, message);
	if (rc || !checked)
		return !rc;
	CHECK(!vm_region_add(*ret, arena.memory, sizeof(arena.memory), VM_REGION_WRITABLE),
	      "memory");
	CHECK(!vm_region_add(*ret, arena.elements, sizeof(arena.elements), VM_REGION_WRITABLE),
	      "elements");
	return true;
}

static bool is_canary(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] != CANARY)
			return false;
	return true;
}

static void run(struct vm *vm, struct end *end)
{
	uint64_t args[5] = { (uintptr_t)arena.memory, sizeof(arena.memory), 3, 4, 5 };

	memset(&arena, CANARY, sizeof(arena));
	for (size_t i = 0; i < sizeof(arena.memory); i++)
		arena.memory[i] = i * i + 7;
	memset(arena.elements, 0x11, sizeof(arena.elements));
	memset(end, 0, sizeof(*end));
	end->rc = vm_call(vm, 0, args, 5, &end->result, &end->fault);
	memcpy(end->memory, arena.memory, sizeof(end->memory));
	memcpy(end->elements, arena.elements, sizeof(end->elements));
	CHECK(is_canary(arena.before, sizeof(arena.before)) &&
		      is_canary(arena.between, sizeof(arena.between)) &&
		      is_canary(arena.after, sizeof(arena.after)),
	      "memory that is no region was written");
	CHECK(end->rc == 0 || end->rc == -EFAULT, "%d", end->rc);
	/* A callx to no function is told as the jump that it would have been; and the one address that
	 * an empty check lets through is one that the processor refuses. */
	CHECK(!end->rc || !end->fault.signal || end->fault.kind == VM_FAULT_EXECUTE ||
		      end->fault.address == UINT64_MAX,
	      "signal %d", end->fault.signal);
}

/* An inlined lookup reads its index itself. */
static enum vm_fault_kind kind(const struct end *end)
{
	return end->fault.kind == VM_FAULT_ARGUMENT ? VM_FAULT_READ : end->fault.kind;
}

/*
 * @exact: faults are the same faults. Without, a check that stands for several accesses may find
 * the fault of a later one before the earlier have happened.
 */
static bool same(const struct end *a, const struct end *b, bool exact)
{
	if (a->rc != b->rc || (a->rc && !exact))
		return a->rc == b->rc;
	if (a->rc && (kind(a) != kind(b) || a->fault.insn != b->fault.insn))
		return false;
	return (a->rc || a->result == b->result) &&
	       !memcmp(a->memory, b->memory, sizeof(a->memory)) &&
	       !memcmp(a->elements, b->elements, sizeof(a->elements));
}

static void run_compiled(const struct vm_program *program, uint32_t passes_off,
			 const struct end *expected)
{
	char message[256];
	struct end end;
	struct vm *vm;

	CHECK(make(program, VM_ENGINE_JIT, true, passes_off, &vm, message, sizeof(message)), "%s",
	      message);
	run(vm, &end);
	vm_destroy(vm);
	if (expected)
		CHECK(same(&end, expected, passes_off & VM_PASS_CHECKS),
		      "without passes %#x: %d kind %d insn %u result %#llx, not %d kind %d insn %u "
		      "result %#llx",
		      passes_off, end.rc, end.fault.kind, end.fault.insn,
		      (unsigned long long)end.result, expected->rc, expected->fault.kind,
		      expected->fault.insn, (unsigned long long)expected->result);
	/* Unchecked code is not run: it could do anything. */
	CHECK(make(program, VM_ENGINE_JIT, false, passes_off, &vm, message, sizeof(message)), "%s",
	      message);
	vm_destroy(vm);
}

/* How long a program runs and how deep it calls itself is each engine's own affair. */
static bool gave_up(const struct end *end)
{
	return end->rc && (end->fault.kind == VM_FAULT_BUDGET || end->fault.kind == VM_FAULT_STACK);
}

static bool takes_address(const struct vm_program *program)
{
	for (size_t i = 0; i < program->ncode; i++)
		if (program->code[i].code == (BPF_LD | BPF_IMM | BPF_DW) &&
		    program->code[i].src_reg == BPF_PSEUDO_FUNC)
			return true;
	return false;
}

bool vm_check(const void *data, size_t size)
{
	static struct vm_program program;
	const uint8_t *bytes = data;
	struct end here, there;
	struct vm *vm, *other;
	uint32_t passes_off;
	bool made, says;
	char message[256];

	if (size < 3)
		return false;
	made = bytes[0] & 1;
	passes_off = (bytes[1] | bytes[2] << 8) & VM_PASS_ALL;
	if (made)
		vm_program_made(&program, bytes + 3, size - 3, (uintptr_t)arena.memory,
				NATIVES - 1);
	else
		vm_program_raw(&program, bytes + 3, size - 3);
	if (!make(&program, VM_ENGINE_INTERPRETER, true, 0, &vm, message, sizeof(message))) {
		/* Copies of r10 may be moved further than the stack is. */
		CHECK(!made || !program.ncode || strstr(message, "bytes of stack"),
		      "what was made valid is refused: %s", message);
		return false;
	}
	CHECK(make(&program, VM_ENGINE_INTERPRETER, true, 0, &other, message, sizeof(message)),
	      "%s", message);
	run(vm, &here);
	run(other, &there);
	vm_destroy(vm);
	vm_destroy(other);
	/*
	 * A program says nothing when it does not end by itself, or when it depends on where its stack or its
	 * functions are; nor does one that reads registers which it has not written, as those may
	 * that come as they are.
	 */
	says = made && !takes_address(&program) && !gave_up(&here) && same(&here, &there, true) &&
	       here.result == there.result;
	if (!COMPILER_LANDED)
		return true;
	run_compiled(&program, 0, says ? &here : NULL);
	run_compiled(&program, VM_PASS_CHECKS, says ? &here : NULL);
	run_compiled(&program, passes_off, says ? &here : NULL);
	return true;
}
