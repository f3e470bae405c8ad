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
instance=$tracing/instances/ferry
enable=$instance/events/compaction/mm_compaction_fast_isolate_freepages/enable

moved() {
	awk '$1 == "pgmigrate_success" { print $2 }' /proc/vmstat
}

clean_up() {
	rmdir $instance
	# compactbench leaves them if it fails.
	echo 1 >/sys/kernel/debug/alloc_blocks/free
}

echo "TAP version 13"
echo "1..1"
trap clean_up EXIT
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
# More than 100,000 events for each CPU.
mkdir $instance && echo 8192 >$instance/buffer_size_kb && echo 1 >$enable
status=$?
before=$(moved)
"$compactbench" --workload idle --order 9 --blocks 16 --samples 1 --warmup 0 --config runs:runs=1,migrator=off ||
	status=$?
echo 0 >$enable
pages=$(($(moved) - before)) searches=$(grep -c fast_isolate_freepages $instance/trace)
[ $status -eq 0 ] && [ "$pages" -ge 1024 ] && [ "$searches" -gt 0 ] && [ $((searches * 16)) -le "$pages" ]
report "a search of the free lists serves many pages" $? "status $status, $searches searches for $pages pages"
exit $failed
