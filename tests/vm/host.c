// SPDX-License-Identifier: BSD-2-Clause
#include "host.h"

#include <stdio.h>
#include <string.h>

#include "natives.h"

#define STACK_BYTES 65536
#define BUDGET      10000000

bool host_has_room(const struct host *host, const struct generated *program)
{
	return host->nprograms < HOST_PROGRAMS && host->ncode + program->ncode <= HOST_CODE;
}

void host_clear(struct host *host)
{
	host->ncode = host->nfunctions = host->nprograms = 0;
}

static void relocate(const struct host *host, const struct generated *program,
		     struct bpf_insn *code)
{
	for (size_t i = 0; i < program->nrelocations; i++) {
		struct bpf_insn *pair = &code[program->relocations[i].at];
		uint64_t value = (uintptr_t)host->memory.value + program->relocations[i].offset;

		if (program->relocations[i].array < GENERATE_ARRAYS)
			value = native_handle(program->relocations[i].array);
		pair[0].imm = (uint32_t)value;
		pair[1].imm = value >> 32;
	}
}

void host_add(struct host *host, const struct generated *program)
{
	struct bpf_insn *code = &host->code[host->ncode];

	memcpy(code, program->code, program->ncode * sizeof(*code));
	relocate(host, program, code);
	for (size_t i = 0; i < program->ncode; i++) /* indices of functions */
		if (code[i].code == 0x18 && code[i].src_reg == BPF_PSEUDO_FUNC)
			code[i].imm += host->nfunctions;
	host->main[host->nprograms++] = host->nfunctions;
	for (size_t i = 0; i < program->nfunctions; i++) {
		host->functions[host->nfunctions] = program->functions[i];
		host->functions[host->nfunctions++].first += host->ncode;
	}
	host->ncode += program->ncode;
}

int host_create(struct host *host, const struct engine *engine, char *why, size_t why_size)
{
	struct vm_image image = { VM_IMAGE_SIZES,
				  .code = host->code,
				  .ncode = host->ncode,
				  .functions = host->functions,
				  .nfunctions = host->nfunctions,
				  .natives = natives,
				  .nnatives = GENERATE_NATIVES,
				  .arrays = host->arrays,
				  .narrays = GENERATE_ARRAYS };
	struct vm_options options = { .size = sizeof(options),
				      .context = &host->memory,
				      .stack_bytes = STACK_BYTES,
				      .instruction_budget = engine->budget ? BUDGET : 0,
				      .engine = engine->kind,
				      .checked = engine->checked,
				      .passes_off = engine->passes_off };

	for (uint32_t i = 0; i < GENERATE_ARRAYS; i++)
		host->arrays[i] =
			(struct vm_array){ native_handle(i), host->memory.arrays[i],
					   generate_arrays[i].stride, generate_arrays[i].entries };
	if (vm_create(&image, &options, &host->vm, why, why_size, NULL)) {
		host->vm = NULL;
		return -1;
	}
	if (!engine->checked ||
	    !vm_region_add(host->vm, &host->memory, sizeof(host->memory), VM_REGION_WRITABLE))
		return 0;
	host_destroy(host);
	snprintf(why, why_size, "the region cannot be added");
	return -1;
}

int host_run(struct host *host, uint32_t program, const struct generate_memory *start, char *why,
	     size_t why_size)
{
	struct vm_fault fault;
	char text[256];

	host->memory = *start;
	if (!vm_call(host->vm, host->main[program], NULL, 0, NULL, &fault))
		return 0;
	snprintf(why, why_size, "instruction %u: %s", fault.insn,
		 vm_fault_text(&fault, text, sizeof(text)));
	return -1;
}

void host_destroy(struct host *host)
{
	vm_destroy(host->vm);
	host->vm = NULL;
}
