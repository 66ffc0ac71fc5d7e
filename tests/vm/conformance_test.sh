#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# conformance_test.sh PLUGIN CASES.tsv [OPTION]...
# Runs the plug-in on every case (name, memory, program, result) and compares r0. TAP output.
set -euo pipefail

plugin=$1 cases=$2
shift 2
[[ -e $cases ]] || {
	echo "1..0 # SKIP $cases: not there"
	exit 0
}
n=0 bad=0
# The first line holds the names of the columns; an empty column must stay one, so no blanks in IFS.
while IFS=$'\x1f' read -r name memory program result _; do
	n=$((n + 1))
	got=$("$plugin" "$memory" "${@:---interp}" <<<"$program" 2>&1) || got="failed: $got"
	# The cases write numbers with leading zeros and capitals at will.
	if [[ $got =~ ^[0-9a-f]+$ ]] && ((16#$got == 16#${result#0x})); then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name: want $result, got $got"
		bad=1
	fi
done < <(tail -n +2 "$cases" | tr '\t' '\037')
echo "1..$n"
((n >= 1 && !bad))
