// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which functions check the stack: enough that no endless chain of calls goes without a check.
 * A chain goes round through local calls alone (a cycle of the call graph), or comes back through
 * callx or a C function that calls back; then the function that does such a call checks.
 */
#include "vm/jit/passes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct search {
	const struct vm *vm;
	const struct vm_image *image;
	bool *recursive;
	uint32_t *number, *low; /* of Tarjan's search; number 0: not yet seen */
	bool *on_path;          /* may still belong to a cycle */
	uint32_t *members;      /* stack of those */
	uint32_t nmembers, next_number;
	struct step {
		uint32_t function, at;
	} * steps;
	uint32_t nsteps;
};

/* A C function that gets a pointer may call what it points to. */
static bool may_call_back(const struct vm_native *native)
{
	if (native->intrinsic != VM_INTRINSIC_NONE)
		return false;
	if (native->with_context)
		return true;
	for (uint32_t i = 0; i < native->nargs && i < VM_MAX_ARGUMENTS; i++)
		if (native->args[i] == VM_POINTER || native->args[i] == VM_U64)
			return true;
	return false;
}

static bool leaves_code(const struct search *s, const struct vm_code *code)
{
	for (uint32_t i = 0; i < code->count; i++) {
		const struct bpf_insn *insn = &s->image->code[code->first + i];

		if (insn->code == ISA_CALLX_OPCODE)
			return true;
		if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
		    may_call_back(&s->image->natives[insn->imm]))
			return true;
	}
	return false;
}

/* The next function that is called at or behind step->at; JIT_NOWHERE: none. */
static uint32_t next_callee(const struct search *s, struct step *step)
{
	const struct vm_code *code = &s->vm->functions[step->function];

	while (step->at < code->count) {
		uint32_t at = code->first + step->at++;
		const struct bpf_insn *insn = &s->image->code[at];

		if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL)
			return jit_function_at(s->vm, at + 1 + insn->imm);
	}
	return JIT_NOWHERE;
}

static void enter(struct search *s, uint32_t function)
{
	s->number[function] = s->low[function] = ++s->next_number;
	s->on_path[function] = true;
	s->members[s->nmembers++] = function;
	s->steps[s->nsteps++] = (struct step){ .function = function };
}

/* All calls of the function on top were followed. */
static void leave(struct search *s)
{
	uint32_t function = s->steps[--s->nsteps].function, member;
	bool alone = s->members[s->nmembers - 1] == function;

	if (s->nsteps) {
		uint32_t caller = s->steps[s->nsteps - 1].function;

		if (s->low[function] < s->low[caller])
			s->low[caller] = s->low[function];
	}
	if (s->low[function] != s->number[function])
		return;
	do {
		member = s->members[--s->nmembers];
		s->on_path[member] = false;
		s->recursive[member] |= !alone;
	} while (member != function);
}

static void search_from(struct search *s, uint32_t root)
{
	enter(s, root);
	while (s->nsteps) {
		struct step *step = &s->steps[s->nsteps - 1];
		uint32_t callee = next_callee(s, step);

		if (callee == JIT_NOWHERE) {
			leave(s);
		} else if (!s->number[callee]) {
			enter(s, callee);
		} else if (s->on_path[callee]) {
			if (s->number[callee] < s->low[step->function])
				s->low[step->function] = s->number[callee];
			s->recursive[callee] |= callee == step->function;
		}
	}
}

int jit_find_recursion(const struct vm *vm, const struct vm_image *image, bool *ret)
{
	size_t n = vm->nfunctions;
	CLEANUP(free_pointer) uint32_t *numbers = calloc(n, 3 * sizeof(*numbers));
	CLEANUP(free_pointer) bool *on_path = calloc(n, sizeof(*on_path));
	CLEANUP(free_pointer) struct step *steps = calloc(n, sizeof(*steps));
	struct search s = { .vm = vm, .image = image, .recursive = ret, .on_path = on_path };

	if (!numbers || !on_path || !steps)
		return -ENOMEM;
	s.number = numbers;
	s.low = numbers + n;
	s.members = numbers + 2 * n;
	s.steps = steps;
	for (size_t i = 0; i < n; i++)
		ret[i] = leaves_code(&s, &vm->functions[i]);
	for (size_t i = 0; i < vm->nordered; i++)
		if (!s.number[vm->order[i]])
			search_from(&s, vm->order[i]);
	/* Other names of a function. */
	for (size_t i = 0; i < n; i++)
		ret[i] |= ret[jit_function_at(vm, vm->functions[i].first)];
	return 0;
}
