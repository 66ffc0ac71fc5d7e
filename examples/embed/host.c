// SPDX-License-Identifier: BSD-2-Clause
/* Runs BPF code inside this process: the sum of some bytes, then a fault, which is only an error.
 *	cc host.c $(pkg-config --cflags --libs duetvm) -o host
 *	./host; ./host "$(duet asm sum.s --hex)" # your own f(const void *bytes, uint64_t size) */
#include <duet/vm.h>

#include <stdio.h>

static const char sum[] = "b706000000000000"  /*       r6 = 0 */
			  "1502050000000000"  /* loop: if r2 == 0 goto done */
			  "7113000000000000"  /*       r3 = *(u8 *)(r1 + 0) */
			  "0f36000000000000"  /*       r6 += r3 */
			  "0701000001000000"  /*       r1 += 1 */
			  "07020000ffffffff"  /*       r2 += -1 */
			  "0500faff00000000"  /*       goto loop */
			  "bf61000000000000"  /* done: r1 = r6 */
			  "8500000000000000"  /*       call 0, which is say() */
			  "bf60000000000000"  /*       r0 = r6 */
			  "9500000000000000"; /*       exit */

static void say(uint64_t value)
{
	printf("say: %llu\n", (unsigned long long)value);
}

static void run(struct vm *vm, const void *bytes, uint64_t size)
{
	uint64_t args[] = { (uintptr_t)bytes, size }, result;
	struct vm_fault fault;
	char text[200];

	if (vm_call(vm, 0, args, 2, &result, &fault))
		printf("fault in instruction %u: %s\n", fault.insn,
		       vm_fault_text(&fault, text, sizeof(text)));
	else
		printf("result: %llu\n", (unsigned long long)result);
}

int main(int argc, char **argv)
{
	unsigned char code[4096];
	const char *hex = argc > 1 ? argv[1] : sum;
	struct vm_native native = { "say", (void *)say, VM_VOID, .nargs = 1, .args = { VM_U64 } };
	struct vm_function function = { .name = "sum", .nargs = 2 };
	struct vm_image image = { VM_IMAGE_SIZES,  .code = (void *)code, .functions = &function,
				  .nfunctions = 1, .natives = &native,   .nnatives = 1 };
	size_t size = 0;
	char why[200];
	struct vm *vm;

	for (int n; size < sizeof(code) && sscanf(hex, " %2hhx%n", &code[size], &n) == 1; size++)
		hex += n;
	image.ncode = function.count = size / sizeof(struct bpf_insn);
	if (vm_create(&image, NULL, &vm, why, sizeof(why), NULL))
		return fprintf(stderr, "%s\n", why), 1;
	run(vm, "\1\2\3\4", 4);
	run(vm, NULL, 4);
	vm_destroy(vm);
	return 0;
}
