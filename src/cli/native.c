// SPDX-License-Identifier: BSD-2-Clause
/*
 * Machine code as text, through capstone: it is looked for when it is needed, so that duet does not
 * depend on it. Its functions have been the same since version 3; where the texts lie in its struct
 * is found by trying, since that differs.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <duet/vm.h>

#include "cli/listing.h"

/* From capstone's manual; the numbers are part of its binary interface up to version 5. */
#define CS_ARCH_ARM64 1
#define CS_ARCH_X86   3
#define CS_MODE_64    (1 << 3)

#define NAME_SIZE 32 /* of a mnemonic; its operands follow */

struct native_listing {
	void *library;
	size_t handle;
	bool open;
	size_t name_at; /* offset of the mnemonic in an instruction */
	int (*cs_open)(int arch, int mode, size_t *handle);
	int (*cs_close)(size_t *handle);
	size_t (*cs_disasm)(size_t handle, const uint8_t *code, size_t size, uint64_t address,
			    size_t count, void **ret);
	void (*cs_free)(void *instructions, size_t count);
};

/* What all versions have in front of the bytes. */
struct head {
	unsigned int id;
	uint64_t address;
	uint16_t size;
};

static const char missing[] =
	"no capstone: machine code is shown as bytes: install libcapstone4 or libcapstone5 "
	"(apt install libcapstone4) to read it";

static void find_library(struct native_listing *native)
{
	const char *wanted = getenv("DUET_CAPSTONE");

	if (wanted) {
		native->library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
		return;
	}
	native->library = dlopen("libcapstone.so.5", RTLD_NOW | RTLD_LOCAL);
	if (!native->library)
		native->library = dlopen("libcapstone.so.4", RTLD_NOW | RTLD_LOCAL);
}

/* Tries it on `nop`, which must read so. */
static bool find_names(struct native_listing *native)
{
#if defined(__aarch64__)
	static const uint8_t nop[] = { 0x1f, 0x20, 0x03, 0xd5 };
#else
	static const uint8_t nop[] = { 0x90 };
#endif
	static const size_t places[] = { 18 + 16, 18 + 24 };
	void *found = NULL;
	bool good = false;

	if (native->cs_disasm(native->handle, nop, sizeof(nop), 0x1000, 1, &found) != 1)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !good; i++) {
		native->name_at = places[i];
		good = !memcmp((char *)found + places[i], "nop", 4);
	}
	native->cs_free(found, 1);
	return good;
}

struct native_listing *native_open(void)
{
	struct native_listing *native = calloc(1, sizeof(*native));
#if defined(__aarch64__)
	int arch = CS_ARCH_ARM64, mode = 0;
#else
	int arch = CS_ARCH_X86, mode = CS_MODE_64;
#endif

	if (!native)
		return NULL;
	find_library(native);
	if (!native->library)
		return native;
	native->cs_open = dlsym(native->library, "cs_open");
	native->cs_close = dlsym(native->library, "cs_close");
	native->cs_disasm = dlsym(native->library, "cs_disasm");
	native->cs_free = dlsym(native->library, "cs_free");
	if (!native->cs_open || !native->cs_close || !native->cs_disasm || !native->cs_free ||
	    native->cs_open(arch, mode, &native->handle))
		return native;
	native->open = find_names(native);
	if (!native->open)
		native->cs_close(&native->handle);
	return native;
}

void native_close(struct native_listing *native)
{
	if (!native)
		return;
	if (native->open)
		native->cs_close(&native->handle);
	if (native->library)
		dlclose(native->library);
	free(native);
}

const char *native_missing(const struct native_listing *native)
{
	return native->open ? NULL : missing;
}

/* One function's machine code, while it is printed. */
struct machine {
	const struct listing *listing;
	const uint8_t *code;
	size_t size;
};

static const char *function_name(const struct listing *listing, uint32_t function)
{
	return listing->user ? listing->user->functions[function].name
			     : listing->functions[function].name;
}

static size_t function_count(const struct listing *listing)
{
	return listing->user ? listing->user->nfunctions : listing->nfunctions;
}

/* "+0x12" in this function, the name of another one or of a C function, or "". */
static void name_address(const struct machine *machine, uintptr_t address, char *text, size_t size)
{
	const struct listing *listing = machine->listing;
	uintptr_t offset = address - (uintptr_t)machine->code;
	Dl_info info;

	text[0] = '\0';
	if (offset < machine->size) {
		snprintf(text, size, "+0x%zx", (size_t)offset);
		return;
	}
	for (uint32_t i = 0; i < function_count(listing); i++) {
		size_t length;

		if ((uintptr_t)vm_machine_code(listing->vm, i, &length) == address) {
			snprintf(text, size, "%s", function_name(listing, i));
			return;
		}
	}
	if (address > 0xffff && dladdr((void *)address, &info) && info.dli_sname &&
	    info.dli_saddr == (void *)address)
		snprintf(text, size, "%s", info.dli_sname);
}

/* The operands, with names for addresses that have one. */
static void print_operands(const struct machine *machine, const char *operands)
{
	const char *at;
	char name[256], *end;

	while ((at = strstr(operands, "0x"))) {
		uintptr_t address = strtoull(at, &end, 16);

		name_address(machine, address, name, sizeof(name));
		if (name[0]) {
			size_t before = at - operands;

			before -= before && operands[before - 1] == '#';
			printf("%.*s%s", (int)before, operands, name);
		} else {
			printf("%.*s", (int)(end - operands), operands);
		}
		operands = end;
	}
	printf("%s", operands);
}

static size_t print_bytes(const uint8_t *code, size_t size)
{
	size_t count = size < 16 ? size : 16, i;

	for (i = 0; i < count; i++)
		printf("%s%02x", i ? " " : "", code[i]);
	printf("\n");
	return count;
}

static size_t print_instruction(const struct machine *machine, const uint8_t *code, size_t size)
{
	const struct native_listing *native = machine->listing->native;
	void *found = NULL;
	size_t taken;
	const char *name;

	if (!native->open)
		return print_bytes(code, size);
	if (native->cs_disasm(native->handle, code, size, (uintptr_t)code, 1, &found) != 1)
		return print_bytes(code, 1);
	name = (const char *)found + native->name_at;
	printf("%s%s", name, name[NAME_SIZE] ? " " : "");
	print_operands(machine, name + NAME_SIZE);
	printf("\n");
	taken = ((const struct head *)found)->size;
	native->cs_free(found, 1);
	return taken;
}

/* The instruction of the listing that a byte of machine code comes from; -1: none. */
static int64_t origin_of(const struct listing *listing, const struct listing_code *code,
			 uint32_t function, size_t offset)
{
	int64_t insn = vm_machine_insn(listing->vm, function, offset);

	if (insn >= 0 && listing->half)
		insn = hook_half_insn(listing->half, insn);
	return insn < 0 ? -1 : insn - code->first;
}

/* An entry of a switch's table: where in this function it leads. */
static size_t print_entry(const struct machine *machine, size_t table, size_t at)
{
#if defined(__aarch64__)
	int32_t distance;
	size_t to;

	memcpy(&distance, machine->code + at, sizeof(distance));
	to = table + distance;
	printf(".word +0x%zx\n", to);
	return sizeof(distance);
#else
	uint64_t address;

	(void)table;
	memcpy(&address, machine->code + at, sizeof(address));
	printf(".quad +0x%zx\n", (size_t)(address - (uintptr_t)machine->code));
	return sizeof(address);
#endif
}

void native_print(const struct listing *listing, const struct listing_code *code, uint32_t function)
{
	struct machine machine = { .listing = listing };
	size_t at = 0, end, table;
	int64_t insn, last = INT64_MIN;
	bool in_table;

	machine.code = vm_machine_code(listing->vm, function, &machine.size);
	if (!machine.code) {
		printf("; the interpreter runs it: there is no machine code\n");
		return;
	}
	printf("; %s: %zu instructions, %s: %zu bytes\n", function_name(listing, function),
	       code->count, vm_engine_name(listing->vm), machine.size);
	while (at < machine.size) {
		insn = origin_of(listing, code, function, at);
		if (insn != last)
			listing_print_origin(listing, code, insn);
		last = insn;
		table = at;
		in_table = vm_machine_table(listing->vm, function, at);
		for (end = at + 1; end < machine.size &&
				   origin_of(listing, code, function, end) == insn &&
				   vm_machine_table(listing->vm, function, end) == in_table;)
			end++;
		while (at < end) {
			printf("; %12s+0x%zx: ", "", at);
			at += in_table ? print_entry(&machine, table, at)
				       : print_instruction(&machine, machine.code + at, end - at);
		}
	}
}
