// SPDX-License-Identifier: BSD-2-Clause
#include "obj/splitter.h"

int split_core_relocate(struct splitter *splitter)
{
	return 0;
}
