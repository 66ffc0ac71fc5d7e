// SPDX-License-Identifier: BSD-2-Clause
/* Encodings against those of an assembler (llvm-mc), and addresses of operands read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vm/jit/x86_encode.h"

#define MEM(base_, index_, scale_, disp_) \
	((struct x86_mem){ .base = (base_), .index = (index_), .scale = (scale_), .disp = (disp_) })

/* What @call emits is @expected, in hex. */
#define CASE(text, expected, call)                                  \
	do {                                                        \
		struct x86_emit emit = { bytes, true }, *e = &emit; \
		call;                                               \
		compare(text, expected, (size_t)(e->at - bytes));   \
	} while (0)

static uint8_t bytes[64];

static void compare(const char *text, const char *expected, size_t n)
{
	char got[256] = "";

	for (size_t i = 0; i < n; i++)
		sprintf(got + strlen(got), i ? " %02x" : "%02x", bytes[i]);
	if (strcmp(got, expected))
		fail_msg("%s: %s, not %s", text, got, expected);
}

static void registers_and_constants(void **state)
{
	(void)state;
	CASE("mov rdi, r8", "4c 89 c7", x86_mov_rr(e, true, X86_RDI, X86_R8));
	CASE("mov edi, edi", "89 ff", x86_mov_rr(e, false, X86_RDI, X86_RDI));
	CASE("xor r9d, r9d", "45 31 c9", x86_mov_ri(e, X86_R9, 0));
	CASE("mov r15d, 4294967295", "41 bf ff ff ff ff", x86_mov_ri(e, X86_R15, UINT32_MAX));
	CASE("mov rax, -2", "48 c7 c0 fe ff ff ff", x86_mov_ri(e, X86_RAX, (uint64_t)-2));
	CASE("movabs r10, 81985529216486895", "49 ba ef cd ab 89 67 45 23 01",
	     x86_mov_ri(e, X86_R10, 0x123456789abcdef));
	CASE("add rbx, 127", "48 83 c3 7f", x86_alu_ri(e, X86_ADD, true, X86_RBX, 127));
	CASE("sub r13d, 128", "41 81 ed 80 00 00 00", x86_alu_ri(e, X86_SUB, false, X86_R13, 128));
	CASE("cmp rax, 1000", "48 3d e8 03 00 00", x86_alu_ri(e, X86_CMP, true, X86_RAX, 1000));
	CASE("and eax, 1000", "25 e8 03 00 00", x86_alu_ri(e, X86_AND, false, X86_RAX, 1000));
	CASE("or r8, r9", "4d 09 c8", x86_rr(e, X86_ALU_STORE(X86_OR), true, X86_R9, X86_R8));
	CASE("xor esi, r14d", "44 31 f6",
	     x86_rr(e, X86_ALU_STORE(X86_XOR), false, X86_R14, X86_RSI));
	CASE("test eax, 65536", "a9 00 00 01 00", x86_test_ri(e, false, X86_RAX, 65536));
	CASE("test rcx, -65536", "48 f7 c1 00 00 ff ff", x86_test_ri(e, true, X86_RCX, -65536));
	CASE("imul rdx, rsi, 100", "48 6b d6 64", x86_imul_rri(e, true, X86_RDX, X86_RSI, 100));
	CASE("imul r9d, eax, 1000", "44 69 c8 e8 03 00 00",
	     x86_imul_rri(e, false, X86_R9, X86_RAX, 1000));
	CASE("imul rdx, r15", "49 0f af d7", x86_rr(e, X86_IMUL, true, X86_RDX, X86_R15));
	CASE("shl rcx, 5", "48 c1 e1 05", x86_shift_ri(e, X86_SHL, true, X86_RCX, 5));
	CASE("sar r11d, 1", "41 d1 fb", x86_shift_ri(e, X86_SAR, false, X86_R11, 1));
	CASE("rcr r11, 1", "49 d1 db", x86_shift_ri(e, X86_RCR, true, X86_R11, 1));
	CASE("shr rdi, cl", "48 d3 ef", x86_shift_cl(e, X86_SHR, true, X86_RDI));
	CASE("bswap r14", "49 0f ce", x86_bswap(e, true, X86_R14));
	CASE("bswap eax", "0f c8", x86_bswap(e, false, X86_RAX));
	CASE("shlx rax, rdi, r8", "c4 e2 b9 f7 c7",
	     x86_shift_bmi(e, X86_SHL, true, X86_RAX, X86_RDI, X86_R8));
	CASE("shrx r13d, ecx, edx", "c4 62 6b f7 e9",
	     x86_shift_bmi(e, X86_SHR, false, X86_R13, X86_RCX, X86_RDX));
	CASE("sarx rbx, r15, r14", "c4 c2 8a f7 df",
	     x86_shift_bmi(e, X86_SAR, true, X86_RBX, X86_R15, X86_R14));
	CASE("mulx r11, r10, r13", "c4 42 ab f6 dd", x86_mulx(e, X86_R11, X86_R10, X86_R13));
	CASE("mulx rdi, rsi, rax", "c4 e2 cb f6 f8", x86_mulx(e, X86_RDI, X86_RSI, X86_RAX));
	CASE("movzx edi, dil", "40 0f b6 ff", x86_rr(e, X86_MOVZX8, false, X86_RDI, X86_RDI));
	CASE("movsx r9, al", "4c 0f be c8", x86_rr(e, X86_MOVSX8, true, X86_R9, X86_RAX));
}

static void memory(void **state)
{
	(void)state;
	CASE("movzx eax, byte ptr [rdi]", "0f b6 07",
	     x86_load(e, 1, false, X86_RAX, MEM(X86_RDI, X86_NONE, 0, 0)));
	CASE("movsx rdi, byte ptr [r13]", "49 0f be 7d 00",
	     x86_load(e, 1, true, X86_RDI, MEM(X86_R13, X86_NONE, 0, 0)));
	CASE("movzx r8d, word ptr [rbp]", "44 0f b7 45 00",
	     x86_load(e, 2, false, X86_R8, MEM(X86_RBP, X86_NONE, 0, 0)));
	CASE("movsx rax, word ptr [r12 + 1]", "49 0f bf 44 24 01",
	     x86_load(e, 2, true, X86_RAX, MEM(X86_R12, X86_NONE, 0, 1)));
	CASE("mov ecx, dword ptr [rsp]", "8b 0c 24",
	     x86_load(e, 4, false, X86_RCX, MEM(X86_RSP, X86_NONE, 0, 0)));
	CASE("movsxd rcx, dword ptr [rsp + 128]", "48 63 8c 24 80 00 00 00",
	     x86_load(e, 4, true, X86_RCX, MEM(X86_RSP, X86_NONE, 0, 128)));
	CASE("mov rdx, qword ptr [rdi + 8*rsi - 128]", "48 8b 54 f7 80",
	     x86_load(e, 8, false, X86_RDX, MEM(X86_RDI, X86_RSI, 3, -128)));
	CASE("mov r15, qword ptr [r13 + r14]", "4f 8b 7c 35 00",
	     x86_load(e, 8, false, X86_R15, MEM(X86_R13, X86_R14, 0, 0)));
	CASE("mov rax, qword ptr [4*rcx + 4096]", "48 8b 04 8d 00 10 00 00",
	     x86_load(e, 8, false, X86_RAX, MEM(X86_NONE, X86_RCX, 2, 4096)));
	CASE("mov rax, qword ptr [4096]", "48 8b 04 25 00 10 00 00",
	     x86_load(e, 8, false, X86_RAX, MEM(X86_NONE, X86_NONE, 0, 4096)));
	CASE("mov byte ptr [rax], sil", "40 88 30",
	     x86_store(e, 1, X86_RSI, MEM(X86_RAX, X86_NONE, 0, 0)));
	CASE("mov byte ptr [rax], cl", "88 08",
	     x86_store(e, 1, X86_RCX, MEM(X86_RAX, X86_NONE, 0, 0)));
	CASE("mov byte ptr [r8 + 2*r9], r10b", "47 88 14 48",
	     x86_store(e, 1, X86_R10, MEM(X86_R8, X86_R9, 1, 0)));
	CASE("mov word ptr [rbx + 7], di", "66 89 7b 07",
	     x86_store(e, 2, X86_RDI, MEM(X86_RBX, X86_NONE, 0, 7)));
	CASE("mov dword ptr [rbx], r11d", "44 89 1b",
	     x86_store(e, 4, X86_R11, MEM(X86_RBX, X86_NONE, 0, 0)));
	CASE("mov qword ptr [rbx], rbx", "48 89 1b",
	     x86_store(e, 8, X86_RBX, MEM(X86_RBX, X86_NONE, 0, 0)));
	CASE("mov byte ptr [rdi], -1", "c6 07 ff",
	     x86_store_i(e, 1, -1, MEM(X86_RDI, X86_NONE, 0, 0)));
	CASE("mov word ptr [rdi], 4660", "66 c7 07 34 12",
	     x86_store_i(e, 2, 0x1234, MEM(X86_RDI, X86_NONE, 0, 0)));
	CASE("mov dword ptr [rdi], 7", "c7 07 07 00 00 00",
	     x86_store_i(e, 4, 7, MEM(X86_RDI, X86_NONE, 0, 0)));
	CASE("mov qword ptr [r15], -7", "49 c7 07 f9 ff ff ff",
	     x86_store_i(e, 8, -7, MEM(X86_R15, X86_NONE, 0, 0)));
	CASE("add byte ptr [rdi], sil", "40 00 37",
	     x86_alu_mr(e, X86_ADD, 1, MEM(X86_RDI, X86_NONE, 0, 0), X86_RSI));
	CASE("xor qword ptr [rdi], r9", "4c 31 0f",
	     x86_alu_mr(e, X86_XOR, 8, MEM(X86_RDI, X86_NONE, 0, 0), X86_R9));
	CASE("sub dword ptr [rdi + 4], 5", "83 6f 04 05",
	     x86_alu_mi(e, X86_SUB, 4, MEM(X86_RDI, X86_NONE, 0, 4), 5));
	CASE("or word ptr [rdi], 5", "66 83 0f 05",
	     x86_alu_mi(e, X86_OR, 2, MEM(X86_RDI, X86_NONE, 0, 0), 5));
	CASE("and byte ptr [rsi], -128", "80 26 80",
	     x86_alu_mi(e, X86_AND, 1, MEM(X86_RSI, X86_NONE, 0, 0), -128));
	CASE("cmp qword ptr [rsi], 65535", "48 81 3e ff ff 00 00",
	     x86_alu_mi(e, X86_CMP, 8, MEM(X86_RSI, X86_NONE, 0, 0), 65535));
	CASE("test byte ptr [rsi], 64", "f6 06 40",
	     x86_test_mi(e, 1, MEM(X86_RSI, X86_NONE, 0, 0), 64));
	CASE("lock xadd qword ptr [rdi], rsi", "f0 48 0f c1 37",
	     x86_rm(e, X86_XADD, true, X86_RSI, MEM(X86_RDI, X86_NONE, 0, 0)));
	CASE("lock cmpxchg dword ptr [r8], ebx", "f0 41 0f b1 18",
	     x86_rm(e, X86_CMPXCHG, false, X86_RBX, MEM(X86_R8, X86_NONE, 0, 0)));
	CASE("xchg qword ptr [rdx], rax", "48 87 02",
	     x86_rm(e, X86_XCHG, true, X86_RAX, MEM(X86_RDX, X86_NONE, 0, 0)));
	CASE("lock and dword ptr [rdx], eax", "f0 21 02",
	     x86_rm(e, X86_LOCK | X86_ALU_STORE(X86_AND), false, X86_RAX,
		    MEM(X86_RDX, X86_NONE, 0, 0)));
}

static void others(void **state)
{
	(void)state;
	CASE("lea rax, [rax + 2*rax]", "48 8d 04 40",
	     x86_rm(e, X86_LEA, true, X86_RAX, MEM(X86_RAX, X86_RAX, 1, 0)));
	CASE("div rcx", "48 f7 f1", x86_rr(e, X86_GROUP3, true, 6, X86_RCX));
	CASE("idiv r11d", "41 f7 fb", x86_rr(e, X86_GROUP3, false, 7, X86_R11));
	CASE("neg r8", "49 f7 d8", x86_rr(e, X86_GROUP3, true, 3, X86_R8));
	CASE("movq xmm1, rsi", "66 48 0f 6e ce", x86_rr(e, X86_MOVQ_TO, true, 1, X86_RSI));
	CASE("movd xmm0, r8d", "66 41 0f 6e c0", x86_rr(e, X86_MOVQ_TO, false, 0, X86_R8));
	CASE("movq rax, xmm0", "66 48 0f 7e c0", x86_rr(e, X86_MOVQ_FROM, true, 0, X86_RAX));
	CASE("addsd xmm0, xmm1", "f2 0f 58 c1", x86_rr(e, X86_ADDSD, false, 0, 1));
	CASE("ucomisd xmm1, xmm0", "66 0f 2e c8", x86_rr(e, X86_UCOMISD, false, 1, 0));
	CASE("cvtsi2sd xmm0, rdi", "f2 48 0f 2a c7", x86_rr(e, X86_CVTSI2SD, true, 0, X86_RDI));
	CASE("cvttsd2si rax, xmm0", "f2 48 0f 2c c0", x86_rr(e, X86_CVTTSD2SI, true, X86_RAX, 0));
	CASE("push r13", "41 55", x86_push(e, X86_R13));
	CASE("pop rbx", "5b", x86_pop(e, X86_RBX));
	CASE("call rax", "ff d0", x86_rr(e, X86_CALL_RM, false, 2, X86_RAX));
	CASE("jmp r11", "41 ff e3", x86_rr(e, X86_CALL_RM, false, 4, X86_R11));
	CASE("jmp qword ptr [r11 + 8*rcx]", "41 ff 24 cb",
	     x86_rm(e, X86_CALL_RM, false, 4, MEM(X86_R11, X86_RCX, 3, 0)));
	CASE("cmp rsp, qword ptr fs:[-8]", "64 48 3b 24 25 f8 ff ff ff",
	     x86_rm(e, X86_ALU_LOAD(X86_CMP), true, X86_RSP,
		    ((struct x86_mem){
			    .base = X86_NONE, .index = X86_NONE, .fs = true, .disp = -8 })));
}

/* The long forms, which the back end emits when it is asked not to be brief. */
static void long_forms(void **state)
{
	struct x86_emit e = { bytes, false };

	(void)state;
	x86_alu_ri(&e, X86_ADD, true, X86_RAX, 1);
	compare("add rax, 1", "48 81 c0 01 00 00 00", (size_t)(e.at - bytes));
	e.at = bytes;
	x86_load(&e, 8, false, X86_RAX, MEM(X86_RDI, X86_NONE, 0, 8));
	compare("mov rax, [rdi + 8]", "48 8b 87 08 00 00 00", (size_t)(e.at - bytes));
	e.at = bytes;
	x86_mov_ri(&e, X86_RCX, 0);
	compare("mov ecx, 0", "b9 00 00 00 00", (size_t)(e.at - bytes));
}

/* Counted from the first byte of the instruction, encoded from behind its last. */
static void relative_to_itself(void **state)
{
	struct x86_emit e = { bytes, true };

	(void)state;
	x86_rm(&e, X86_LEA, true, X86_RDI, MEM(X86_RIP, X86_NONE, 0, 0x1000));
	compare("lea rdi, [rip + 0xff9]", "48 8d 3d f9 0f 00 00", (size_t)(e.at - bytes));
}

static void skips(void **state)
{
	struct x86_emit e = { bytes, true };
	uint8_t *skip = x86_skip(&e, X86_E);

	(void)state;
	x86_nop(&e, 5);
	x86_land(&e, skip);
	compare("je 5", "74 05 0f 1f 44 00 00", (size_t)(e.at - bytes));
}

static void padding(void **state)
{
	(void)state;
	for (size_t n = 0; n < 40; n++) {
		struct x86_emit e = { bytes, true };

		x86_nop(&e, n);
		assert_int_equal(e.at - bytes, n);
	}
}

static void operand_addresses(void **state)
{
	static const int32_t disps[] = { 0, 1, -128, 4096 };
	uint64_t registers[16];

	(void)state;
	for (uint64_t i = 0; i < 16; i++)
		registers[i] = 0x0123456700000000 * (i + 1) + i;
	for (unsigned int base = 0; base <= 16; base++)
		for (unsigned int index = 0; index <= 16; index++)
			for (unsigned int i = 0; i < 4; i++) {
				struct x86_mem mem =
					MEM(base == 16 ? X86_NONE : base,
					    index == 16 ? X86_NONE : index, i, disps[i]);
				struct x86_emit e = { bytes, true };
				uint64_t expected = (int64_t)mem.disp;

				if (index == X86_RSP)
					continue;
				if (base < 16)
					expected += registers[base];
				if (index < 16)
					expected += registers[index] << i;
				x86_store(&e, 1u << i, X86_RSI, mem);
				assert_int_equal(x86_operand_address(bytes, registers), expected);
				e.at = bytes;
				x86_load(&e, 1u << i, i & 1, X86_R9, mem);
				assert_int_equal(x86_operand_address(bytes, registers), expected);
				e.at = bytes;
				x86_rm(&e, X86_XADD, i & 1, X86_R9, mem);
				assert_int_equal(x86_operand_address(bytes, registers), expected);
			}
}

/* A push or a call that meets the end of the stack. */
static void stack_addresses(void **state)
{
	uint64_t registers[16] = { [X86_RSP] = 0x1000 };
	struct x86_emit e = { bytes, true };

	(void)state;
	x86_push(&e, X86_R15);
	assert_int_equal(x86_operand_address(bytes, registers), 0xff8);
	bytes[0] = 0xe8;
	assert_int_equal(x86_operand_address(bytes, registers), 0xff8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_and_constants),
		cmocka_unit_test(memory),
		cmocka_unit_test(others),
		cmocka_unit_test(long_forms),
		cmocka_unit_test(relative_to_itself),
		cmocka_unit_test(skips),
		cmocka_unit_test(padding),
		cmocka_unit_test(operand_addresses),
		cmocka_unit_test(stack_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
