/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bugs on demand, to see that the random programs find them (tests/vm/planted_test.c, which lists
 * them). PLANT(n) is false, and costs nothing, but in that test's library: there it is true for the
 * one n in vm_planted.
 */
#pragma once

#ifdef VM_PLANTED
extern int vm_planted;
#define PLANT(n) (vm_planted == (n))
#else
#define PLANT(n) 0
#endif
