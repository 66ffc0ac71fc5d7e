/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold for any bytes that claim to be an object: taken all the way (validation, split,
 * libbpf's parser, the VM's validator) or refused with one message. Aborts when it does not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* True when the object was accepted by the split. Quiet: messages of libbpf are dropped. */
bool object_check(const void *data, size_t size);
