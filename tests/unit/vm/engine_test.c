// SPDX-License-Identifier: BSD-2-Clause
/* Compiled code as the process sees it: memory, addresses, frames, threads that are not ours. */
#define TEST_ENGINE VM_ENGINE_JIT
#include "threads.h"
#include "vm_fixture.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096ul

/* "rwxp" of the mapping that holds an address; any mapping with w and x fails. */
static void permissions(const void *address, char *ret)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], what[8];

	assert_non_null(maps);
	strcpy(ret, "none");
	while (fgets(line, sizeof(line), maps)) {
		assert_int_equal(sscanf(line, "%lx-%lx %7s", &start, &end, what), 3);
		assert_false(what[1] == 'w' && what[2] == 'x');
		if ((uintptr_t)address >= start && (uintptr_t)address < end)
			strcpy(ret, what);
	}
	fclose(maps);
}

static const struct bpf_insn five[] = { MOV_K(0, 5), EXIT() };

static void write_or_execute(void **state)
{
	struct vm *vm = make_simple(five, COUNT_OF(five), NULL, 0);
	uintptr_t code = (uintptr_t)vm_function_address(vm, 0) & ~(PAGE - 1);
	char what[8];

	(void)state;
	permissions((void *)code, what);
	assert_string_equal(what, "r-xp");
	permissions((void *)(code - 1), what); /* small: the code starts in its first page */
	assert_string_equal(what, "---p");
	vm_interrupt(vm, true);
	permissions((void *)code, what);
	assert_string_equal(what, "r--p");
	call_fault(vm, 0, 0, VM_FAULT_INTERRUPTED, "interrupted");
	permissions((void *)code, what);
	assert_string_equal(what, "r-xp");
	assert_int_equal(call(vm, 0, 0), 5);
	vm_destroy(vm);
	permissions((void *)code, what);
	assert_string_not_equal(what, "r-xp");
}

static void near_what_it_calls(void **state)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	const struct vm_function function = WHOLE(code);
	const struct vm_native native = { .name = "strlen",
					  .function = strlen,
					  .result = VM_U64,
					  .nargs = 1,
					  .args = { VM_POINTER } };
	const struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1,
					&native,        1 };
	struct vm_options far = { .size = sizeof(far), .passes_off = VM_PASS_NEAR };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct vm *vm = make_vm(&image, i ? &far : NULL);
		int64_t distance = (char *)vm_function_address(vm, 0) - (char *)strlen;

		assert_int_equal(llabs(distance) < 1ll << 31, !i);
		assert_int_equal(call(vm, (uintptr_t) "four", 0), 4);
		vm_destroy(vm);
	}
}

static void names_and_listings(void **state)
{
	const struct bpf_insn code[] = { MOV_X(0, 1), ADD_X(0, 2), LDX_DW(0, 0, 0), EXIT() };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, NULL, 0 };
	struct vm_options options = { .size = sizeof(options), .engine = VM_ENGINE_INTERPRETER };
	struct vm *vm = make_vm(&image, NULL);
	bool seen[COUNT_OF(code)] = { false };
	size_t size = 0;

	(void)state;
#if defined(__x86_64__)
	assert_string_equal(vm_engine_name(vm), "x86-64");
#else
	assert_string_equal(vm_engine_name(vm), "arm64");
#endif
	assert_ptr_equal(vm_machine_code(vm, 0, &size), vm_function_address(vm, 0));
	assert_true(size > 4);
	for (size_t i = 0; i < size; i++) {
		int64_t insn = vm_machine_insn(vm, 0, i);

		assert_true(insn >= -1 && insn < (int64_t)COUNT_OF(code));
		if (insn >= 0)
			seen[insn] = true;
	}
	assert_true(seen[2] && seen[3]);
	assert_int_equal(vm_machine_insn(vm, 0, size), -1);
	assert_null(vm_machine_code(vm, 1, &size));
	vm_destroy(vm);
	vm = make_vm(&image, &options);
	assert_string_equal(vm_engine_name(vm), "interpreter");
	assert_null(vm_machine_code(vm, 0, &size));
	assert_int_equal(vm_machine_insn(vm, 0, 0), -1);
	vm_destroy(vm);
	options.engine = 99;
	assert_int_equal(vm_create(&image, &options, &vm, NULL, 0, NULL), -EINVAL);
}

/* Without a choice, the compiler runs. */
static void best_engine(void **state)
{
	struct vm_function function = WHOLE(five);
	struct vm_image image = { VM_IMAGE_SIZES, five, COUNT_OF(five), &function, 1, NULL, 0 };
	struct vm *vm;

	(void)state;
	assert_int_equal(vm_create(&image, NULL, &vm, NULL, 0, NULL), 0);
	assert_string_not_equal(vm_engine_name(vm), "interpreter");
	vm_destroy(vm);
}

static int depth_in_c;

static uint64_t count_frames(void)
{
	void *frames[64];

	depth_in_c = backtrace(frames, 64);
	return 0;
}

/* Unwinders find their way through compiled functions, whatever registers they save. */
static void unwinders_pass(void **state)
{
	const struct bpf_insn code[] = {
		MOV_K(6, 1),   CALL_LOCAL(2),    MOV_X(0, 6), EXIT(),      /* saves r6 */
		MOV_K(7, 1),   ST_DW(10, -8, 3), MOV_K(8, 1), MOV_K(9, 1), /* 4: r7 to r9, frame */
		CALL_LOCAL(4), ADD_X(7, 8),      ADD_X(7, 9), MOV_X(0, 7),
		EXIT(),        CALL(0),          MOV_K(0, 0), EXIT(), /* 13: saves nothing */
	};
	const struct vm_function functions[] = { { "a", 0, 4 }, { "b", 4, 9 }, { "c", 13, 3 } };
	const struct vm_native native = { .name = "count_frames",
					  .function = count_frames,
					  .result = VM_U64 };
	const struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 3,
					&native,        1 };
	struct vm *vm = make_vm(&image, NULL);
	int direct;

	(void)state;
	count_frames();
	direct = depth_in_c;
	call(vm, 0, 0);
	assert_true(depth_in_c >= direct + 3);
	vm_destroy(vm);
}

__attribute__((noinline, no_sanitize("address"))) static uint64_t smash(void)
{
	static volatile uintptr_t low = 8;
	uintptr_t *frame = __builtin_frame_address(0);

	for (int i = 0; i < 2; i++)
		((volatile uintptr_t *)frame)[i] = 0x4141414141414141;
	*(volatile int *)low = 0;
	return 0;
}

static uint64_t above(uint64_t (*f)(void))
{
	volatile char room[256];

	room[0] = 0;
	return f() + room[0];
}

/* A stack that cannot be walked: the fault is still one. */
static void smashed_stack(void **state)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	const struct vm_native native = { .name = "above",
					  .function = above,
					  .result = VM_U64,
					  .nargs = 1,
					  .args = { VM_POINTER } };
	struct vm *vm = make_simple(code, COUNT_OF(code), &native, 1);
	struct vm_fault fault;
	uint64_t args[1] = { (uintptr_t)smash };

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vm_call(vm, 0, args, 1, NULL, &fault), -EFAULT);
		assert_int_equal(fault.kind, VM_FAULT_NATIVE);
		assert_string_equal(fault.native, "above");
		assert_int_equal(fault.address, 8);
	}
	vm_destroy(vm);
}

static int drive(void *context)
{
	struct vm *vm = context;
	int result = (int)call(vm, 0, 0);

	vm_interrupt(vm, false); /* no instruction comes any more */
	return result;
}

/* An interrupt that comes too late is not for the next call. */
static void late_interrupt(void **state)
{
	struct vm *vm = make_simple(five, COUNT_OF(five), NULL, 0);
	int ret = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vm_enter(vm, drive, vm, &ret, NULL), 0);
		assert_int_equal(ret, 5);
		assert_int_equal(call(vm, 0, 0), 5);
	}
	vm_destroy(vm);
}

static uint64_t spawn(void *(*start)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, start, NULL) || pthread_join(thread, NULL))
		return 1;
	return 0;
}

/* A thread that the host made runs a script function, which faults. */
static void fault_in_a_thread_of_the_host(void **state)
{
	const struct bpf_insn code[] = { LDDW_KIND(1, BPF_PSEUDO_FUNC, 1, 0), CALL(0), EXIT(),
					 LDX_DW(0, 1, 64), EXIT() };
	const struct vm_function functions[] = { { "main", 0, 4 }, { "thread", 4, 2 } };
	const struct vm_native native = { .name = "spawn",
					  .function = spawn,
					  .result = VM_U64,
					  .nargs = 1,
					  .args = { VM_POINTER } };
	const struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2,
					&native,        1 };
	struct vm *vm = make_vm(&image, NULL);
	struct vm_fault fault;

	(void)state;
	fault = call_fault(vm, 0, 0, VM_FAULT_READ, "read of 8 bytes at 0x40");
	assert_int_equal(fault.trace[0].function, 1);
	vm_destroy(vm);
}

static void *recurse_in_small_stack(void *vm)
{
	struct vm_fault fault = { 0 };
	int rc = vm_call(vm, 0, NULL, 0, NULL, &fault);

	return (void *)(uintptr_t)(rc == -EFAULT && fault.kind == VM_FAULT_STACK);
}

/* stack_bytes is more than the thread has. */
static void small_stacks(void **state)
{
	const struct bpf_insn code[] = { ST_DW(10, -8, 1), CALL_LOCAL(-2), EXIT() };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, NULL, 0 };
	struct vm_options options = { .size = sizeof(options), .stack_bytes = 64 << 20 };
	struct vm *vm = make_vm(&image, &options);
	pthread_attr_t attributes;
	pthread_t thread;
	void *good = NULL;

	(void)state;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10);
	assert_int_equal(pthread_create(&thread, &attributes, recurse_in_small_stack, vm), 0);
	pthread_join(thread, &good);
	assert_non_null(good);
	assert_non_null(recurse_in_small_stack(vm)); /* the process's own */
	pthread_attr_destroy(&attributes);
	vm_destroy(vm);
}

/* main() starts a thread that never ends, and returns. */
static void destroyed_under_a_thread(void **state)
{
	const struct bpf_insn code[] = {
		LDDW_KIND(3, BPF_PSEUDO_FUNC, 1, 0),
		MOV_X(1, 10),
		ADD_K(1, -8),
		MOV_K(2, 0),
		MOV_K(4, 0),
		CALL(0),
		EXIT(),
		JA(-1),
		EXIT(),
	};
	const struct vm_function functions[] = { { "main", 0, 8 }, { "thread", 8, 2 } };
	const struct vm_native native = { .name = "pthread_create",
					  .function = pthread_create,
					  .result = VM_S32,
					  .nargs = 4,
					  .args = { VM_POINTER, VM_POINTER, VM_POINTER,
						    VM_POINTER } };
	const struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2,
					&native,        1 };
	struct vm *vm = make_vm(&image, NULL);
	int before = threads_now();

	(void)state;
	assert_int_equal(call(vm, 0, 0), 0);
	assert_int_equal(threads_now(), before + 1);
	vm_destroy(vm);
	while (threads_now() != before)
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_or_execute),
		cmocka_unit_test(near_what_it_calls),
		cmocka_unit_test(names_and_listings),
		cmocka_unit_test(best_engine),
		cmocka_unit_test(unwinders_pass),
		cmocka_unit_test(smashed_stack),
		cmocka_unit_test(late_interrupt),
		cmocka_unit_test(fault_in_a_thread_of_the_host),
		cmocka_unit_test(small_stacks),
		cmocka_unit_test(destroyed_under_a_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
