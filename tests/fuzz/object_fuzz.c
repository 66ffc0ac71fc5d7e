// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer's entry: any bytes. Built by hand, see README.md here. */
#include <stddef.h>
#include <stdint.h>

#include "object_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	object_check(data, size);
	return 0;
}
