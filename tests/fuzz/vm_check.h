/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold for any bytes that claim to be a program: the validator refuses them with one
 * message, or every engine in checked mode comes to the same end, without leaving its memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first byte says how to read the rest: even: as instructions, as they are; odd: every eight
 * bytes are made an instruction that is valid where it stands. The next two bytes are the passes
 * that one of the compilers leaves out. Aborts when something does not hold; true when there was a
 * valid program in @data.
 */
bool vm_check(const void *data, size_t size);
