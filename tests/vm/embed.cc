// SPDX-License-Identifier: BSD-2-Clause
// A C++ program that embeds the vm: the header and the libraries as a C++ compiler sees them.
#include <duet/vm.h>

#include <cstdio>
#include <cstring>

static uint64_t twice(uint64_t value, uint64_t, uint64_t, uint64_t, uint64_t, void *context)
{
	return 2 * value + *static_cast<uint64_t *>(context);
}

int main()
{
	bpf_insn code[2] = {};
	vm_native native = {};
	vm_function function = { "main", 0, 2, 1 };
	vm_options options = {};
	uint64_t one = 1, argument = 20, result = 0;
	vm_fault fault;
	vm *machine = nullptr;
	char why[200];

	code[0].code = BPF_JMP | BPF_CALL;
	code[1].code = BPF_JMP | BPF_EXIT;
	native.name = "twice";
	native.function = reinterpret_cast<void *>(twice);
	native.result = VM_U64;
	native.nargs = 5;
	native.with_context = true;
	options.size = sizeof(options);
	options.context = &one;
	vm_image image = {};
	image.size = sizeof(image);
	image.native_size = sizeof(native);
	image.code = code;
	image.ncode = 2;
	image.functions = &function;
	image.nfunctions = 1;
	image.natives = &native;
	image.nnatives = 1;
	if (vm_create(&image, &options, &machine, why, sizeof(why), nullptr)) {
		std::fprintf(stderr, "%s\n", why);
		return 1;
	}
	if (vm_call(machine, 0, &argument, 1, &result, &fault))
		return 2;
	std::printf("%llu %s\n", static_cast<unsigned long long>(result),
		    std::strlen(vm_engine_name(machine)) ? "named" : "");
	vm_destroy(machine);
	return 0;
}
