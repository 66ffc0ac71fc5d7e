#!/bin/bash
# TAP: each bench starts, measures both sides and prints its table.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

count=0
check() { # NAME PATTERN...: every pattern is a line of the table
	local name=$1 pattern bad=
	shift
	count=$((count + 1))
	if ! output=$(bench/run --smoke "$name" 2>&1); then
		bad="status not 0"
	else
		for pattern in "$@"; do
			grep -qE -- "$pattern" <<<"$output" || bad+="no line \`$pattern\`; "
		done
	fi
	if [ -z "$bad" ]; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name: $bad"
		printf '%s\n' "$output" | tail -20 | sed 's/^/# /'
	fi
}

number='[0-9.]+'
check start "^  duet +$number +$number +$number$" \
	"^  bpftrace +($number +$number +$number|not installed: .*)$"
check ring "^  duet +$number$" "^  libbpf +$number$" "^  ratio +(1/)?$number$"
check calls "^  6\.12 +call +$number +$number +$number +(1/)?$number +1\.05 (met|MISSED)$" \
	"^  6\.12 +switch +$number +$number +$number +" \
	"^  6\.12 +funcpmu +$number +$number +$number +(1/)?$number +1\.1 (met|MISSED)$" \
	"^  6\.12 +funclatency +$number +$number +$number +(1/)?$number +- "
check top "^  ipctop +$number +$number +[0-9]+ +[0-9]+$"
check vm "^  FNV-1a +$number +$number +$number +$number +$number +$number +$number +$number$" \
	"^  report of 10,000 rows +$number +$number +$number +$number +- " \
	"^  JIT / native +$number +1\.00  (met|MISSED)$" \
	"^  4,000 instructions, us +$number +1000  (met|MISSED)$" \
	"^  FNV-1a +[0-9]+ +[0-9]+ +$number$"

count=$((count + 1))
if output=$(bench/run no-such 2>&1); then
	echo "not ok $count - an unknown bench is refused"
elif [[ $output == *"no such bench"* ]]; then
	echo "ok $count - an unknown bench is refused"
else
	echo "not ok $count - an unknown bench is refused: $output"
fi
echo "1..$count"
