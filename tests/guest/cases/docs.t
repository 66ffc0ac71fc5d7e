#!/bin/bash
# TAP: the documents' scripts for kprobes (`c build` blocks) count in a guest as they say. Built by
# the host, run in one boot: each measures a command of known calls.
set -uo pipefail
cd "$(dirname "$0")/../../.."

work=build/test-work/guest-docs
rm -rf "$work"
mkdir -p "$work"

extract() { # NAME.c: the block of docs/*.md that holds it
	awk -v name="$1" '$0 == "```c build " name { on = 1; next } /^```/ { on = 0 } on' docs/*.md \
		>"$work/$1"
}

names=$(sed -n 's/^```c build //p' docs/*.md)
for name in $names; do
	extract "$name"
	build/duet build "$work/$name" -o "$work/${name%.c}.o" >&2
done

cat >"$work/measure" <<'END'
#!/bin/bash
cd "$(dirname "$0")"
for script in *.o; do
	echo "== $script"
	options=()
	[ "$script" = cost.o ] && options=(-e insns=cpu-clock)
	../../duet run "$script" vfs_read "${options[@]}" -- \
		dd if=/dev/zero of=/dev/null bs=1 count=200 2>stderr || { echo failed; cat stderr; }
done
END
chmod +x "$work/measure"
output=$(tests/guest/run -- "$PWD/$work/measure" 2>&1)

count=0
check() { # NAME SCRIPT PATTERN LEAST: the first number that PATTERN captures
	local section number
	count=$((count + 1))
	section=$(awk -v name="== $2" '/^== / { on = $0 == name } on' <<<"$output")
	number=$(sed -nE "s/$3/\1/p" <<<"$section" | tr -d , | head -n 1)
	if [ -n "$number" ] && [ "$number" -ge "$4" ] && ! grep -q '^failed' <<<"$section"; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		printf '%s\n' "$output" | tail -60 | sed 's/^/# /'
	fi
}

check "calls_of.c counts" calls_of.o '^vfs_read: ([0-9,]+) calls$' 200
check "callers.c names the caller" callers.o '^dd +([0-9,]+)$' 200
check "cost.c has a value for each call" cost.o '^n ([0-9,]+) .*' 200
count=$((count + 1))
tested=$(grep -cE '^check "' "$0")
if [ "$(wc -w <<<"$names")" = "$tested" ]; then
	echo "ok $count - each such script is checked"
else
	echo "not ok $count - each such script is checked"
	echo "# $names"
fi
echo "1..$count"
