// SPDX-License-Identifier: BSD-2-Clause
#include "vm_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sanitizer's own interceptors check (and report) what these tests do on purpose. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif
#define UNCHECKED __attribute__((noinline, no_sanitize("address", "undefined")))

static void read_of_null(void **state)
{
	const struct bpf_insn code[] = { MOV_K(0, 1), LDX_DW(0, 1, 16), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);
	struct vm_fault fault;
	uint64_t value = 99;

	(void)state;
	fault = call_fault(vm, 0, 0, VM_FAULT_READ, "read of 8 bytes at 0x10");
	assert_int_equal(fault.insn, 1);
	assert_int_equal(fault.address, 16);
	assert_int_equal(fault.size, 8);
	assert_int_equal(fault.signal, SIGSEGV);
	assert_null(fault.native);
	assert_int_equal(fault.ntrace, 1);
	assert_int_equal(fault.trace[0].insn, 1);
	assert_int_equal(call(vm, (uintptr_t)&value - 16, 0), 99); /* goes on */
	vm_destroy(vm);
}

static void every_width(void **state)
{
	static const struct {
		struct bpf_insn insn;
		const char *text;
	} cases[] = {
		{ LDX_B(0, 1, 0), "read of 1 byte at 0x8" },
		{ RAW(0x91, 0, 1, 0, 0), "read of 1 byte at 0x8" },
		{ LDX_H(0, 1, 0), "read of 2 bytes at 0x8" },
		{ RAW(0x89, 0, 1, 0, 0), "read of 2 bytes at 0x8" },
		{ LDX_W(0, 1, 0), "read of 4 bytes at 0x8" },
		{ RAW(0x81, 0, 1, 0, 0), "read of 4 bytes at 0x8" },
		{ LDX_DW(0, 1, 0), "read of 8 bytes at 0x8" },
		{ STX_B(1, 2, 0), "write of 1 byte at 0x8" },
		{ ST_B(1, 0, 5), "write of 1 byte at 0x8" },
		{ RAW(0x6b, 1, 2, 0, 0), "write of 2 bytes at 0x8" },
		{ STX_W(1, 2, 0), "write of 4 bytes at 0x8" },
		{ STX_DW(1, 2, 0), "write of 8 bytes at 0x8" },
		{ ST_DW(1, 0, 5), "write of 8 bytes at 0x8" },
		{ RAW(0xc3, 1, 2, 0, 0), "write of 4 bytes at 0x8" },
		{ ATOMIC(1, 2, 0, 0x01), "write of 8 bytes at 0x8" },
		{ ATOMIC(1, 2, 0, 0xe1), "write of 8 bytes at 0x8" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct bpf_insn code[] = { MOV_K(0, 1), cases[i].insn, EXIT() };
		struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

		call_fault(vm, 8, 0,
			   strncmp(cases[i].text, "read", 4) ? VM_FAULT_WRITE : VM_FAULT_READ,
			   cases[i].text);
		vm_destroy(vm);
	}
}

static void non_canonical_address(void **state)
{
	const struct bpf_insn code[] = { LDX_W(0, 1, -4), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);

	(void)state;
	call_fault(vm, 0x8000123400000004, 0, VM_FAULT_READ,
		   "read of 4 bytes at 0x8000123400000000");
	vm_destroy(vm);
}

static void write_to_read_only_page(void **state)
{
	const struct bpf_insn code[] = { ST_B(1, 3, 7), MOV_K(0, 0), EXIT() };
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);
	struct vm_fault fault;
	char want[64];

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	snprintf(want, sizeof(want), "write of 1 byte at %p", (char *)page + 3);
	fault = call_fault(vm, (uintptr_t)page, 0, VM_FAULT_WRITE, want);
	assert_true(fault.write);
	munmap(page, 4096);
	vm_destroy(vm);
}

/* A mapping behind the end of its file gives SIGBUS. */
static void bus_error(void **state)
{
	const struct bpf_insn code[] = { LDX_B(0, 1, 0), EXIT() };
	struct vm *vm = make_simple(code, COUNT_OF(code), NULL, 0);
	int fd = memfd_create("empty", MFD_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	struct vm_fault fault;
	char want[64];

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	snprintf(want, sizeof(want), "read of 1 byte at %p", page);
	fault = call_fault(vm, (uintptr_t)page, 0, VM_FAULT_READ, want);
	assert_int_equal(fault.signal, SIGBUS);
	munmap(page, 4096);
	close(fd);
	vm_destroy(vm);
}

static void call_of_what_is_no_function(void **state)
{
	const struct bpf_insn dst[] = { CALLX_DST(1), EXIT() };
	const struct bpf_insn imm[] = { CALLX_IMM(1), EXIT() };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char want[80];

	(void)state;
	for (int encoding = 0; encoding < 2; encoding++) {
		struct vm *vm = make_simple(encoding ? imm : dst, 2, NULL, 0);

		call_fault(vm, 0, 0, VM_FAULT_EXECUTE, "call of a null pointer");
		call_fault(vm, 0x10, 0, VM_FAULT_EXECUTE, "call of 0x10, which is no function");
		snprintf(want, sizeof(want), "call of %p, which is no function", page);
		call_fault(vm, (uintptr_t)page, 0, VM_FAULT_EXECUTE, want);
		call_fault(vm, 0x4141414141414141, 0, VM_FAULT_EXECUTE,
			   "call of 0x4141414141414141, which is no function");
		vm_destroy(vm);
	}
	munmap(page, 4096);
}

static void deep_recursion(void **state)
{
	/* f(n) = n ? f(n - 1) + 1 : 0 */
	const struct bpf_insn code[] = { MOV_K(0, 0),    JEQ_K(1, 0, 3), ADD_K(1, -1),
					 CALL_LOCAL(-4), ADD_K(0, 1),    EXIT() };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, NULL, 0 };
	struct vm_options options = { .size = sizeof(options), .call_depth = 100 };
	struct vm_options small = { .size = sizeof(small), .stack_bytes = 4096 };
	/* The compiler counts no frames, but bytes; and this function needs few. */
	uint64_t deep = ON_JIT ? 10000000 : 100, deep_for_small = ON_JIT ? 5000 : 8;
	struct vm *vm = make_vm(&image, &options);
	struct vm_fault fault;

	(void)state;
	assert_int_equal(call(vm, 99, 0), 99);
	fault = call_fault(vm, deep, 0, VM_FAULT_STACK, "stack overflow: calls nest too deep");
	assert_int_equal(fault.insn, 3);
	assert_int_equal(fault.ntrace, VM_TRACE_MAX);
	for (uint32_t i = 0; i < fault.ntrace; i++)
		assert_int_equal(fault.trace[i].insn, 3);
	assert_int_equal(call(vm, 99, 0), 99);
	vm_destroy(vm);
	vm = make_vm(&image, &small);
	assert_int_equal(call(vm, 7, 0), 7);
	call_fault(vm, deep_for_small, 0, VM_FAULT_STACK, "stack overflow: calls nest too deep");
	vm_destroy(vm);
}

static const struct bpf_insn endless[] = { JA(-1), EXIT() };

/* qemu's user mode (7.2) hands on no exception syndrome. */
#if defined(__aarch64__)
#define KNOWS_ACCESS (getenv("UNDER_QEMU") == NULL)
#else
#define KNOWS_ACCESS true
#endif
#define INSIDE(access, address, name)                                      \
	(KNOWS_ACCESS ? access " at " address " inside " name " (SIGSEGV)" \
		      : "access at " address " inside " name " (SIGSEGV)")

static UNCHECKED uint64_t length(const char *text)
{
	return strlen(text);
}

static void fault_inside_libc(void **state)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	struct vm_native native = { .name = "strlen",
				    .function = UNDER_SANITIZER ? (void *)length : (void *)strlen,
				    .result = VM_U64,
				    .nargs = 1,
				    .args = { VM_POINTER },
				    .foreign = true };
	struct vm *vm = make_simple(code, COUNT_OF(code), &native, 1);
	struct vm_fault fault;

	(void)state;
	fault = call_fault(vm, 0, 0, VM_FAULT_NATIVE, INSIDE("read", "0x0", "strlen"));
	assert_true(fault.foreign);
	assert_string_equal(fault.native, "strlen");
	assert_int_equal(fault.insn, 0);
	assert_int_equal(call(vm, (uintptr_t) "four", 0), 4);
	vm_destroy(vm);
}

static UNCHECKED uint64_t write_null(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
				     void *context)
{
	(void)b, (void)c, (void)d, (void)e, (void)context;
	*(volatile char *)a = 1;
	return 0;
}

static void fault_inside_own_native(void **state)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	struct vm_native native = { .name = "write_null",
				    .function = write_null,
				    .with_context = true };
	struct vm *vm = make_simple(code, COUNT_OF(code), &native, 1);
	struct vm_fault fault;

	(void)state;
	fault = call_fault(vm, 8, 0, VM_FAULT_NATIVE, INSIDE("write", "0x8", "write_null"));
	assert_false(fault.foreign);
	assert_int_equal(fault.write, KNOWS_ACCESS);
	vm_destroy(vm);
}

static UNCHECKED uint32_t divide(uint32_t a, uint32_t b)
{
	return a / b;
}

static UNCHECKED uint64_t burrow(uint64_t n)
{
	volatile char room[256];

	room[n & 255] = n;
	return n > ~0ull - 1 ? 0 : burrow(n + 1) + room[n & 255];
}

static uint64_t give_up(void)
{
	abort();
}

static void other_signals_inside_natives(void **state)
{
	const struct bpf_insn code[] = { JEQ_K(2, 1, 4), JEQ_K(2, 2, 5), MOV_K(2, 0),
					 CALL(0),        EXIT(),         CALL(1),
					 EXIT(),         CALL(2),        EXIT() };
	struct vm_native natives[] = {
		{ "divide", divide, VM_U32, 2, { VM_U32, VM_U32 } },
		{ "burrow", burrow, VM_U64, 1, { VM_U64 } },
		{ "give_up", give_up, VM_U64, 0 },
	};
	struct vm *vm = make_simple(code, COUNT_OF(code), natives, COUNT_OF(natives));
	struct vm_fault fault;
	uint64_t args[2] = { 1, 1 };

	(void)state;
#if defined(__x86_64__)
	call_fault(vm, 1, 0, VM_FAULT_NATIVE, "SIGFPE inside divide");
#endif
	for (int i = 0; i < 3; i++)
		call_fault(vm, 1, 2, VM_FAULT_NATIVE, "SIGABRT inside give_up");
	/* The C stack is exhausted: the handler needs its own. */
	assert_int_equal(vm_call(vm, 0, args, 2, NULL, &fault), -EFAULT);
	assert_int_equal(fault.kind, VM_FAULT_NATIVE);
	assert_string_equal(fault.native, "burrow");
	assert_int_equal(fault.signal, SIGSEGV);
	vm_destroy(vm);
}

static uint64_t raise_it(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, void *context)
{
	(void)b, (void)c, (void)d, (void)e;
	if (a)
		vm_raise(*(struct vm **)context, "f64_add: refused");
	return 7;
}

static void raise_from_native(void **state)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	struct vm_native native = { .name = "raise_it",
				    .function = raise_it,
				    .with_context = true };
	struct vm_function function = WHOLE(code);
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), &function, 1, &native, 1 };
	struct vm *vm = NULL;
	struct vm_options options = { .size = sizeof(options), .context = &vm };
	struct vm_fault fault;

	(void)state;
	vm = make_vm(&image, &options);
	assert_int_equal(call(vm, 0, 0), 7);
	fault = call_fault(vm, 1, 0, VM_FAULT_ABORT, "f64_add: refused");
	assert_string_equal(fault.native, "raise_it");
	vm_destroy(vm);
}

/*
 * main(array, n): qsort(array, n, 8, compare), whose comparator dereferences what it compares.
 * A null element faults two vm_call()s deep, across C frames.
 */
static void fault_in_a_comparator(void **state)
{
	const struct bpf_insn code[] = {
		LDDW_KIND(4, BPF_PSEUDO_FUNC, 1, 0),
		MOV_K(3, 8),
		CALL(0),
		MOV_K(0, 1),
		EXIT(),
		LDX_DW(1, 1, 0),
		LDX_DW(2, 2, 0), /* 6: compare */
		LDX_W(0, 1, 0),  /* 8 */
		LDX_W(2, 2, 0),
		RAW(0x1f, 0, 2, 0, 0),
		EXIT(),
	};
	struct vm_function functions[] = { { "main", 0, 6 }, { "compare", 6, 6 } };
	struct vm_native native = { .name = "qsort",
				    .function = qsort,
				    .result = VM_VOID,
				    .nargs = 4,
				    .args = { VM_POINTER, VM_U64, VM_U64, VM_POINTER },
				    .foreign = true };
	struct vm_image image = { VM_IMAGE_SIZES, code, COUNT_OF(code), functions, 2, &native, 1 };
	struct vm_options options = { .size = sizeof(options), .call_depth = 2 };
	struct vm *vm = make_vm(&image, NULL);
	uint32_t values[5] = { 30, 10, 50, 20, 40 };
	uint32_t *array[5];
	struct vm_fault fault;

	(void)state;
	for (int i = 0; i < 5; i++)
		array[i] = &values[i];
	/* r3 and r4 are set in code: qsort(r1, r2, 8, compare) */
	assert_int_equal(call(vm, (uintptr_t)array, 5), 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(*array[i], 10 + 10 * i);
	array[0] = NULL;
	fault = call_fault(vm, (uintptr_t)array, 1 + 4, VM_FAULT_READ, "read of 4 bytes at 0x0");
	assert_int_equal(fault.ntrace, 2);
	assert_int_equal(fault.trace[0].function, 1);
	assert_int_equal(fault.trace[1].function, 0);
	assert_int_equal(fault.trace[1].insn, 3);
	assert_true(fault.torn);
	assert_false(fault.foreign);
	array[0] = &values[0];
	assert_int_equal(call(vm, (uintptr_t)array, 5), 1);
	vm_destroy(vm);
	/* The depth limit holds across nested calls. */
	vm = make_vm(&image, &options);
	assert_int_equal(call(vm, (uintptr_t)array, 5), 1);
	vm_destroy(vm);
	if (ON_JIT)
		return;
	options.call_depth = 1;
	vm = make_vm(&image, &options);
	call_fault(vm, (uintptr_t)array, 5, VM_FAULT_STACK, "stack overflow: calls nest too deep");
	vm_destroy(vm);
}

static void run_in_child(void (*body)(void), int want_signal, int want_status)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		body();
		_exit(77);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (want_signal) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), want_signal);
	} else {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), want_status);
	}
}

static const struct bpf_insn trivial[] = { MOV_K(0, 1), EXIT() };

static UNCHECKED void crash(void)
{
	volatile int *volatile nowhere = (int *)8;

	*nowhere = 1;
}

static void body_crash_without_vm_call(void)
{
	signal(SIGSEGV, SIG_DFL);
	call(make_simple(trivial, 2, NULL, 0), 0, 0);
	crash();
}

static void on_chained(int number, siginfo_t *info, void *context)
{
	(void)context;
	_exit(number == SIGSEGV && info->si_addr == (void *)8 ? 42 : 43);
}

static void body_crash_with_handler(void)
{
	struct sigaction action = { .sa_sigaction = on_chained, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &action, NULL);
	call(make_simple(trivial, 2, NULL, 0), 0, 0);
	crash();
}

static void *crash_in_thread(void *data)
{
	(void)data;
	crash();
	return NULL;
}

static void body_crash_in_thread(void)
{
	pthread_t thread;
	struct vm *vm;

	signal(SIGSEGV, SIG_DFL);
	vm = make_simple(endless, COUNT_OF(endless), NULL, 0);
	pthread_create(&thread, NULL, crash_in_thread, NULL);
	vm_call(vm, 0, NULL, 0, NULL, NULL);
}

static uint64_t kill_us(void)
{
	return kill(getpid(), SIGSEGV);
}

static void body_signal_from_outside(void)
{
	const struct bpf_insn code[] = { CALL(0), EXIT() };
	struct vm_native native = { "kill_us", kill_us, VM_U64, 0 };

	signal(SIGSEGV, SIG_DFL);
	vm_call(make_simple(code, 2, &native, 1), 0, NULL, 0, NULL, NULL);
}

static void body_handlers_are_put_back(void)
{
	struct sigaction action = { .sa_sigaction = on_chained, .sa_flags = SA_SIGINFO };
	struct sigaction now;
	struct vm *first, *second;

	sigaction(SIGSEGV, &action, NULL);
	first = make_simple(trivial, 2, NULL, 0);
	second = make_simple(trivial, 2, NULL, 0);
	vm_destroy(first);
	sigaction(SIGSEGV, NULL, &now);
	if (now.sa_sigaction == on_chained)
		_exit(1);
	vm_destroy(second);
	sigaction(SIGSEGV, NULL, &now);
	_exit(now.sa_sigaction == on_chained ? 42 : 2);
}

static void faults_that_are_not_ours(void **state)
{
	(void)state;
	run_in_child(body_crash_without_vm_call, SIGSEGV, 0);
	run_in_child(body_crash_with_handler, 0, 42);
	run_in_child(body_crash_in_thread, SIGSEGV, 0);
	run_in_child(body_signal_from_outside, SIGSEGV, 0);
	run_in_child(body_handlers_are_put_back, 0, 42);
}

static uint64_t call_other_vm(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			      void *context)
{
	uint64_t args[1] = { a }, result = 0;
	struct vm_fault fault;

	(void)b, (void)c, (void)d, (void)e;
	return vm_call(*(struct vm **)context, 0, args, 1, &result, &fault) ? 1000 : result;
}

static void vms_nest(void **state)
{
	const struct bpf_insn inner_code[] = { LDX_DW(0, 1, 0), EXIT() };
	const struct bpf_insn outer_code[] = { CALL(0), ADD_K(0, 1), EXIT() };
	struct vm_native native = { .name = "other",
				    .function = call_other_vm,
				    .with_context = true };
	struct vm_function function = WHOLE(outer_code);
	struct vm_image image = { VM_IMAGE_SIZES, outer_code, COUNT_OF(outer_code), &function, 1,
				  &native,        1 };
	struct vm *inner = make_simple(inner_code, COUNT_OF(inner_code), NULL, 0), *outer;
	struct vm_options options = { .size = sizeof(options), .context = &inner };
	uint64_t value = 5;

	(void)state;
	outer = make_vm(&image, &options);
	assert_int_equal(call(outer, (uintptr_t)&value, 0), 6);
	assert_int_equal(call(outer, 0, 0), 1001); /* the inner one's fault stays there */
	vm_destroy(outer);
	vm_destroy(inner);
}

/* outer -> C -> inner -> C -> outer's function, which faults: inner is left and usable again. */
static void fault_across_another_vm(void **state)
{
	const struct bpf_insn outer_code[] = { CALL(0), EXIT(), LDX_DW(0, 1, 0), EXIT() };
	const struct bpf_insn inner_code[] = { MOV_X(6, 1), MOV_K(1, 0), MOV_X(0, 6), CALLX_DST(6),
					       EXIT() };
	struct vm_function functions[] = { { "main", 0, 2 }, { "bad", 2, 2 } };
	struct vm_native native = { .name = "other",
				    .function = call_other_vm,
				    .with_context = true };
	struct vm_image image = { VM_IMAGE_SIZES, outer_code, COUNT_OF(outer_code), functions, 2,
				  &native,        1 };
	struct vm *inner = make_simple(inner_code, COUNT_OF(inner_code), NULL, 0), *outer;
	struct vm_options options = { .size = sizeof(options), .context = &inner };
	uint64_t bad;

	(void)state;
	outer = make_vm(&image, &options);
	bad = (uintptr_t)vm_function_address(outer, 1);
	for (int i = 0; i < 3; i++) {
		call_fault(outer, bad, 0, VM_FAULT_READ, "read of 8 bytes at 0x0");
		assert_int_equal(call(inner, (uintptr_t)getppid, 0), getppid());
	}
	vm_destroy(outer);
	vm_destroy(inner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_of_null),
		cmocka_unit_test(every_width),
		cmocka_unit_test(non_canonical_address),
		cmocka_unit_test(write_to_read_only_page),
		cmocka_unit_test(bus_error),
		cmocka_unit_test(call_of_what_is_no_function),
		cmocka_unit_test(deep_recursion),
		cmocka_unit_test(fault_inside_libc),
		cmocka_unit_test(fault_inside_own_native),
		cmocka_unit_test(other_signals_inside_natives),
		cmocka_unit_test(raise_from_native),
		cmocka_unit_test(fault_in_a_comparator),
		cmocka_unit_test(faults_that_are_not_ours),
		cmocka_unit_test(vms_nest),
		cmocka_unit_test(fault_across_another_vm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
