// SPDX-License-Identifier: BSD-2-Clause
/*
 * The threaded interpreter: each op carries the address of its handler, and each handler jumps to
 * the next one. interp_body.h is the loop; it is instantiated as it is, with an instruction budget,
 * and with checks of every access (and a budget).
 *
 * Interrupts cost nothing while none comes: vm_interrupt() sets the flag and then points every op
 * at the `interrupted` handler, so that the next dispatch lands there. That handler takes the
 * interrupt if the flag is (still) set, and otherwise puts the op's own handler back and goes on:
 * ops heal as they are met, and nobody has to wait for anybody. Store of the handler and test of
 * the flag are sequentially consistent on both sides. An interrupt that comes while a handler is
 * put back either finds the store done, and overwrites it, or is seen by the test that follows it.
 * So none is lost, there is no lock, and any thread or signal handler may do it. C functions are
 * not torn out: the interrupt is taken when they return.
 */
#include <signal.h>

#include "vm/checked.h"
#include "vm/interp.h"

/* The faulting instruction is recognised by its address: interp_owns(). */
#define INTERPRETER \
	__attribute__((noinline, section("duet_vm_interp"), no_sanitize("address", "undefined")))

extern const char __start_duet_vm_interp[] __attribute__((visibility("hidden")));
extern const char __stop_duet_vm_interp[] __attribute__((visibility("hidden")));

typedef uint64_t integer_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef uint64_t context_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, void *);

/* Script memory: any alignment, never cached or moved by the compiler across vm->pc. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef uint8_t unaligned_uint8_t UNALIGNED;
typedef uint16_t unaligned_uint16_t UNALIGNED;
typedef uint32_t unaligned_uint32_t UNALIGNED;
typedef uint64_t unaligned_uint64_t UNALIGNED;
typedef int8_t unaligned_int8_t UNALIGNED;
typedef int16_t unaligned_int16_t UNALIGNED;
typedef int32_t unaligned_int32_t UNALIGNED;
#define MEMORY(type, address) (*(volatile unaligned_##type *)(uintptr_t)(address))

static uint64_t checked_address(struct vm *vm, uint64_t target, const struct vm_native_plan *plan,
				const uint64_t *r)
{
	struct vm_fault fault = { .kind = VM_FAULT_EXECUTE,
				  .insn = VM_INSN_OF_PC,
				  .address = target,
				  .signal = SIGSEGV };

	if (!plan)
		fault_raise_as(vm, &fault);
	return contract_call(vm, plan - vm->natives, r + 1);
}

/* A callx whose target is none of the vm's own functions. */
static uint64_t call_address(struct vm *vm, uint64_t target, const struct vm_address *known,
			     const uint64_t *r)
{
	const struct vm_native_plan *plan = NULL;

	vm->target = target;
	if (known)
		plan = &vm->natives[known->index];
	else if (vm->call_by_number && target < vm->nnatives && vm->natives[target].function)
		plan = &vm->natives[target];
	if (vm->checked)
		return checked_address(vm, target, plan, r);
	if (plan)
		return native_call(vm, plan, r + 1);
	return ((integer_function *)(uintptr_t)target)(r[1], r[2], r[3], r[4], r[5]);
}

#define INTERP_RUN run_plain
#define COUNT()    false
#define CHECKED    0
#include "vm/interp_body.h"
#undef INTERP_RUN
#undef COUNT

#define INTERP_RUN run_budget
#define COUNT()    (vm->budget-- == 0)
#include "vm/interp_body.h"
#undef INTERP_RUN
#undef COUNT
#undef CHECKED

#define INTERP_RUN run_checked
#define COUNT()    (vm->options.instruction_budget && vm->budget-- == 0)
#define CHECKED    1
#include "vm/interp_body.h"

int interp_prepare(struct vm *vm, struct err *err)
{
	if (vm->checked && check_slots(vm, NULL, vm->nops))
		return err_nomem(err);
	if (vm->checked)
		run_checked(vm, NULL, NULL, 0);
	else if (vm->options.instruction_budget)
		run_budget(vm, NULL, NULL, 0);
	else
		run_plain(vm, NULL, NULL, 0);
	if (!vm->checked && !vm->options.instruction_budget)
		vm_pair(vm);
	for (size_t i = 0; i < vm->nops; i++)
		vm->ops[i].handler = vm->handlers[vm->ops[i].id];
	vm->stop.id = VM_OP_STOP;
	vm->stop.handler = vm->handlers[VM_OP_STOP];
	return 0;
}

uint64_t interp_run(struct vm *vm, const struct vm_op *entry, const uint64_t *args, uint64_t stack)
{
	if (vm->checked)
		return run_checked(vm, entry, args, stack);
	if (vm->options.instruction_budget)
		return run_budget(vm, entry, args, stack);
	return run_plain(vm, entry, args, stack);
}

void interp_interrupt(struct vm *vm)
{
	const void *handler = vm->handlers[VM_NOPS];

	for (size_t i = 0; i < vm->nops; i++)
		atomic_store(&vm->ops[i].handler, handler);
}

bool interp_owns(uintptr_t pc)
{
	return pc >= (uintptr_t)__start_duet_vm_interp && pc < (uintptr_t)__stop_duet_vm_interp;
}
