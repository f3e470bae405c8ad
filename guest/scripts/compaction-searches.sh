#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# With runs, direct compaction collects long lists, and does not search the free lists for each page. Prints KTAP.
#
#   compaction-searches.sh COMPACTBENCH
#
# COMPACTBENCH: the program; its module alloc_blocks is loaded.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
compactbench=$1
tracing=/sys/kernel/tracing
event=$tracing/events/compaction/mm_compaction_fast_isolate_freepages
counts=/tmp/ferry-searches

moved() {
	awk '$1 == "pgmigrate_success" { print $2 }' /proc/vmstat
}

echo "TAP version 13"
echo "1..1"
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
before=$(moved)
echo 1 >$event/enable
# The trace is longer than a buffer.
cat $tracing/trace_pipe >$counts &
reader=$!
"$compactbench" --workload idle --order 9 --blocks 16 --samples 1 --warmup 0 --config runs:runs=1,migrator=off
status=$?
echo 0 >$event/enable
sleep 1
kill $reader
pages=$(($(moved) - before)) searches=$(grep -c fast_isolate_freepages $counts)
rm -f $counts
[ $status -eq 0 ] && [ "$pages" -ge 1024 ] && [ $((searches * 16)) -le "$pages" ]
report "a search of the free lists serves many pages" $? "status $status, $searches searches for $pages pages"
exit $failed
