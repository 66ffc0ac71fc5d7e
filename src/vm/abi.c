// SPDX-License-Identifier: BSD-2-Clause
/*
 * Structs from callers that were compiled with an older or a newer header. Each says its size: what
 * an older caller does not know is zero, and what a newer one asks for beyond what is known here is
 * refused.
 */
#include "vm/vm_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* What every caller knows. */
#define LEAST_IMAGE   THROUGH(struct vm_image, nnatives)
#define LEAST_NATIVE  THROUGH(struct vm_native, foreign)
#define LEAST_OPTIONS THROUGH(struct vm_options, callx_by_number)

/* Copies a struct of @theirs bytes into one of @ours, of which the first @least must be there. */
static int take(void *to, size_t ours, const void *from, size_t theirs, size_t least,
		const char *name, struct err *err)
{
	const unsigned char *bytes = from;

	if (theirs < least)
		return err_set(err, -EINVAL, "%s: its size is said to be %zu: set it to sizeof",
			       name, theirs);
	for (size_t i = ours; i < theirs; i++) {
		if (bytes[i])
			return err_set(err, -E2BIG,
				       "%s: %zu bytes with something in them that this library "
				       "does not know: it knows %zu: it is older than the caller",
				       name, theirs, ours);
	}
	memset(to, 0, ours);
	memcpy(to, from, theirs < ours ? theirs : ours);
	return 0;
}

static int take_natives(struct vm *vm, struct err *err)
{
	struct vm_image *image = &vm->image;
	const char *from = (const char *)image->natives;
	struct vm_native *natives;
	int rc = 0;

	if (!image->nnatives || image->native_size == sizeof(*natives))
		return 0;
	natives = calloc(image->nnatives, sizeof(*natives));
	if (!natives)
		return err_nomem(err);
	vm->own_natives = natives;
	for (size_t i = 0; i < image->nnatives && !rc; i++)
		rc = take(&natives[i], sizeof(*natives), from + i * image->native_size,
			  image->native_size, LEAST_NATIVE, "struct vm_native", err);
	image->natives = natives;
	image->native_size = sizeof(*natives);
	return rc;
}

int abi_take_image(struct vm *vm, const struct vm_image *theirs, struct err *err)
{
	int rc = take(&vm->image, sizeof(vm->image), theirs, theirs->size, LEAST_IMAGE,
		      "struct vm_image", err);

	vm->image.size = sizeof(vm->image);
	return rc ? rc : take_natives(vm, err);
}

int abi_take_options(struct vm *vm, const struct vm_options *theirs, struct err *err)
{
	int rc = 0;

	if (theirs)
		rc = take(&vm->options, sizeof(vm->options), theirs, theirs->size, LEAST_OPTIONS,
			  "struct vm_options", err);
	vm->options.size = sizeof(vm->options);
	return rc;
}
