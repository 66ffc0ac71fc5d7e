#!/bin/bash
# TAP: floors, format, shell scripts, static analysis.
set -uo pipefail
cd "$(dirname "$0")/.."

count=0
check() { # NAME COMMAND...
	local name=$1 output
	shift
	count=$((count + 1))
	if output=$("$@" 2>&1); then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		printf '%s\n' "$output" | head -30 | sed 's/^/# /'
	fi
}

sources() {
	git ls-files 'src/*.[ch]' 'include/*.h' 'tests/*.[ch]' 'examples/*.c' 'bench/*.[ch]' |
		grep -Ev '/bad/|^tests/scripts/'
}

formatted() {
	sources | xargs clang-format-14 --dry-run --Werror
}

headers_alone() { # every header of src/ compiles by itself
	local header bad=0
	while read -r header; do
		case $header in *_body.h) continue ;; esac
		gcc -std=gnu17 -D_GNU_SOURCE -fsyntax-only -Isrc -Iinclude -x c "$header" \
			-Wno-pragma-once-outside-header || bad=1
	done < <(git ls-files 'src/*.h' 'include/duet/vm.h' 'include/duet/shared.h')
	return $bad
}

licensed() {
	local missing
	missing=$(sources | xargs grep -L 'SPDX-License-Identifier')
	[ -z "$missing" ] || { echo "no licence line: $missing"; return 1; }
}

static_analysis() {
	cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,portability \
		--suppressions-list=scripts/cppcheck.suppressions --inline-suppr \
		-Isrc -Iinclude -D__x86_64__ -D_GNU_SOURCE \
		'-DLIBBPF_OPTS(type,name,...)=struct type name = { 0 }' '-DSEC(name)=' \
		-isrc/kern/bpf src
}

scripts_parse() {
	git ls-files | while read -r file; do
		case $(head -c 20 "$file" 2>/dev/null | tr -d '\0') in
		'#!/bin/bash'* | '#!/bin/sh'*) bash -n "$file" || echo "bad: $file" ;;
		esac
	done | grep . && return 1
	return 0
}

check "floors" scripts/check-floors
check "format" formatted
check "headers stand alone" headers_alone
check "licence lines" licensed
check "shell scripts parse" scripts_parse
check "cppcheck" static_analysis
echo "1..$count"
