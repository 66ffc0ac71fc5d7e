/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types of the report tests, compiled twice: by the test itself, which fills them, and at the
 * test's run time for BPF, whose BTF tells the printer what the bytes mean.
 */
#pragma once

#include "duet/shared.h"

typedef __duet_u64 u64;
typedef __duet_u32 u32;
typedef __duet_s32 s32;
typedef unsigned char u8;

typedef u64 duet_ns, duet_bytes, duet_cgroup, duet_kaddr;
typedef s32 duet_kstack, duet_ustack;
typedef u32 duet_pid, duet_cpu;

struct proc {
	duet_pid pid;
	char comm[16];
};

struct use {
	struct pmu_sum cycles, insns;
	u64 switches;
};

struct cost {
	u64 calls, moved;
	struct hist misses;
};

enum color { RED, GREEN = 5, BLUE = -1 };
enum large { LARGE = 1ULL << 40 };

struct inner {
	u32 x;
	struct {
		short y;
	} deep;
};

struct zoo {
	signed char tiny;
	u8 byte;
	short short_;
	int plain;
	long long big;
	unsigned long long ubig;
	_Bool flag;
	enum color color;
	enum large large;
	char name[8];
	u8 raw[4];
	const void *pointer;
	struct inner inner;
	struct inner pair[2];
	union {
		u32 first;
		float other;
	} either;
	struct {
		int hidden;
	};
	unsigned int low : 3;
	int high : 5;
	enum color paint : 4;
	float single;
	double twice;
	duet_ns time;
	duet_bytes size;
	duet_cgroup group;
	duet_kaddr where;
	duet_cpu cpu;
	volatile const duet_ns qualified;
	duet_ns times[2];
	struct zoo *next;
};

struct wide_value {
	duet_kstack kernel;
	duet_ustack user;
	unsigned __int128 giant;
};
