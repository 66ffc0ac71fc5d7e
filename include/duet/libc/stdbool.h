/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once
#include <duet/libc.h>
/* vmlinux.h has them as an enumeration. */
#ifndef __VMLINUX_H__
#define true 1
#define false 0
#endif
