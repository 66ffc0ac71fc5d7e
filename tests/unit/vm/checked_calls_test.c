// SPDX-License-Identifier: BSD-2-Clause
/* Checked mode: what lies in no region is not touched by C functions either. */
#include "checked_fixture.h"

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

#define QSORT                                                                           \
	{                                                                               \
		"qsort", qsort, VM_VOID, 4, { VM_POINTER, VM_U64, VM_U64, VM_POINTER }, \
			.foreign = true, .contract = &sorts                             \
	}

/* main(base, count): qsort(base, count, 4, r9 of the image); function 1 is the comparator. */
static void qsort_is_checked(void **state)
{
	const struct vm_native natives[] = {
		QSORT,
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
		struct vm *vm = make_checked_image(&image);
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
		QSORT,
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
		struct vm *vm = current = make_checked_image(&image);

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
		struct vm *vm = make_checked_image(&image);

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
