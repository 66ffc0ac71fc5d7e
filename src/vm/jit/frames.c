// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of compiled code: told to unwinders as .eh_frame (DWARF 5, section 6.4), so that stacks on
 * which C and script functions alternate can be walked; and the walk.
 *
 * The walk happens in signal handlers, with whatever is left of a stack: a second fault ends it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "base/buf.h"
#include "vm/jit/compiled.h"

/* libgcc's, which has no header for them. */
extern void __register_frame(void *begin);
extern void __deregister_frame(void *begin);
extern const void *_Unwind_Find_FDE(void *pc, void *bases);

#if defined(__x86_64__)
#define STACK_REGISTER  7
#define RETURN_REGISTER 16
#define RETURN_BYTES    8 /* on the stack, at entry */
#else
#define STACK_REGISTER  31
#define RETURN_REGISTER 30
#define RETURN_BYTES    0
#endif

/* Of DWARF's call frame instructions. */
enum {
	CFA_ADVANCE_4 = 0x04,
	CFA_DEF = 0x0c,
	CFA_DEF_OFFSET = 0x0e,
	CFA_OFFSET = 0x80, /* | register */
};

#define DATA_ALIGN (-8)

/* ---- telling unwinders -------------------------------------------------------- */

static int put(struct buf *buf, const void *data, size_t size)
{
	return buf_append(buf, data, size);
}

static int put_byte(struct buf *buf, uint8_t value)
{
	return put(buf, &value, 1);
}

static int put_word(struct buf *buf, uint32_t value)
{
	return put(buf, &value, sizeof(value));
}

static int put_uleb(struct buf *buf, uint64_t value)
{
	int rc;

	do {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		rc = put_byte(buf, byte | (value ? 0x80 : 0));
	} while (value && !rc);
	return rc;
}

/* Fills in the length of the entry that starts at @start, and makes it a multiple of 8. */
static int end_entry(struct buf *buf, size_t start)
{
	uint32_t length;
	int rc = 0;

	while (!rc && (buf->size - start) % 8)
		rc = put_byte(buf, 0);
	length = buf->size - start - sizeof(length);
	if (!rc)
		memcpy(buf->data + start, &length, sizeof(length));
	return rc;
}

static int put_cie(struct buf *buf)
{
	static const uint8_t head[] = { 1 /* version */, 0 /* no augmentation */,
					1 /* code alignment */, DATA_ALIGN & 0x7f,
					RETURN_REGISTER };
	int rc = put_word(buf, 0);

	rc = rc ? rc : put_word(buf, 0);
	rc = rc ? rc : put(buf, head, sizeof(head));
	rc = rc ? rc : put_byte(buf, CFA_DEF);
	rc = rc ? rc : put_byte(buf, STACK_REGISTER);
	rc = rc ? rc : put_byte(buf, RETURN_BYTES);
	if (RETURN_BYTES) {
		rc = rc ? rc : put_byte(buf, CFA_OFFSET | RETURN_REGISTER);
		rc = rc ? rc : put_byte(buf, RETURN_BYTES / -DATA_ALIGN);
	}
	return rc ? rc : end_entry(buf, 0);
}

static int put_step(struct buf *buf, const struct jit_frame_step *step, uint32_t *at)
{
	int rc = 0;

	if (step->offset != *at) {
		rc = put_byte(buf, CFA_ADVANCE_4);
		rc = rc ? rc : put_word(buf, step->offset - *at);
		*at = step->offset;
	}
	rc = rc ? rc : put_byte(buf, CFA_DEF_OFFSET);
	rc = rc ? rc : put_uleb(buf, (uint64_t)step->depth + RETURN_BYTES);
	if (step->reg == JIT_NONE)
		return rc;
	rc = rc ? rc : put_byte(buf, CFA_OFFSET | step->reg);
	return rc ? rc : put_uleb(buf, ((uint64_t)step->slot + RETURN_BYTES) / -DATA_ALIGN);
}

static int put_fde(struct buf *buf, const struct jit_code *code, uint32_t first, uint32_t end,
		   const struct jit_frame_step *steps, size_t nsteps)
{
	uint64_t range[2] = { code->address + first, end - first };
	size_t start = buf->size;
	int rc = put_word(buf, 0);

	rc = rc ? rc : put_word(buf, buf->size); /* back to the CIE, which is at 0 */
	rc = rc ? rc : put(buf, range, sizeof(range));
	for (size_t i = 0; i < nsteps && !rc; i++)
		rc = put_step(buf, &steps[i], &first);
	return rc ? rc : end_entry(buf, start);
}

/* Stubs follow each other: each starts with a depth of 0. */
static int put_stubs(struct buf *buf, const struct jit_code *code)
{
	const struct jit_range *stubs = &code->stubs;
	const struct jit_frame_step *steps = code->steps + stubs->first_step;
	uint32_t at = stubs->first;
	size_t i = 0, k;
	int rc = 0;

	while (at < stubs->end && !rc) {
		uint32_t end = stubs->end;

		for (k = i; k < stubs->nsteps; k++) {
			if (!steps[k].depth && steps[k].offset > at) {
				end = steps[k].offset;
				break;
			}
		}
		rc = put_fde(buf, code, at, end, steps + i, k - i);
		at = end;
		i = k;
	}
	return rc;
}

int jit_frames_register(struct jit *jit, const struct jit_code *code)
{
	struct buf buf = { 0 };
	void *bases[3];
	int rc = put_cie(&buf);

	rc = rc ? rc : put_stubs(&buf, code);
	for (uint32_t i = 0; i < jit->nemitted && !rc; i++) {
		const struct jit_range *range = &code->functions[jit->emitted[i]];

		rc = put_fde(&buf, code, range->first, range->end, code->steps + range->first_step,
			     range->nsteps);
	}
	rc = rc ? rc : put_word(&buf, 0);
	if (rc) {
		buf_deinit(&buf);
		return -ENOMEM;
	}
	jit->unwind = (uint8_t *)buf.data;
	__register_frame(jit->unwind);
	/* libgcc sorts the table when it is first asked, and takes memory for that: not in handlers. */
	_Unwind_Find_FDE((void *)(uintptr_t)(code->address + code->functions[0].first + 1), bases);
	return 0;
}

void jit_frames_release(struct jit *jit)
{
	if (!jit->unwind)
		return;
	__deregister_frame(jit->unwind);
	free(jit->unwind);
	jit->unwind = NULL;
}

/* ---- the walk ----------------------------------------------------------------------- */

THREAD_LOCAL sigjmp_buf *guard;

void jit_second_fault(void)
{
	sigjmp_buf *back = guard;

	guard = NULL;
	if (back)
		siglongjmp(*back, 1);
}

struct walk {
	struct vm *vm; /* whose frames count; NULL: the first one of any vm's code ends the walk */
	struct vm_fault *fault;
	uintptr_t until;
	bool started;   /* the frame that the signal interrupted was met */
	bool c_between; /* since the last frame of the vm */
	bool found_any;
	struct vm *owner;
};

static void add_frame(struct walk *walk, uint32_t function, uint32_t insn)
{
	const struct vm_native *native = walk->c_between ? jit_native_at(walk->vm, insn) : NULL;

	if (walk->c_between && walk->found_any)
		walk->fault->torn |= !native || native->foreign;
	if (!walk->found_any && native &&
	    (walk->fault->kind == VM_FAULT_ABORT || walk->fault->kind == VM_FAULT_ARGUMENT))
		walk->fault->native = native->name;
	fault_add_trace(walk->fault, function, insn);
	walk->found_any = true;
	walk->c_between = false;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *data)
{
	struct walk *walk = data;
	int exact = 0; /* the address is of the instruction itself, not behind a call */
	uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
	uint32_t function, insn;
	struct vm *vm;

	if (!walk->started && !exact)
		return _URC_NO_REASON;
	/* The frame that a signal interrupted may be said to lie on the handler's stack. */
	if (walk->started && walk->until && _Unwind_GetCFA(context) > walk->until)
		return _URC_END_OF_STACK;
	walk->started = true;
	if (!exact)
		pc--;
	vm = jit_memory_owner(pc);
	if (!vm || (walk->vm && vm != walk->vm)) {
		walk->c_between = true;
		return _URC_NO_REASON;
	}
	walk->owner = vm;
	if (!walk->vm)
		return _URC_END_OF_STACK;
	if (jit_locate(vm, pc, &function, &insn))
		add_frame(walk, function, insn);
	return _URC_NO_REASON;
}

static void walk_guarded(struct walk *walk)
{
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		guard = &back;
		_Unwind_Backtrace(visit, walk);
	}
	guard = NULL;
}

void jit_frames_trace(struct vm *vm, const struct vm_signal *signal, uintptr_t until,
		      struct vm_fault *fault)
{
	struct walk walk = { .vm = vm, .fault = fault, .until = until, .started = !signal };

	walk_guarded(&walk);
}

/* The call did not arrive anywhere: the instruction could not even be fetched. */
static struct vm *owner_of_call(struct vm_signal *signal)
{
	uintptr_t back = signal_return_address(signal);
	struct vm *vm = jit_memory_owner(back - 1);

	if (!vm || !fault_is_at(signal, vm->target))
		return NULL;
	signal_undo_call(signal);
	signal->undone = true;
	return vm;
}

/* For stacks that cannot be walked: the first word that is a return address of a vm's code. */
static struct vm *scan_stack(struct vm_signal *signal, uintptr_t until)
{
	uintptr_t at = (signal->sp + 7) & ~7ul;

	for (; at < until; at += sizeof(uintptr_t)) {
		uintptr_t word = *(const uintptr_t *)at - 1;
		struct vm *vm = jit_memory_owner(word);

		if (vm && jit_locate(vm, word, &signal->function, &signal->insn)) {
			signal->scanned = true;
			return vm;
		}
	}
	return NULL;
}

static struct vm *walk_to_owner(struct vm_signal *signal, uintptr_t until)
{
	struct walk walk = { .until = until };
	struct vm *vm = NULL;

	if (signal_is_fetch(signal) || signal->number == SIGILL)
		vm = owner_of_call(signal);
	if (!vm)
		_Unwind_Backtrace(visit, &walk);
	return vm ? vm : walk.owner;
}

static struct vm *guarded(struct vm *(*find)(struct vm_signal *signal, uintptr_t until),
			  struct vm_signal *signal, uintptr_t until)
{
	struct vm *volatile vm = NULL;
	sigjmp_buf back;

	if (!sigsetjmp(back, 0)) {
		guard = &back;
		vm = find(signal, until);
	}
	guard = NULL;
	return vm;
}

struct vm *jit_owner(struct vm_signal *signal, uintptr_t until)
{
	struct vm *vm = jit_memory_owner(signal->pc);

	if (vm || !jit_memory_any())
		return vm;
	vm = guarded(walk_to_owner, signal, until);
	return vm ? vm : guarded(scan_stack, signal, until);
}
