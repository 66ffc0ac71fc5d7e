// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer's entry: any bytes. See README.md here. */
#include <stddef.h>
#include <stdint.h>

#include "event_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	event_check(data, size);
	return 0;
}
