// SPDX-License-Identifier: BSD-2-Clause
/* Makes the compiler write BTF for every type of data.h. */
typedef unsigned char __u8;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;

#include "data.h"

struct proc proc_key = { 1 };
struct use use_value = { .switches = 1 };
struct cost cost_value = { 1 };
struct zoo zoo_value = { 1 };
struct wide_value wide = { 1 };
duet_cgroup cgroup_key = 1;
u32 number = 7;
u64 insns = 8;
char text[8] = "text";
