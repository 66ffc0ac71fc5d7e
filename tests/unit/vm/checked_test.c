// SPDX-License-Identifier: BSD-2-Clause
/* Checked mode: what lies in no region is not touched, whoever asks. Each test runs with all
 * passes of the compiler, without the one about checks, and without any. */
#include "vm_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef TEST_ENGINE
#define TEST_ENGINE VM_ENGINE_INTERPRETER
#endif

#define CANARY 0xc5

/* An object between bytes that must stay as they are. */
struct guarded {
	uint8_t before[64], bytes[64], after[64];
};

static void set_guards(struct guarded *guarded)
{
	memset(guarded, CANARY, sizeof(*guarded));
	memset(guarded->bytes, 0, sizeof(guarded->bytes));
}

static void guards_are_whole(const struct guarded *guarded)
{
	for (size_t i = 0; i < sizeof(guarded->before); i++) {
		assert_int_equal(guarded->before[i], CANARY);
		assert_int_equal(guarded->after[i], CANARY);
	}
}

static const uint32_t pass_sets[] = { 0, VM_PASS_CHECKS, VM_PASS_ALL };

/* Set by every test's loop. */
static uint32_t passes_off;

static struct vm *make_checked(const struct bpf_insn *code, size_t ncode,
			       const struct vm_native *natives, size_t n)
{
	struct vm_function function = { .name = "main", .count = ncode };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = ncode,
				  .functions = &function, .nfunctions = 1, .natives = natives,
				  .nnatives = n };
	struct vm_options options = { .size = sizeof(options),
				      .engine = TEST_ENGINE,
				      .checked = true,
				      .passes_off = passes_off };

	return make_vm(&image, &options);
}

#define MAKE(code) make_checked(code, COUNT_OF(code), NULL, 0)
#define EACH_SET                                                                               \
	for (size_t set = 0; set < COUNT_OF(pass_sets) && (passes_off = pass_sets[set], true); \
	     set++)

/* @text with one %#llx for @address */
static struct vm_fault faults(struct vm *vm, uint64_t a, uint64_t b, enum vm_fault_kind kind,
			      const char *text, uint64_t address)
{
	char wanted[200];

	snprintf(wanted, sizeof(wanted), text, (unsigned long long)address);
	return call_fault(vm, a, b, kind, wanted);
}

/* ---- accesses -------------------------------------------------------------------------------- */

static void access_ends_with_its_region(void **state)
{
	const struct bpf_insn load[] = { LDX_DW(0, 1, 0), EXIT() };
	const struct bpf_insn store[] = { STX_DW(1, 2, 0), EXIT() };
	struct guarded guarded;
	uint64_t first = (uintptr_t)guarded.bytes, last = first + sizeof(guarded.bytes) - 8;

	(void)state;
	EACH_SET
	{
		struct vm *reader = MAKE(load), *writer = MAKE(store);

		set_guards(&guarded);
		assert_int_equal(vm_region_add(reader, guarded.bytes, 64, 0), 0);
		assert_int_equal(vm_region_add(writer, guarded.bytes, 64, VM_REGION_WRITABLE), 0);
		call(reader, first, 0);
		call(reader, last, 0);
		call(writer, first, 1);
		call(writer, last, 2);
		for (int by = 1; by <= 8; by++) {
			faults(reader, first - by, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
			       first - by);
			faults(reader, last + by, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
			       last + by);
			faults(writer, first - by, 7, VM_FAULT_WRITE, "write of 8 bytes at 0x%llx",
			       first - by);
			faults(writer, last + by, 7, VM_FAULT_WRITE, "write of 8 bytes at 0x%llx",
			       last + by);
		}
		/* Forged: null, an integer, our own memory, kernel memory, the end of all. */
		faults(writer, 0, 7, VM_FAULT_WRITE, "write of 8 bytes at 0x0", 0);
		faults(writer, 0x12345, 7, VM_FAULT_WRITE, "write of 8 bytes at 0x12345", 0);
		faults(writer, (uintptr_t)writer, 7, VM_FAULT_WRITE, "write of 8 bytes at 0x%llx",
		       (uintptr_t)writer);
		faults(writer, 1ULL << 63, 7, VM_FAULT_WRITE,
		       "write of 8 bytes at 0x8000000000000000", 0);
		faults(writer, UINT64_MAX, 7, VM_FAULT_WRITE,
		       "write of 8 bytes at 0xffffffffffffffff", 0);
		guards_are_whole(&guarded);
		vm_destroy(reader);
		vm_destroy(writer);
	}
}

static void read_only_regions_are_not_written(void **state)
{
	const struct bpf_insn code[] = { LDX_B(0, 1, 0), STX_B(1, 2, 0), EXIT() };
	uint64_t object = 5, address = (uintptr_t)&object;

	(void)state;
	EACH_SET
	{
		struct vm *vm = MAKE(code);
		struct vm_fault fault;

		assert_int_equal(vm_region_add(vm, &object, 8, 0), 0);
		fault = faults(vm, address, 9, VM_FAULT_WRITE, "write of 1 byte at 0x%llx",
			       address);
		assert_int_equal(fault.insn, 1);
		assert_int_equal(object, 5);
		assert_int_equal(vm_region_remove(vm, &object), 0);
		assert_int_equal(vm_region_add(vm, &object, 8, VM_REGION_WRITABLE), 0);
		call(vm, address, 5);
		vm_destroy(vm);
	}
}

static void atomics_are_checked(void **state)
{
	static const int32_t operations[] = { 0x00, 0x40, 0x50, 0xa0, 0x01,
					      0x41, 0x51, 0xa1, 0xe1, 0xf1 };
	struct guarded guarded;
	uint64_t beyond = (uintptr_t)guarded.after;

	(void)state;
	EACH_SET
	{
		for (size_t i = 0; i < COUNT_OF(operations); i++) {
			for (int size = 0; size < 2; size++) {
				const struct bpf_insn code[] = {
					MOV_K(0, 0),
					RAW(size ? 0xdb : 0xc3, 1, 2, 0, operations[i]),
					MOV_K(0, 0),
					EXIT(),
				};
				struct vm *vm = MAKE(code);

				set_guards(&guarded);
				assert_int_equal(
					vm_region_add(vm, guarded.bytes, 64, VM_REGION_WRITABLE),
					0);
				call(vm, (uintptr_t)guarded.bytes, 3);
				faults(vm, beyond, 3, VM_FAULT_WRITE,
				       size ? "write of 8 bytes at 0x%llx"
					    : "write of 4 bytes at 0x%llx",
				       beyond);
				guards_are_whole(&guarded);
				vm_destroy(vm);
			}
		}
	}
}

/* Accesses of one block with one base may share a check: the fault is that of the first that is
 * not allowed, and what several regions hold together is allowed. */
static void joined_checks_name_the_access(void **state)
{
	const struct bpf_insn code[] = {
		LDX_DW(3, 1, 0), LDX_W(4, 1, 16), LDX_B(5, 1, 63), LDX_DW(0, 1, 60), EXIT(),
	};
	const struct bpf_insn apart[] = { LDX_B(3, 1, 0), STX_B(1, 2, 100), LDX_B(0, 1, 100),
					  EXIT() };
	struct guarded guarded;
	uint64_t address = (uintptr_t)guarded.bytes;

	(void)state;
	EACH_SET
	{
		struct vm *vm = MAKE(code);
		struct vm_fault fault;

		set_guards(&guarded);
		assert_int_equal(vm_region_add(vm, guarded.bytes, 64, 0), 0);
		fault = faults(vm, address, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
			       address + 60);
		assert_int_equal(fault.insn, 3);
		fault = faults(vm, address + 1, 0, VM_FAULT_READ, "read of 1 byte at 0x%llx",
			       address + 64);
		assert_int_equal(fault.insn, 2);
		fault = faults(vm, address - 1, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
			       address - 1);
		assert_int_equal(fault.insn, 0);
		vm_destroy(vm);

		vm = MAKE(apart);
		assert_int_equal(vm_region_add(vm, guarded.bytes, 1, 0), 0);
		assert_int_equal(vm_region_add(vm, guarded.bytes + 100, 1, VM_REGION_WRITABLE), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(call(vm, address, 77), 77);
		fault = faults(vm, address + 1, 7, VM_FAULT_READ, "read of 1 byte at 0x%llx",
			       address + 1);
		assert_int_equal(fault.insn, 0);
		vm_destroy(vm);
	}
}

/* for (i = 0; i < r2; i++) r0 += r1[0] + r1[i * 8]: runs out of its region in the middle. */
static void loops_stop_at_the_end(void **state)
{
	const struct bpf_insn code[] = {
		MOV_K(0, 0),
		MOV_K(3, 0),
		JEQ_K(2, 0, 10),
		LDX_DW(4, 1, 0),
		ADD_X(0, 4),
		MOV_X(5, 3),
		RAW(0x67, 5, 0, 0, 3), /* r5 <<= 3 */
		ADD_X(5, 1),
		LDX_DW(4, 5, 0),
		ADD_X(0, 4),
		ADD_K(3, 1),
		ADD_K(2, -1),
		JNE_K(2, 0, -10),
		EXIT(),
	};
	uint64_t numbers[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9 };
	uint64_t address = (uintptr_t)numbers;

	(void)state;
	EACH_SET
	{
		struct vm *vm = MAKE(code);
		struct vm_fault fault;

		assert_int_equal(vm_region_add(vm, numbers, 64, 0), 0);
		assert_int_equal(call(vm, address, 8), 16);
		fault = faults(vm, address, 9, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
			       address + 64);
		assert_int_equal(fault.insn, 8);
		vm_destroy(vm);
	}
}

/* ---- regions that go ---------------------------------------------------------------------------- */

static struct vm *current;

static uint64_t forget_region(uint64_t address)
{
	assert_int_equal(vm_region_remove(current, (void *)address), 0);
	return 0;
}

static const struct vm_contract nothing;

static void removed_regions_are_gone(void **state)
{
	const struct vm_native natives[] = {
		{ "forget", forget_region, VM_U64, 1, { VM_U64 }, .contract = &nothing },
	};
	const struct bpf_insn code[] = {
		MOV_X(6, 1), LDX_DW(7, 6, 0), STX_DW(6, 7, 8), MOV_X(1, 6),
		CALL(0),     LDX_DW(0, 6, 0), EXIT(),
	};
	uint64_t object[2] = { 4, 0 }, address = (uintptr_t)object;

	(void)state;
	EACH_SET
	{
		struct vm *vm = current = make_checked(code, COUNT_OF(code), natives, 1);
		struct vm_fault fault;

		for (int i = 0; i < 2; i++) {
			assert_int_equal(vm_region_add(vm, object, 16, VM_REGION_WRITABLE), 0);
			fault = faults(vm, address, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx",
				       address);
			assert_int_equal(fault.insn, 5);
		}
		/* Gone before the next call, and back, smaller. */
		fault = faults(vm, address, 0, VM_FAULT_READ, "read of 8 bytes at 0x%llx", address);
		assert_int_equal(fault.insn, 1);
		assert_int_equal(vm_region_add(vm, object, 8, VM_REGION_WRITABLE), 0);
		fault = faults(vm, address, 0, VM_FAULT_WRITE, "write of 8 bytes at 0x%llx",
			       address + 8);
		assert_int_equal(fault.insn, 2);
		vm_destroy(vm);
	}
}

/* Against a plain array of what is there. */
static void thousands_of_regions(void **state)
{
	enum { SLOTS = 3000, SLOT = 16 };
	const struct bpf_insn code[] = { LDX_B(0, 1, 0), EXIT() };
	static uint8_t memory[SLOTS * SLOT];
	static uint8_t sizes[SLOTS];
	struct vm *vm = MAKE(code);

	(void)state;
	srand(1);
	for (int round = 0; round < 60000; round++) {
		uint32_t slot = rand() % SLOTS, at = rand() % SLOTS, off = rand() % SLOT;
		uint64_t address = (uintptr_t)memory + at * SLOT + off;

		if (sizes[slot]) {
			assert_int_equal(vm_region_add(vm, memory + slot * SLOT, 1, 0), -EEXIST);
			assert_int_equal(vm_region_remove(vm, memory + slot * SLOT), 0);
			sizes[slot] = 0;
		} else {
			assert_int_equal(vm_region_remove(vm, memory + slot * SLOT), -ENOENT);
			sizes[slot] = 1 + rand() % SLOT;
			assert_int_equal(vm_region_add(vm, memory + slot * SLOT, sizes[slot], 0),
					 0);
		}
		assert_int_equal(vm_may_read(vm, address, 1), off < sizes[at]);
		assert_int_equal(vm_region_rest(vm, address, false),
				 off < sizes[at] ? sizes[at] - off : 0);
		assert_false(vm_may_write(vm, address, 1));
		if (round % 16 == 0 && off < sizes[at])
			call(vm, address, 0);
		else if (round % 16 == 0)
			faults(vm, address, 0, VM_FAULT_READ, "read of 1 byte at 0x%llx", address);
	}
	assert_int_equal(vm_region_clear(vm, memory + SLOT, (SLOTS - 2) * SLOT), 0);
	for (int i = 0; i < SLOTS; i++)
		assert_int_equal(vm_may_read(vm, (uintptr_t)memory + i * SLOT, 1),
				 sizes[i] && (i == 0 || i == SLOTS - 1));
	assert_int_equal(vm_region_add(vm, memory, 0, 0), -EINVAL);
	assert_int_equal(vm_region_add(vm, (void *)(UINTPTR_MAX - 3), 8, 0), -EINVAL);
	vm_destroy(vm);
}

/* ---- the stack ----------------------------------------------------------------------------------- */

static void frames_of_the_dead_are_not_read(void **state)
{
	/* callee(): *(r10 - 8) = 5; return r10 - 8. main(): return *callee(); */
	const struct bpf_insn code[] = {
		CALL_LOCAL(2), LDX_DW(0, 0, 0), EXIT(), ST_DW(10, -8, 5),
		MOV_X(0, 10),  ADD_K(0, -8),    EXIT(),
	};
	/* The other way round: the callee writes to the frame of its caller. */
	const struct bpf_insn down[] = {
		ST_DW(10, -8, 1),  MOV_X(1, 10), ADD_K(1, -8),   CALL_LOCAL(2),
		LDX_DW(0, 10, -8), EXIT(),       ST_DW(1, 0, 6), EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 3, 0 }, { "callee", 3, 4, 0 } };
	struct vm_image image = { VM_IMAGE_SIZES, .code = code, .ncode = COUNT_OF(code),
				  .functions = functions, .nfunctions = 2 };
	struct vm_function down_functions[] = { { "main", 0, 6, 0 }, { "callee", 6, 2, 0 } };

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .passes_off = passes_off };
		struct vm *vm = make_vm(&image, &options);
		struct vm_image down_image = image;
		struct vm_fault fault;

		assert_int_equal(vm_call(vm, 0, NULL, 0, NULL, &fault), -EFAULT);
		assert_int_equal(fault.kind, VM_FAULT_READ);
		assert_int_equal(fault.insn, 1);
		vm_destroy(vm);

		down_image.code = down;
		down_image.ncode = COUNT_OF(down);
		down_image.functions = down_functions;
		vm = make_vm(&down_image, &options);
		assert_int_equal(call(vm, 0, 0), 6);
		assert_false(vm_may_read(vm, (uintptr_t)&fault, 1));
		vm_destroy(vm);
	}
}

/* [r10 + r1] through a copy: inside the frame, at its end, above it. */
static void frames_have_ends(void **state)
{
	const struct bpf_insn code[] = { ST_DW(10, -16, 3), ST_DW(10, -8, 4), MOV_X(3, 10),
					 ADD_X(3, 1),       LDX_DW(0, 3, 0),  EXIT() };

	(void)state;
	EACH_SET
	{
		struct vm *vm = MAKE(code);
		uint64_t args[] = { (uint64_t)-7 };
		struct vm_fault fault;

		assert_int_equal(call(vm, (uint64_t)-16, 0), 3);
		assert_int_equal(call(vm, (uint64_t)-8, 0), 4);
		assert_int_equal(vm_call(vm, 0, args, 1, NULL, &fault), -EFAULT);
		assert_int_equal(fault.kind, VM_FAULT_READ);
		assert_int_equal(fault.insn, 4);
		args[0] = 4096;
		assert_int_equal(vm_call(vm, 0, args, 1, NULL, &fault), -EFAULT);
		args[0] = (uint64_t) - (1 << 20);
		assert_int_equal(vm_call(vm, 0, args, 1, NULL, &fault), -EFAULT);
		vm_destroy(vm);
	}
}

/* main(n, p): *p += 1; if (n) main(n - 1, p): its frame is in use. */
static void recursion_ends(void **state)
{
	const struct bpf_insn code[] = {
		LDX_DW(3, 2, 0),     ADD_K(3, 1),         STX_DW(2, 3, 0),
		STX_DW(10, 1, -512), JEQ_K(1, 0, 2),      ADD_K(1, -1),
		CALL_LOCAL(-7),      LDX_DW(0, 10, -512), EXIT(),
	};
	uint64_t count, address = (uintptr_t)&count;

	(void)state;
	EACH_SET
	{
		struct vm *vm = MAKE(code);

		vm_region_add(vm, &count, 8, VM_REGION_WRITABLE);
		for (int i = 0; i < 2; i++) {
			count = 0;
			assert_int_equal(call(vm, 100, address), 100);
			assert_int_equal(count, 101);
			faults(vm, 1 << 20, address, VM_FAULT_STACK,
			       "stack overflow: calls nest too deep", 0);
			assert_true(count > 200);
		}
		vm_destroy(vm);
	}
}

static void budgets_end_too(void **state)
{
	const struct bpf_insn code[] = { LDX_DW(0, 1, 0), JA(-2), EXIT() };
	struct vm_function function = { .name = "main", .count = COUNT_OF(code) };
	struct vm_image image = { VM_IMAGE_SIZES, .code = code, .ncode = COUNT_OF(code),
				  .functions = &function, .nfunctions = 1 };
	uint64_t object = 0;

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .instruction_budget = 1000,
					      .passes_off = passes_off };
		struct vm *vm = make_vm(&image, &options);

		vm_region_add(vm, &object, 8, 0);
		faults(vm, (uintptr_t)&object, 0, VM_FAULT_BUDGET, "instruction budget used up", 0);
		vm_destroy(vm);
	}
}

/* ---- calls of C -------------------------------------------------------------------------------- */

static const struct vm_contract copies = { .args = { { VM_WRITE, .count = 3 },
						     { VM_READ, .count = 3 } } };
static const struct vm_contract measures = { .args = { { VM_STRING } } };
static const struct vm_contract sorts = {
	.args = { { VM_CHANGE, .count = 2, .times = 3 }, { VM_ANY }, { VM_ANY }, { VM_CALLBACK } }
};

static void arguments_are_checked(void **state)
{
	const struct vm_native natives[] = {
		{ "memcpy",
		  memcpy,
		  VM_POINTER,
		  3,
		  { VM_POINTER, VM_POINTER, VM_U64 },
		  .contract = &copies },
		{ "strlen", strlen, VM_U64, 1, { VM_POINTER }, .contract = &measures },
	};
	struct guarded to, from;
	/* memcpy(to, from + r1, r2) */
	const struct bpf_insn copy[] = { MOV_X(3, 2), MOV_X(2, 1), LDDW(1, (uintptr_t)to.bytes),
					 CALL(0),     MOV_K(0, 0), EXIT() };
	const struct bpf_insn length[] = { CALL(1), EXIT() };
	uint64_t first = (uintptr_t)from.bytes;

	(void)state;
	EACH_SET
	{
		struct vm *vm = make_checked(copy, COUNT_OF(copy), natives, 2);
		struct vm_fault fault;

		set_guards(&to);
		set_guards(&from);
		vm_region_add(vm, to.bytes, 64, VM_REGION_WRITABLE);
		vm_region_add(vm, from.bytes, 64, 0);
		call(vm, first, 64);
		call(vm, 0, 0); /* nothing from nowhere */
		for (int i = 0; i < 2; i++) {
			fault = faults(vm, first + 1, 64, VM_FAULT_ARGUMENT,
				       "memcpy(): argument 2: read of 64 bytes at 0x%llx",
				       first + 1);
			assert_string_equal(fault.native, "memcpy");
			assert_int_equal(fault.address, first + 1);
			faults(vm, first, 65, VM_FAULT_ARGUMENT,
			       "memcpy(): argument 1: write of 65 bytes at 0x%llx",
			       (uintptr_t)to.bytes);
			faults(vm, first, UINT64_MAX, VM_FAULT_ARGUMENT,
			       "memcpy(): argument 1: write of 18446744073709551615 bytes at "
			       "0x%llx",
			       (uintptr_t)to.bytes);
		}
		vm_region_remove(vm, from.bytes);
		faults(vm, first, 1, VM_FAULT_ARGUMENT,
		       "memcpy(): argument 2: read of 1 byte at 0x%llx", first);
		guards_are_whole(&to);
		vm_destroy(vm);

		vm = make_checked(length, COUNT_OF(length), natives, 2);
		memset(from.bytes, 'x', 64);
		vm_region_add(vm, from.bytes, 64, 0);
		faults(vm, first, 0, VM_FAULT_ARGUMENT,
		       "strlen(): argument 1: the string at 0x%llx has no end in its memory",
		       first);
		faults(vm, 64, 0, VM_FAULT_ARGUMENT,
		       "strlen(): argument 1: read of a string at 0x40", 0);
		from.bytes[63] = 0;
		assert_int_equal(call(vm, first, 0), 63);
		vm_destroy(vm);
	}
}

static int compare(const uint32_t *a, const uint32_t *b)
{
	return *a < *b ? -1 : *a > *b;
}

/* main(base, count): qsort(base, count, 4, r9 of the image); function 1 is the comparator. */
static void qsort_is_checked(void **state)
{
	const struct vm_native natives[] = {
		{ "qsort",
		  qsort,
		  VM_VOID,
		  4,
		  { VM_POINTER, VM_U64, VM_U64, VM_POINTER },
		  .foreign = true,
		  .contract = &sorts },
		{ "forget", forget_region, VM_U64, 1, { VM_U64 }, .contract = &nothing },
	};
	uint64_t comparator = 0; /* 0: function 1 */
	const struct bpf_insn code[] = {
		MOV_K(3, 4),
		LDDW(5, (uintptr_t)&comparator),
		LDX_DW(4, 5, 0),
		JNE_K(4, 0, 2),
		LDDW_KIND(4, BPF_PSEUDO_FUNC, 1, 0),
		CALL(0),
		MOV_K(0, 0),
		EXIT(),
		/* return *a - *b */
		LDX_W(0, 1, 0),
		LDX_W(2, 2, 0),
		RAW(0x1f, 0, 2, 0, 0),
		EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 10, 0 }, { "compare", 10, 4, 0 } };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = COUNT_OF(code),
				  .functions = functions, .nfunctions = 2, .natives = natives,
				  .nnatives = 2 };
	struct guarded guarded;
	uint64_t first = (uintptr_t)guarded.bytes;

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .passes_off = passes_off };
		struct vm *vm = make_vm(&image, &options);
		uint32_t *numbers = (uint32_t *)guarded.bytes;

		set_guards(&guarded);
		for (int i = 0; i < 16; i++)
			numbers[i] = (i * 7) % 16;
		vm_region_add(vm, &comparator, 8, 0);
		vm_region_add(vm, guarded.bytes, 64, VM_REGION_WRITABLE);
		comparator = 0;
		call(vm, first, 16);
		for (uint32_t i = 0; i < 16; i++)
			assert_int_equal(numbers[i], i);
		faults(vm, first, 17, VM_FAULT_ARGUMENT,
		       "qsort(): argument 1: write of 68 bytes at 0x%llx", first);
		faults(vm, first - 4, 2, VM_FAULT_ARGUMENT,
		       "qsort(): argument 1: write of 8 bytes at 0x%llx", first - 4);
		faults(vm, first, 1ULL << 62, VM_FAULT_ARGUMENT,
		       "qsort(): argument 1: write of 18446744073709551615 bytes at 0x%llx", first);
		comparator = (uintptr_t)compare; /* C, not of the program */
		faults(vm, first, 16, VM_FAULT_ARGUMENT,
		       "qsort(): argument 4: 0x%llx is no function of the program",
		       (uintptr_t)compare);
		comparator = 64;
		faults(vm, first, 16, VM_FAULT_ARGUMENT,
		       "qsort(): argument 4: 0x40 is no function of the program", 0);
		guards_are_whole(&guarded);
		vm_destroy(vm);
	}
}

static int last_remove;

static uint64_t try_forget(uint64_t address)
{
	last_remove = vm_region_remove(current, (void *)address);
	return 0;
}

/* A comparator that takes away what qsort() sorts. */
static void sorted_memory_stays(void **state)
{
	const struct vm_native natives[] = {
		{ "qsort",
		  qsort,
		  VM_VOID,
		  4,
		  { VM_POINTER, VM_U64, VM_U64, VM_POINTER },
		  .foreign = true,
		  .contract = &sorts },
		{ "forget", try_forget, VM_U64, 1, { VM_U64 }, .contract = &nothing },
	};
	static uint32_t numbers[16];
	const struct bpf_insn code[] = {
		MOV_K(3, 4), LDDW_KIND(4, BPF_PSEUDO_FUNC, 1, 0), CALL(0), MOV_K(0, 0),
		EXIT(),      LDDW(1, (uintptr_t)numbers),         CALL(1), MOV_K(0, 1),
		EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 6, 0 }, { "compare", 6, 5, 0 } };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = COUNT_OF(code),
				  .functions = functions, .nfunctions = 2, .natives = natives,
				  .nnatives = 2 };

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .passes_off = passes_off };
		struct vm *vm = current = make_vm(&image, &options);

		vm_region_add(vm, numbers, sizeof(numbers), VM_REGION_WRITABLE);
		call(vm, (uintptr_t)numbers, 16);
		assert_int_equal(last_remove, -EBUSY);
		assert_int_equal(vm_region_remove(vm, numbers), 0);
		vm_destroy(vm);
	}
}

static void calls_go_to_known_functions(void **state)
{
	const struct vm_native natives[] = {
		{ "abs", abs, VM_S32, 1, { VM_S32 }, .contract = &nothing },
		{ "labs", labs, VM_S64, 1, { VM_S64 } }, /* no contract */
	};
	const struct bpf_insn code[] = { MOV_X(6, 1), MOV_X(1, 2), CALLX_DST(6), CALL(0), EXIT() };
	const struct bpf_insn refused[] = { CALL(1), EXIT() };
	struct vm_function function = { .name = "main", .count = 2 };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = refused, .ncode = 2,
				  .functions = &function, .nfunctions = 1, .natives = natives,
				  .nnatives = 2 };
	char message[200];

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .passes_off = passes_off };
		struct vm *vm = make_checked(code, COUNT_OF(code), natives, 2);

		call(vm, (uintptr_t)abs, (uint64_t)-3);
		faults(vm, (uintptr_t)labs, 1, VM_FAULT_EXECUTE,
		       "call of 0x%llx, which is no function", (uintptr_t)labs);
		faults(vm, (uintptr_t)exit, 1, VM_FAULT_EXECUTE,
		       "call of 0x%llx, which is no function", (uintptr_t)exit);
		faults(vm, 0, 1, VM_FAULT_EXECUTE, "call of a null pointer", 0);
		vm_destroy(vm);
		assert_int_equal(vm_create(&image, &options, &vm, message, sizeof(message), NULL),
				 -EINVAL);
		assert_string_equal(message, "instruction 0: calls labs(), which has no contract: "
					     "checked mode needs one");
	}
}

static void contracts_fit_their_functions(void **state)
{
	const struct vm_native natives[] = {
		{ "memcpy",
		  memcpy,
		  VM_POINTER,
		  2,
		  { VM_POINTER, VM_POINTER },
		  .contract = &measures },
		{ "strlen", strlen, VM_U64, 0, .contract = &measures },
	};
	const struct bpf_insn code[] = { MOV_K(0, 0), EXIT() };
	struct vm_function function = { .name = "main", .count = 2 };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,    .ncode = 2,
				  .functions = &function, .nfunctions = 1, .natives = natives,
				  .nnatives = 2 };
	struct vm_options options = { .size = sizeof(options),
				      .engine = TEST_ENGINE,
				      .checked = true };
	char message[200];
	struct vm *vm;

	(void)state;
	assert_int_equal(vm_create(&image, &options, &vm, message, sizeof(message), NULL), -EINVAL);
	assert_string_equal(message, "native function strlen: its contract demands something of an "
				     "argument that is no pointer or not there");
}

static uint64_t asks(uint64_t address, uint64_t size, uint64_t c, uint64_t d, uint64_t e,
		     void *context)
{
	(void)c, (void)d, (void)e, (void)context;
	if (!vm_may_write(current, address, size))
		vm_raise_argument(current, address, size, true);
	return vm_region_rest(current, address, true);
}

static void natives_may_ask(void **state)
{
	const struct vm_native native = { "asks", asks, VM_U64, .with_context = true,
					  .contract = &nothing };
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	uint64_t object[2], address = (uintptr_t)object;

	(void)state;
	EACH_SET
	{
		struct vm *vm = current = make_checked(code, COUNT_OF(code), &native, 1);
		struct vm_fault fault;

		vm_region_add(vm, object, 16, VM_REGION_WRITABLE);
		assert_int_equal(call(vm, address, 16), 16);
		assert_int_equal(call(vm, address + 4, 12), 12);
		fault = faults(vm, address, 17, VM_FAULT_ARGUMENT,
			       "asks(): write of 17 bytes at 0x%llx", address);
		assert_string_equal(fault.native, "asks");
		vm_destroy(vm);
	}
}

static uint64_t look_up(uint64_t handle, const uint8_t *key)
{
	return handle + *key;
}

/* A function that looks up in arrays and in other things, whose keys are shorter. */
static void keys_are_as_long_as_they_are(void **state)
{
	static const struct vm_contract reads_one = { .args = { { VM_ANY },
								{ VM_READ, .bytes = 1 } } };
	const struct vm_native native = { "look_up",
					  look_up,
					  VM_U64,
					  2,
					  { VM_U64, VM_POINTER },
					  .intrinsic = VM_ARRAY_LOOKUP,
					  .contract = &reads_one };
	const struct bpf_insn code[] = { MOV_X(2, 1), MOV_K(1, 77), CALL(0), EXIT() };
	struct vm_function function = { .name = "main", .count = COUNT_OF(code) };
	uint64_t values[2];
	const struct vm_array array = { .handle = 5, .data = values, .stride = 8, .entries = 2 };
	struct vm_image image = { VM_IMAGE_SIZES,         .code = code,     .ncode = COUNT_OF(code),
				  .functions = &function, .nfunctions = 1,  .natives = &native,
				  .nnatives = 1,          .arrays = &array, .narrays = 1 };
	uint8_t key = 3;

	(void)state;
	EACH_SET
	{
		struct vm_options options = { .size = sizeof(options),
					      .engine = TEST_ENGINE,
					      .checked = true,
					      .passes_off = passes_off };
		struct vm *vm = make_vm(&image, &options);

		assert_int_equal(vm_region_add(vm, &key, 1, 0), 0);
		assert_int_equal(call(vm, (uintptr_t)&key, 0), 80);
		faults(vm, (uintptr_t)&key + 1, 0, VM_FAULT_ARGUMENT,
		       "look_up(): argument 2: read of 1 byte at 0x%llx", (uintptr_t)&key + 1);
		vm_destroy(vm);
	}
}

static void unchecked_vms_say_yes(void **state)
{
	const struct bpf_insn code[] = { MOV_K(0, 0), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	(void)state;
	assert_int_equal(vm_region_add(vm, code, 1, 0), 0);
	assert_int_equal(vm_region_add(vm, code, 1, 0), 0);
	assert_int_equal(vm_region_remove(vm, code), 0);
	assert_int_equal(vm_region_clear(vm, NULL, SIZE_MAX), 0);
	assert_true(vm_may_write(vm, 8, 8));
	assert_true(vm_may_read_string(vm, 8));
	assert_true(vm_region_rest(vm, 8, true) == SIZE_MAX);
	vm_destroy(vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(access_ends_with_its_region),
		cmocka_unit_test(read_only_regions_are_not_written),
		cmocka_unit_test(atomics_are_checked),
		cmocka_unit_test(joined_checks_name_the_access),
		cmocka_unit_test(loops_stop_at_the_end),
		cmocka_unit_test(removed_regions_are_gone),
		cmocka_unit_test(thousands_of_regions),
		cmocka_unit_test(frames_of_the_dead_are_not_read),
		cmocka_unit_test(frames_have_ends),
		cmocka_unit_test(recursion_ends),
		cmocka_unit_test(budgets_end_too),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(qsort_is_checked),
		cmocka_unit_test(sorted_memory_stays),
		cmocka_unit_test(calls_go_to_known_functions),
		cmocka_unit_test(contracts_fit_their_functions),
		cmocka_unit_test(natives_may_ask),
		cmocka_unit_test(keys_are_as_long_as_they_are),
		cmocka_unit_test(unchecked_vms_say_yes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
