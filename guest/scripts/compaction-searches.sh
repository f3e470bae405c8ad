#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# With runs, direct compaction collects long lists. It does not search the free lists for each page, and counts the pages
# that it isolates. Prints KTAP.
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

# vmstat NAME...: the sum of these
vmstat() {
	awk -v names=" $* " 'index(names, " " $1 " ") { sum += $2 } END { print sum }' /proc/vmstat
}

clean_up() {
	rmdir $instance
	# compactbench leaves them if it fails.
	echo 1 >/sys/kernel/debug/alloc_blocks/free
}

echo "TAP version 13"
echo "1..2"
trap clean_up EXIT
mountpoint -q $tracing || mount -t tracefs tracefs $tracing
# More than 100,000 events for each CPU.
mkdir $instance && echo 8192 >$instance/buffer_size_kb && echo 1 >$enable
status=$?
before=$(vmstat pgmigrate_success)
"$compactbench" --workload idle --order 9 --blocks 16 --samples 1 --warmup 0 --config runs:runs=1,migrator=off ||
	status=$?
echo 0 >$enable
pages=$(($(vmstat pgmigrate_success) - before)) searches=$(grep -c fast_isolate_freepages $instance/trace)
[ $status -eq 0 ] && [ "$pages" -ge 1024 ] && [ "$searches" -gt 0 ] && [ $((searches * 16)) -le "$pages" ]
report "a search of the free lists serves many pages" $? "status $status, $searches searches for $pages pages"

# stat_refresh adds up what each CPU has counted, and reports what is negative. kcompactd may be at work, too.
dmesg -c >/dev/null
tries=0
until echo 1 >/proc/sys/vm/stat_refresh && isolated=$(vmstat nr_isolated_anon nr_isolated_file) &&
	[ "$isolated" -eq 0 ] || [ $tries -eq 20 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
listed=$(vmstat nr_active_anon nr_inactive_anon) used=$(vmstat nr_anon_pages nr_shmem)
# Pages that were freed or allocated just now, and those of the CPUs' batches.
[ "$isolated" -eq 0 ] && [ $((listed - used)) -lt 512 ] && [ $((used - listed)) -lt 512 ] &&
	! dmesg | grep vmstat_refresh
report "all pages that were isolated are counted" $? "$isolated isolated, $listed on LRU lists, $used in use"
exit $failed
