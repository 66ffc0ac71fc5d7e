/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once
#include <duet/libc.h>
/* The kernel has a struct tm of its own. */
#define tm libc_tm
