/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interpreter loop, included by interp.c with
 *	INTERP_RUN	name of the function
 *	COUNT()		true when the call has used up its instructions
 *	CHECKED		1: every access must lie in the vm's regions, and C functions have contracts
 *
 * Every operation of insn.def has a label here: the table of labels is made from insn.def, so one
 * that is missing does not compile. With entry NULL the function only tells the vm its table.
 */
#define D r[op->dst]
#define S r[op->src]
#define K op->imm

#define DISPATCH()                                                              \
	do {                                                                    \
		if (COUNT())                                                    \
			goto out_of_budget;                                     \
		goto *atomic_load_explicit(&op->handler, memory_order_relaxed); \
	} while (0)
#define NEXT()              \
	do {                \
		op++;       \
		DISPATCH(); \
	} while (0)
#define JUMP()                                                           \
	do {                                                             \
		op = (const struct vm_op *)((const char *)op + op->off); \
		DISPATCH();                                              \
	} while (0)

/* The four shapes of an operation on `a` and `b`; 32-bit results are zero-extended. */
#define ALU(id, expression64, expression32)   \
	op_##id##64_K:                        \
	{                                     \
		const uint64_t a = D, b = K;  \
		D = (expression64);           \
		NEXT();                       \
	}                                     \
	op_##id##64_X:                        \
	{                                     \
		const uint64_t a = D, b = S;  \
		D = (expression64);           \
		NEXT();                       \
	}                                     \
	op_##id##32_K:                        \
	{                                     \
		const uint32_t a = D, b = K;  \
		D = (uint32_t)(expression32); \
		NEXT();                       \
	}                                     \
	op_##id##32_X:                        \
	{                                     \
		const uint32_t a = D, b = S;  \
		D = (uint32_t)(expression32); \
		NEXT();                       \
	}

#define COMPARE(id, sign, operator)                                             \
	op_##id##64_K : if ((sign##int64_t)D operator(sign##int64_t) K) JUMP(); \
	NEXT();                                                                 \
	op_##id##64_X : if ((sign##int64_t)D operator(sign##int64_t) S) JUMP(); \
	NEXT();                                                                 \
	op_##id##32_K : if ((sign##int32_t)D operator(sign##int32_t) K) JUMP(); \
	NEXT();                                                                 \
	op_##id##32_X : if ((sign##int32_t)D operator(sign##int32_t) S) JUMP(); \
	NEXT();

/* Before an access of op: is it where the op's last access was? If not, check_op() looks. */
#define CHECK(address)                                                           \
	do {                                                                     \
		if (CHECKED) {                                                   \
			const struct vm_check_slot *slot = &slots[op - vm->ops]; \
                                                                                 \
			if ((address)-slot->start > slot->size)                  \
				check_op(vm, op, address);                       \
		}                                                                \
	} while (0)

#define ACCESS(id, type)               \
	op_LDX##id : vm->pc = op;      \
	CHECK(S + op->off);            \
	D = MEMORY(type, S + op->off); \
	NEXT();                        \
	op_STX##id : vm->pc = op;      \
	CHECK(D + op->off);            \
	MEMORY(type, D + op->off) = S; \
	NEXT();                        \
	op_ST##id : vm->pc = op;       \
	CHECK(D + op->off);            \
	MEMORY(type, D + op->off) = K; \
	NEXT();

/* A pointer to the memory operand of an atomic. */
#define CELL(type) ((type *)(uintptr_t)(D + op->off))

#define ATOMIC(bits, type)                                                         \
	op_ADD_MEM##bits : vm->pc = op;                                            \
	CHECK(D + op->off);                                                        \
	__atomic_fetch_add(CELL(type), (type)S, __ATOMIC_RELAXED);                 \
	NEXT();                                                                    \
	op_OR_MEM##bits : vm->pc = op;                                             \
	CHECK(D + op->off);                                                        \
	__atomic_fetch_or(CELL(type), (type)S, __ATOMIC_RELAXED);                  \
	NEXT();                                                                    \
	op_AND_MEM##bits : vm->pc = op;                                            \
	CHECK(D + op->off);                                                        \
	__atomic_fetch_and(CELL(type), (type)S, __ATOMIC_RELAXED);                 \
	NEXT();                                                                    \
	op_XOR_MEM##bits : vm->pc = op;                                            \
	CHECK(D + op->off);                                                        \
	__atomic_fetch_xor(CELL(type), (type)S, __ATOMIC_RELAXED);                 \
	NEXT();                                                                    \
	op_FETCH_ADD##bits : vm->pc = op;                                          \
	CHECK(D + op->off);                                                        \
	S = __atomic_fetch_add(CELL(type), (type)S, __ATOMIC_SEQ_CST);             \
	NEXT();                                                                    \
	op_FETCH_OR##bits : vm->pc = op;                                           \
	CHECK(D + op->off);                                                        \
	S = __atomic_fetch_or(CELL(type), (type)S, __ATOMIC_SEQ_CST);              \
	NEXT();                                                                    \
	op_FETCH_AND##bits : vm->pc = op;                                          \
	CHECK(D + op->off);                                                        \
	S = __atomic_fetch_and(CELL(type), (type)S, __ATOMIC_SEQ_CST);             \
	NEXT();                                                                    \
	op_FETCH_XOR##bits : vm->pc = op;                                          \
	CHECK(D + op->off);                                                        \
	S = __atomic_fetch_xor(CELL(type), (type)S, __ATOMIC_SEQ_CST);             \
	NEXT();                                                                    \
	op_XCHG##bits : vm->pc = op;                                               \
	CHECK(D + op->off);                                                        \
	S = __atomic_exchange_n(CELL(type), (type)S, __ATOMIC_SEQ_CST);            \
	NEXT();                                                                    \
	op_CMPXCHG##bits:                                                          \
	{                                                                          \
		type expected = r[0];                                              \
		vm->pc = op;                                                       \
		CHECK(D + op->off);                                                \
		__atomic_compare_exchange_n(CELL(type), &expected, (type)S, false, \
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
		r[0] = expected;                                                   \
		NEXT();                                                            \
	}

/* clang-format off */
INTERPRETER static uint64_t INTERP_RUN(struct vm *vm, const struct vm_op *entry,
				       const uint64_t *args, uint64_t stack)
{
	static const void *const handlers[VM_NOPS + 1] = {
#define INSN(id, ...) [ISA_##id] = &&op_##id,
#define ALSO INSN
#include "isa/insn.def"
		[VM_OP_CALL_WHOLE] = &&call_whole,
		[VM_OP_CALL_CONTEXT] = &&call_context,
		[VM_OP_CALL_ARRAY] = &&call_array,
		[VM_OP_CALL_OTHER] = &&call_other,
		[VM_OP_RUN_OFF] = &&run_off,
		[VM_OP_STOP] = &&stop,
		[VM_OP_MOV_ADD] = &&mov_add,
		[VM_OP_MOV_ADD_K] = &&mov_add_k,
		[VM_OP_MOV_AND_K] = &&mov_and_k,
		[VM_OP_MOV_LSH_K] = &&mov_lsh_k,
		[VM_OP_MOV_RSH_K] = &&mov_rsh_k,
		[VM_OP_LSH_ADD] = &&lsh_add,
		[VM_OP_MOV_ADD_LDXB] = &&mov_add_ldxb,
		[VM_OP_ADD_LDXB] = &&add_ldxb,
		[VM_OP_ADD_LDXW] = &&add_ldxw,
		[VM_OP_ADD_LDXDW] = &&add_ldxdw,
		[VM_OP_ADD_JNE_K] = &&add_jne_k,
		[VM_OP_ADD_JNE] = &&add_jne,
		[VM_OP_ADD_JLT] = &&add_jlt,
		[VM_OP_ADD_JGT] = &&add_jgt,
		[VM_NOPS] = &&interrupted,
	};
	const struct vm_check_slot *slots = CHECKED ? vm->checked->slots : NULL;
	uint64_t r[16];
	const struct vm_op *op;

	if (!entry) {
		vm->handlers = handlers;
		return 0;
	}
	r[0] = 0;
	for (int i = 1; i <= VM_MAX_ARGUMENTS; i++)
		r[i] = args[i - 1];
	r[6] = r[7] = r[8] = r[9] = 0;
	r[10] = stack;
	vm->registers = r;
	op = entry;
	DISPATCH();

	ALU(ADD, a + b, a + b)
	ALU(SUB, a - b, a - b)
	ALU(MUL, a * b, a * b)
	ALU(OR, a | b, a | b)
	ALU(AND, a & b, a & b)
	ALU(XOR, a ^ b, a ^ b)
	ALU(LSH, a << (b & 63), a << (b & 31))
	ALU(RSH, a >> (b & 63), a >> (b & 31))
	ALU(ARSH, (int64_t)a >> (b & 63), (int32_t)a >> (b & 31))
	/* Division by zero gives 0, modulo zero leaves the dividend; MIN / -1 is MIN, remainder 0. */
	ALU(DIV, b ? a / b : 0, b ? a / b : 0)
	ALU(MOD, b ? a % b : a, b ? a % b : a)
	ALU(SDIV, b + 1 <= 1 ? -a & -(b & 1) : (uint64_t)((int64_t)a / (int64_t)b),
	    b + 1 <= 1 ? -a & -(b & 1) : (uint32_t)((int32_t)a / (int32_t)b))
	ALU(SMOD, b + 1 <= 1 ? (b ? 0 : a) : (uint64_t)((int64_t)a % (int64_t)b),
	    b + 1 <= 1 ? (b ? 0 : a) : (uint32_t)((int32_t)a % (int32_t)b))

op_NEG64: D = -D; NEXT();
op_NEG32: D = (uint32_t)-D; NEXT();
op_MOV64_K: D = K; NEXT();
op_MOV64_X: D = S; NEXT();
op_MOV32_K: D = K; NEXT();
op_MOV32_X: D = (uint32_t)S; NEXT();
op_MOVSX64_8: D = (int8_t)S; NEXT();
op_MOVSX64_16: D = (int16_t)S; NEXT();
op_MOVSX64_32: D = (int32_t)S; NEXT();
op_MOVSX32_8: D = (uint32_t)(int8_t)S; NEXT();
op_MOVSX32_16: D = (uint32_t)(int16_t)S; NEXT();
/* This machine is little endian, and so is the code. */
op_LE16: D = (uint16_t)D; NEXT();
op_LE32: D = (uint32_t)D; NEXT();
op_LE64: NEXT();
op_BE16:
op_BSWAP16: D = __builtin_bswap16(D); NEXT();
op_BE32:
op_BSWAP32: D = __builtin_bswap32(D); NEXT();
op_BE64:
op_BSWAP64: D = __builtin_bswap64(D); NEXT();

	COMPARE(JEQ, u, ==)
	COMPARE(JNE, u, !=)
	COMPARE(JSET, u, &)
	COMPARE(JGT, u, >)
	COMPARE(JGE, u, >=)
	COMPARE(JLT, u, <)
	COMPARE(JLE, u, <=)
	COMPARE(JSGT, , >)
	COMPARE(JSGE, , >=)
	COMPARE(JSLT, , <)
	COMPARE(JSLE, , <=)
op_JA:
op_JAL: JUMP();

op_LDDW:
op_LDDW_FUNC: D = K; op += 2; DISPATCH();

	ACCESS(B, uint8_t)
	ACCESS(H, uint16_t)
	ACCESS(W, uint32_t)
	ACCESS(DW, uint64_t)
op_LDSXB: vm->pc = op; CHECK(S + op->off); D = MEMORY(int8_t, S + op->off); NEXT();
op_LDSXH: vm->pc = op; CHECK(S + op->off); D = MEMORY(int16_t, S + op->off); NEXT();
op_LDSXW: vm->pc = op; CHECK(S + op->off); D = MEMORY(int32_t, S + op->off); NEXT();

	ATOMIC(32, uint32_t)
	ATOMIC(64, uint64_t)

op_CALL_LOCAL: {
	const struct vm_op *target = (const struct vm_op *)((const char *)op + op->off);
	const uint64_t top = r[10] - (uint32_t)K;

	if (vm->frame == vm->frame_limit || top < vm->stack_low + (K >> 32)) {
		vm->pc = op;
		fault_raise(vm, VM_FAULT_STACK);
	}
	vm->frame->return_to = op + 1;
	vm->frame->saved[0] = r[6];
	vm->frame->saved[1] = r[7];
	vm->frame->saved[2] = r[8];
	vm->frame->saved[3] = r[9];
	vm->frame->saved[4] = r[10];
	vm->frame++;
	r[10] = top;
	op = target;
	DISPATCH();
}
op_EXIT: {
	const struct vm_frame *frame = --vm->frame;

	r[6] = frame->saved[0];
	r[7] = frame->saved[1];
	r[8] = frame->saved[2];
	r[9] = frame->saved[3];
	r[10] = frame->saved[4];
	op = frame->return_to;
	goto *atomic_load_explicit(&op->handler, memory_order_relaxed);
}
op_CALLX: {
	const uint64_t target = S;
	const struct vm_address *known = closure_find(vm, target);
	const struct vm_code *code;

	vm->pc = op;
	if (!known || known->native) {
		r[0] = call_address(vm, target, known, r);
		vm->target = 0;
		NEXT();
	}
	code = &vm->functions[known->index];
	if (vm->frame == vm->frame_limit || r[10] - K < vm->stack_low + code->frame)
		fault_raise(vm, VM_FAULT_STACK);
	vm->frame->return_to = op + 1;
	vm->frame->saved[0] = r[6];
	vm->frame->saved[1] = r[7];
	vm->frame->saved[2] = r[8];
	vm->frame->saved[3] = r[9];
	vm->frame->saved[4] = r[10];
	vm->frame++;
	r[10] -= K;
	op = &vm->ops[code->first_op];
	DISPATCH();
}

call_whole:
	vm->pc = op;
	if (CHECKED)
		r[0] = contract_call(vm, op->off, r + 1);
	else
		r[0] = ((integer_function *)(uintptr_t)K)(r[1], r[2], r[3], r[4], r[5]);
	NEXT();
call_context:
	vm->pc = op;
	if (CHECKED)
		r[0] = contract_call(vm, op->off, r + 1);
	else
		r[0] = ((context_function *)(uintptr_t)K)(r[1], r[2], r[3], r[4], r[5], vm->context);
	NEXT();
call_array:
	vm->pc = op;
	for (size_t i = 0; i < vm->image.narrays; i++) {
		const struct vm_array *array = &vm->image.arrays[i];

		if (array->handle == r[1]) {
			const uint32_t index = MEMORY(uint32_t, r[2]);
			const uint64_t offset = (uint64_t)index * array->stride;

			r[0] = index < array->entries ? (uintptr_t)array->data + offset : 0;
			NEXT();
		}
	}
	if (vm->natives[op->off].native->with_context)
		goto call_context;
	goto call_whole;
call_other:
	vm->pc = op;
	if (CHECKED)
		r[0] = contract_call(vm, op->off, r + 1);
	else
		r[0] = native_call(vm, (const struct vm_native_plan *)(uintptr_t)K, r + 1);
	NEXT();

/* Several in one (pairs.c): each leaves what its ops one by one leave. */
#define D1   r[op[1].dst]
#define S1   r[op[1].src]
#define NEXT_BUT_ONE() \
	do {           \
		op++;  \
		NEXT();\
	} while (0)
mov_add: D = S + S1; NEXT_BUT_ONE();
mov_add_k: D = S + op[1].imm; NEXT_BUT_ONE();
mov_and_k: D = S & op[1].imm; NEXT_BUT_ONE();
mov_lsh_k: D = S << (op[1].imm & 63); NEXT_BUT_ONE();
mov_rsh_k: D = S >> (op[1].imm & 63); NEXT_BUT_ONE();
lsh_add: D <<= K & 63; D1 += S1; NEXT_BUT_ONE();
mov_add_ldxb: {
	const uint64_t address = S + S1;

	D = address;
	op += 2;
	vm->pc = op;
	D = MEMORY(uint8_t, address + op->off);
	NEXT();
}
#define ADD_LOAD(type)                             \
	{                                          \
		const uint64_t address = D + S;    \
                                                   \
		D = address;                       \
		op++;                              \
		vm->pc = op;                       \
		D = MEMORY(type, address + op->off); \
		NEXT();                            \
	}
add_ldxb: ADD_LOAD(uint8_t)
add_ldxw: ADD_LOAD(uint32_t)
add_ldxdw: ADD_LOAD(uint64_t)
#define ADD_JUMP(condition)         \
	{                           \
		D += K;             \
		op++;               \
		if (condition)      \
			JUMP();     \
		NEXT();             \
	}
add_jne_k: ADD_JUMP(D != K)
add_jne: ADD_JUMP(D != S)
add_jlt: ADD_JUMP(D < S)
add_jgt: ADD_JUMP(D > S)

stop:
	return r[0];

interrupted:
	vm->pc = op;
	if (vm_take_interrupt(vm))
		fault_raise(vm, VM_FAULT_INTERRUPTED);
	atomic_store((_Atomic(const void *) *)&op->handler, handlers[op->id]);
	if (vm_take_interrupt(vm))
		fault_raise(vm, VM_FAULT_INTERRUPTED);
	goto *handlers[op->id];

out_of_budget:
	vm->pc = op;
	fault_raise(vm, VM_FAULT_BUDGET);

run_off:
/* Refused by the validator. */
op_CALL:
op_CALL_KFUNC:
op_LDDW_MAP_FD:
op_LDDW_MAP_VALUE:
op_LDDW_VARIABLE:
op_LDDW_MAP_INDEX:
op_LDDW_INDEX_VALUE:
op_LDABSW:
op_LDABSH:
op_LDABSB:
op_LDINDW:
op_LDINDH:
op_LDINDB:
	vm->pc = op;
	fault_raise(vm, VM_FAULT_EXECUTE);
}
/* clang-format on */

#undef D
#undef S
#undef K
#undef DISPATCH
#undef NEXT
#undef JUMP
#undef ALU
#undef COMPARE
#undef CHECK
#undef ACCESS
#undef CELL
#undef ATOMIC
#undef D1
#undef S1
#undef NEXT_BUT_ONE
#undef ADD_LOAD
#undef ADD_JUMP
