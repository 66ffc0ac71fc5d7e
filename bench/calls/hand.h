/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the hand-written pair shares. */
#pragma once

struct hand_result {
	unsigned long long slot[64], sum, n;
};
