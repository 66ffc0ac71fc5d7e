/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once
/* The kernel has a struct stat of its own: the macro renames the structure; the functions keep
 * their symbols. */
#include <duet/libc.h>
#define stat libc_stat
extern int libc_stat(const char *path, struct libc_stat *result) __asm__("stat");
