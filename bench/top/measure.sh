#!/bin/bash
# measure.sh DUET SLEEPERS SECONDS: ipctop beside 200 processes, in a guest. Prints `own PERCENT` of a
# CPU, `programs PERCENT`, `peak KB` and `maps KB`.
"$2" 200 &
sleep 2
"$1" ipctop --overhead -I 1000 >/tmp/out 2>/tmp/err &
duet=$!
sleep 3
read -r ran _ <"/proc/$duet/schedstat"
read -r from _ </proc/uptime
sleep "$3"
read -r ran_later _ <"/proc/$duet/schedstat"
read -r to _ </proc/uptime
peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$duet/status")
maps=$(bpftool map list 2>/dev/null | grep -o 'memlock [0-9]*' | awk '{ sum += $2 } END { print int(sum / 1024) }')
kill -INT "$duet"
wait "$duet"
awk -v ns=$((ran_later - ran)) -v from="$from" -v to="$to" \
	'BEGIN { printf "own %.3f\n", ns / (to - from) / 1e7 }'
awk '$1 == "all:" { printf "programs %.3f\n", $2 / 10 }' /tmp/err
echo "peak $peak"
echo "maps $maps"
echo "rows $(grep -c sleepers /tmp/out)"
