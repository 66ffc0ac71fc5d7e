// SPDX-License-Identifier: BSD-2-Clause
/*
 * Data between two pages that nobody may touch: loads, stores and atomics of every width at the
 * first and at the last byte, in every shape that the compiler knows, in every engine. One byte
 * further is a fault, and says where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "code.h"
#include "host.h"

enum shape {
	SHAPE_DIRECT, /* [r1] */
	SHAPE_FAR,    /* r1 has been moved; [r1 - moved] */
	SHAPE_INDEX,  /* [r1 + (r2 << 3) + off] */
	SHAPE_CHANGE, /* load, change, store */
	SHAPE_TEST,   /* load, compare */
	SHAPES
};

#define FAR   20000
#define INDEX 3

struct data {
	uint8_t *map, *start; /* one page with one before it and one behind it */
	size_t page;
};

static void make_data(struct data *data)
{
	data->page = sysconf(_SC_PAGESIZE);
	data->map = mmap(NULL, 3 * data->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(data->map != MAP_FAILED);
	data->start = data->map + data->page;
	assert_int_equal(mprotect(data->start, data->page, PROT_READ | PROT_WRITE), 0);
}

static bool is_load(const struct isa_row *row)
{
	return row->form == ISA_FORM_LOAD;
}

/* false: the operation has no such shape. */
static bool write_code(const struct isa_row *row, enum shape shape, struct bpf_insn *code,
		       size_t *ncode)
{
	struct bpf_insn insn = {
		.code = row->opcode, .dst_reg = 1, .src_reg = 3, .imm = 0x1234567
	};
	static const uint8_t stores[] = { [1] = 0x73, [2] = 0x6b, [4] = 0x63, [8] = 0x7b };
	size_t n = 0;

	if (shape >= SHAPE_CHANGE && !is_load(row))
		return false;
	if (is_load(row)) {
		insn.dst_reg = 4;
		insn.src_reg = 1;
	}
	if (row->form == ISA_FORM_STORE_K || is_load(row))
		insn.src_reg = is_load(row) ? 1 : 0;
	if (row->select == ISA_SELECT_IMM)
		insn.imm = row->value;
	if (is_load(row) || row->form == ISA_FORM_STORE_X)
		insn.imm = 0;
	code[n++] = MOV_K(0, 7);
	code[n++] = MOV_K(3, 0x55);
	code[n++] = MOV_K(4, 0);
	if (shape == SHAPE_FAR) {
		code[n++] = ADD_K(1, FAR);
		insn.off = -FAR;
	} else if (shape == SHAPE_INDEX) { /* r1 comes as it would have to be */
		code[n++] = RAW(0x67, 2, 0, 0, 3);
		code[n++] = ADD_X(1, 2);
		insn.off = -8 * INDEX;
	}
	code[n++] = insn;
	if (shape == SHAPE_CHANGE) {
		code[n++] = ADD_K(4, 5);
		code[n++] = RAW(stores[row->width], 1, 4, insn.off, 0);
		code[n++] = MOV_K(4, 0);
	} else if (shape == SHAPE_TEST) {
		code[n++] = RAW(0x25, 4, 0, 1, 100);
		code[n++] = MOV_K(0, 9);
		code[n++] = MOV_K(4, 0);
	}
	code[n++] = ADD_X(0, 4); /* what was loaded */
	code[n++] = ADD_X(0, 3); /* ... or fetched */
	code[n++] = EXIT();
	*ncode = n;
	return true;
}

static bool touches_memory(const struct isa_row *row)
{
	return row->form == ISA_FORM_LOAD || row->form == ISA_FORM_STORE_K ||
	       row->form == ISA_FORM_STORE_X || row->form == ISA_FORM_ATOMIC ||
	       row->form == ISA_FORM_CMPXCHG;
}

static struct vm *make_vm(const struct engine *engine, const struct bpf_insn *code, size_t ncode,
			  const struct data *data)
{
	struct vm_function function = { .name = "access", .count = ncode, .nargs = 5 };
	struct vm_image image = { VM_IMAGE_SIZES, .code = code, .ncode = ncode,
				  .functions = &function, .nfunctions = 1 };
	struct vm_options options = { .size = sizeof(options),
				      .stack_bytes = 65536,
				      .instruction_budget = engine->budget ? 1000 : 0,
				      .engine = engine->kind,
				      .checked = engine->checked,
				      .passes_off = engine->passes_off };
	char why[256];
	struct vm *vm;

	if (vm_create(&image, &options, &vm, why, sizeof(why), NULL))
		fail_msg("%s: %s", engine->name, why);
	if (engine->checked)
		assert_int_equal(vm_region_add(vm, data->start, data->page, VM_REGION_WRITABLE), 0);
	return vm;
}

static int run_at(struct vm *vm, const struct data *data, const uint8_t *place, uint64_t *result,
		  struct vm_fault *fault)
{
	uint64_t args[2] = { (uintptr_t)place, INDEX };

	for (size_t i = 0; i < data->page; i++)
		data->start[i] = 0x80 + i % 101;
	*result = 0;
	return vm_call(vm, 0, args, 2, result, fault);
}

struct ending {
	uint64_t result;
	uint8_t bytes[2][16]; /* first and last ones of the page */
};

static void inside(const struct engine *engine, struct vm *vm, const struct data *data,
		   const uint8_t *place, const char *what, struct ending *ret)
{
	struct vm_fault fault;
	char text[160];

	if (run_at(vm, data, place, &ret->result, &fault))
		fail_msg("%s: %s: %s", engine->name, what,
			 vm_fault_text(&fault, text, sizeof(text)));
	memcpy(ret->bytes[0], data->start, 16);
	memcpy(ret->bytes[1], data->start + data->page - 16, 16);
}

/* Beyond the first byte that may not be touched: what the processor tells is where it stopped. */
static void outside(const struct engine *engine, struct vm *vm, const struct data *data,
		    const uint8_t *place, const struct isa_row *row, bool reads)
{
	uint64_t first = (uintptr_t)place, result;
	struct vm_fault fault;

	assert_int_equal(run_at(vm, data, place, &result, &fault), -EFAULT);
	if (fault.address < first || fault.address >= first + row->width ||
	    fault.kind != (reads ? VM_FAULT_READ : VM_FAULT_WRITE))
		fail_msg("%s: %s at %llx: kind %d at %llx", engine->name, row->name,
			 (unsigned long long)first, fault.kind, (unsigned long long)fault.address);
}

static void check_operation(const struct data *data, const struct isa_row *row, enum shape shape)
{
	uint8_t *first = data->start, *last = data->start + data->page - row->width;
	struct ending expected[2], got;
	struct bpf_insn code[16];
	size_t ncode;

	if (!write_code(row, shape, code, &ncode))
		return;
	for (size_t i = 0; i < nengines; i++) {
		struct vm *vm;

		if (!engines[i].landed)
			continue;
		vm = make_vm(&engines[i], code, ncode, data);
		for (int end = 0; end < 2; end++) {
			inside(&engines[i], vm, data, end ? last : first, row->name,
			       i ? &got : &expected[end]);
			if (i && memcmp(&got, &expected[end], sizeof(got)))
				fail_msg("%s: %s, shape %d, end %d: %llx, not %llx",
					 engines[i].name, row->name, shape, end,
					 (unsigned long long)got.result,
					 (unsigned long long)expected[end].result);
		}
		if (shape != SHAPE_CHANGE) { /* which of the two is at fault is open */
			outside(&engines[i], vm, data, first - 1, row, is_load(row));
			outside(&engines[i], vm, data, last + 1, row, is_load(row));
		}
		vm_destroy(vm);
	}
}

static void accesses_stay_in_their_bytes(void **state)
{
	struct data data;

	(void)state;
	make_data(&data);
	for (int op = 0; op < ISA_NOPS; op++)
		for (int shape = 0; touches_memory(isa_row(op)) && shape < SHAPES; shape++)
			check_operation(&data, isa_row(op), shape);
	munmap(data.map, 3 * data.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accesses_stay_in_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
