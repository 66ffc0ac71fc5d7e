// SPDX-License-Identifier: BSD-2-Clause
/* Checked mode: what lies in no region is not touched. */
#include "checked_fixture.h"

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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
