/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold for any bytes that claim to be the text of an event. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Aborts where something does not. The first byte chooses the machine, the rest is the text. */
void event_check(const uint8_t *data, size_t size);
