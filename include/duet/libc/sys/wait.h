/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once
#include <duet/libc.h>
