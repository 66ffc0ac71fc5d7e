// SPDX-License-Identifier: BSD-2-Clause
/*
 * Field offsets from the kernel itself: it applies CO-RE relocations of a program that is loaded
 * with them (Linux 5.17), from types that it has parsed already. A program that does nothing but
 * hand out the relocated offsets takes 1 ms; reading 5 MB of types takes 20.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "kern/internal.h"
#include "kern/offsets.h"

#define MAX_FIELDS 32

/* Types that every question uses, by id. A field's type must only be of the right kind. */
enum {
	TYPE_INT = 1,
	TYPE_POINTER,
	TYPE_ARRAY,
	TYPE_EMPTY, /* struct {} */
	TYPE_PROTO,
	TYPE_FUNC,
	TYPES_FIXED = TYPE_FUNC,
};

struct question {
	struct buf types, strings;
	struct bpf_core_relo relocations[MAX_FIELDS];
	struct bpf_insn code[2 * MAX_FIELDS + 2];
	int failed;
};

static uint32_t add_string(struct question *question, const char *text)
{
	uint32_t offset = question->strings.size;

	question->failed |= buf_append(&question->strings, text, strlen(text) + 1);
	return offset;
}

static void add_words(struct question *question, const uint32_t *words, size_t count)
{
	question->failed |= buf_append(&question->types, words, count * sizeof(*words));
}

static uint32_t type_info(uint32_t kind, uint32_t vlen)
{
	return kind << 24 | vlen;
}

/* Documentation/bpf/btf.rst: name, info, size or type; then what the kind adds. */
static void add_fixed_types(struct question *question)
{
	uint32_t empty = add_string(question, ""), integer = add_string(question, "int");
	uint32_t function = add_string(question, "ask");
	uint32_t words[] = {
		integer,
		type_info(BTF_KIND_INT, 0),
		4,
		BTF_INT_SIGNED << 24 | 32,
		empty,
		type_info(BTF_KIND_PTR, 0),
		0,
		empty,
		type_info(BTF_KIND_ARRAY, 0),
		0,
		TYPE_INT,
		TYPE_INT,
		1,
		integer,
		type_info(BTF_KIND_STRUCT, 0),
		0,
		empty,
		type_info(BTF_KIND_FUNC_PROTO, 0),
		TYPE_INT,
		function,
		type_info(BTF_KIND_FUNC, BTF_FUNC_STATIC),
		TYPE_PROTO,
	};

	add_words(question, words, sizeof(words) / sizeof(words[0]));
}

/* struct STRUCTURE { KIND FIELD; } and the relocation that asks where the kernel's FIELD is. */
static void add_field(struct question *question, const struct field_offset *field, int index)
{
	static const uint32_t kinds[] = { [FIELD_INT] = TYPE_INT,
					  [FIELD_POINTER] = TYPE_POINTER,
					  [FIELD_ARRAY] = TYPE_ARRAY,
					  [FIELD_STRUCT] = TYPE_EMPTY };
	uint32_t words[] = { add_string(question, field->structure),
			     type_info(BTF_KIND_STRUCT, 1),
			     8,
			     add_string(question, field->field),
			     kinds[field->kind],
			     0 };

	add_words(question, words, sizeof(words) / sizeof(words[0]));
	question->code[2 * index] =
		(struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2 };
	question->code[2 * index + 1] = (struct bpf_insn){ .code = BPF_STX | BPF_MEM | BPF_W,
							   .dst_reg = BPF_REG_1,
							   .src_reg = BPF_REG_2,
							   .off = 4 * index };
	question->relocations[index] = (struct bpf_core_relo){
		.insn_off = 2 * index * sizeof(struct bpf_insn),
		.type_id = TYPES_FIXED + 1 + index,
		.access_str_off = add_string(question, "0:0"),
		.kind = BPF_CORE_FIELD_BYTE_OFFSET,
	};
}

static int load_types(const struct question *question)
{
	CLEANUP(buf_deinit) struct buf btf = { 0 };
	struct btf_header header = { .magic = BTF_MAGIC,
				     .version = BTF_VERSION,
				     .hdr_len = sizeof(header),
				     .type_len = question->types.size,
				     .str_off = question->types.size,
				     .str_len = question->strings.size };

	if (buf_append(&btf, &header, sizeof(header)) ||
	    buf_append(&btf, question->types.data, question->types.size) ||
	    buf_append(&btf, question->strings.data, question->strings.size))
		return -ENOMEM;
	return bpf_btf_load(btf.data, btf.size, NULL);
}

/* libbpf keeps relocations for itself: hence the system call. */
static int load_program(const struct question *question, int btf, int count)
{
	struct bpf_func_info function = { .type_id = TYPE_FUNC };
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SYSCALL;
	attr.prog_flags = BPF_F_SLEEPABLE;
	attr.insns = (uintptr_t)question->code;
	attr.insn_cnt = 2 * count + 2;
	attr.license = (uintptr_t) "GPL";
	attr.prog_btf_fd = btf;
	attr.func_info = (uintptr_t)&function;
	attr.func_info_cnt = 1;
	attr.func_info_rec_size = sizeof(function);
	attr.core_relos = (uintptr_t)question->relocations;
	attr.core_relo_cnt = count;
	attr.core_relo_rec_size = sizeof(question->relocations[0]);
	fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

int offsets_ask(struct field_offset *fields, int count)
{
	CLEANUP(free_pointer) struct question *question = calloc(1, sizeof(*question));
	CLEANUP(close_fd) int btf = -1;
	CLEANUP(close_fd) int program = -1;
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint32_t answers[MAX_FIELDS] = { 0 };
	int i, code;

	if (!question)
		return -ENOMEM;
	if (count > MAX_FIELDS)
		return -E2BIG;
	LISTEN(NULL);
	add_fixed_types(question);
	for (i = 0; i < count; i++)
		add_field(question, &fields[i], i);
	question->code[2 * count] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	question->code[2 * count + 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	btf = question->failed ? -ENOMEM : load_types(question);
	program = btf < 0 ? btf : load_program(question, btf, count);
	buf_deinit(&question->types);
	buf_deinit(&question->strings);
	if (program < 0)
		return program;
	opts.ctx_in = answers; /* programs of this type answer in place */
	opts.ctx_size_in = sizeof(answers);
	code = bpf_prog_test_run_opts(program, &opts);
	if (code)
		return code;
	for (i = 0; i < count; i++)
		fields[i].offset = answers[i];
	return 0;
}
