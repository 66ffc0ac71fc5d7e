/* SPDX-License-Identifier: BSD-2-Clause */
/* The compiled code of one vm: engine.c makes it, faults.c and frames.c find their way in it. */
#pragma once

#include "vm/jit/engine.h"
#include "vm/jit/jit.h"
#include "vm/jit/memory.h"
#include "vm/signals.h"

struct jit {
	const struct jit_target *target;
	struct jit_memory memory;
	struct jit_runtime runtime;
	struct bpf_insn *code; /* copy of the vm's, to tell what faulted */
	struct jit_place *places;
	size_t nplaces;
	/* By index of the vm's functions; behind them the thunks: functions of natives that callx
	 * cannot call as they are. */
	struct jit_range *ranges;
	uint32_t nranges;
	struct jit_range stubs;
	uint32_t *emitted; /* ranges in the order of the code, without aliases */
	uint32_t nemitted;
	uint32_t *thunks; /* range of a native, 0: none; NULL: no callx */
	uint64_t depth;   /* bytes of stack that functions take between two checks, at most */
	uint8_t *unwind;  /* .eh_frame, registered */
};

/* Where a machine address belongs: false in stubs, in thunks and outside. In a prologue, @insn is
 * the first instruction. Async-signal-safe. */
bool jit_locate(const struct vm *vm, uintptr_t pc, uint32_t *function, uint32_t *insn);

/* ---- frames.c ---- */
/* Tells unwinders of the code. 0 or -ENOMEM. */
int jit_frames_register(struct jit *jit, const struct jit_code *code);
void jit_frames_release(struct jit *jit);
/* Adds the frames of a vm's code to the trace, up to the stack address @until (0: all); sets torn,
 * and native where C was called innermost. */
void jit_frames_trace(struct vm *vm, const struct vm_signal *signal, uintptr_t until,
		      struct vm_fault *fault);

/* ---- faults.c: struct vm_engine's ---- */
bool jit_describe(struct vm *vm, struct vm_signal *signal, struct vm_fault *fault);
void jit_trace(struct vm *vm, const struct vm_signal *signal, struct vm_fault *fault);
/* The native that the call instruction @insn calls, as far as it is known. */
const struct vm_native *jit_native_at(const struct vm *vm, uint32_t insn);
