#!/bin/bash
# funclatency.sh TOOL FUNCTION CMD...: runs CMD with libbpf-tools' funclatency on its process, as
# bench-hand does with its programs: attached before CMD begins. Prints how many calls TOOL saw.
set -euo pipefail

tool=$1 function=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkfifo "$work/gate"

# The process that funclatency is told is the one that becomes CMD.
bash -c 'read -r _ <"$0"; exec "$@"' "$work/gate" "$@" &
command=$!
# Its line says that the probes are there, if it comes when it is written.
stdbuf -oL "$tool" -p "$command" "$function" >"$work/out" 2>"$work/err" &
tracer=$!
while ! grep -q '^Tracing' "$work/out"; do
	kill -0 "$tracer" || {
		cat "$work/err" >&2
		kill "$command"
		exit 1
	}
	sleep 0.1
done
echo >"$work/gate"
wait "$command"
kill -INT "$tracer"
wait "$tracer"
# Rows of its histogram: FROM -> TO : COUNT |****|
awk '$2 == "->" && $4 == ":" { calls += $5 }
	END { print "result", calls + 0, "calls"; exit !calls }' "$work/out"
