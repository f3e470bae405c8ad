#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Move memory for a long time, with each migrator in turn, with runs and migrc, while CPUs and memory blocks go offline,
# control groups are removed, device memory is bound and allocations fail; then look for what was left behind. Prints
# KTAP.
#
#   soak.sh SECONDS GIB_PER_HOUR INTEGRITY WATCH|- MIGRATOR...
#
# GIB_PER_HOUR: the least that must move. INTEGRITY: the program. WATCH: memmap_watch.ko. MIGRATOR: off, or one that
# is loaded.
#
# Bytes count if they moved in folios of 2 MiB (thp_migration_success): only integrity's memory has such folios here,
# since THP is for madvise(2) only, and integrity checks each byte before it stores to it, and all at its end.
set -u

here=$(dirname "$0")
# shellcheck source=guest/scripts/ktap.sh
. "$here/ktap.sh"
# shellcheck source=guest/scripts/free.sh
. "$here/free.sh"
# shellcheck source=guest/scripts/failslab.sh
. "$here/failslab.sh"
# shellcheck source=guest/scripts/soak-actions.sh
. "$here/soak-actions.sh"
seconds=$1 gib_per_hour=$2 integrity=$3 watch=$4
shift 4
migration=/sys/kernel/mm/migration
debug=/sys/kernel/debug
work=/tmp/ferry-soak
cgroup=$work/cgroup
actions="cpu_hotplug memory_hotplug cgroup_removal swap_out memmap_rebind"
injected=1000000000
# In a round the stressors have one slice of time, the folios of 2 MiB have three. Each migrator has a round.
slice=$((seconds / (4 * $#)))
[ $slice -le 30 ] || slice=30
# For sh: run the command with allocations that fail.
# shellcheck disable=SC2016 # the inner shell expands it
failing='echo 1 >/proc/self/make-it-fail; exec "$0" "$@"'
# Of free memory at the end: slabs, stacks and the debug kernel's own records stay.
leak_kb=32768

vmstat() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

dying() {
	awk '$1 == "nr_dying_descendants" { print $2 }' $cgroup/cgroup.stat
}

online() {
	cat /sys/devices/system/cpu/online
	cat /sys/devices/system/memory/memory*/state | sort | uniq -c
}

set_up() {
	mkdir -p $work && mount -t tmpfs soak $work && mkdir $cgroup && mount -t cgroup2 soak $cgroup || return 1
	echo +memory >$cgroup/cgroup.subtree_control || return 1
	echo 256M >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null && swapon /dev/zram0 || return 1
	echo 1 >$migration/runs && echo 1 >$migration/migrc/enabled || return 1
	[ ! -e $debug/ferry_dcbm ] || echo 1 >$debug/ferry_dcbm/force_offload
	find_block
}

# Allocations fail that may not wait, one of a hundred; of those of 64 KiB and above, as of a large folio's destination,
# one of 300, after which the folio is split. Only integrity's tasks see that.
inject() {
	spare_radix_trees
	for injector in failslab fail_page_alloc; do
		echo Y >$debug/$injector/task-filter
		echo $injected >$debug/$injector/times
		echo 0 >$debug/$injector/verbose
		echo 1 >$debug/$injector/probability
	done
	echo Y >$debug/failslab/ignore-gfp-wait
	echo 3 >$debug/fail_page_alloc/interval
	echo 4 >$debug/fail_page_alloc/min-order
	echo N >$debug/fail_page_alloc/ignore-gfp-wait
	echo N >$debug/fail_page_alloc/ignore-gfp-highmem
}

faults() {
	echo $((injected - $(cat "$debug/$1/times")))
}

# check GROUP COMMAND...: integrity's command in a control group of its own. Free memory is for the end of this script.
check() {
	group=$1
	shift
	mkdir "$cgroup/$group"
	(
		echo 0 >"$cgroup/$group/cgroup.procs"
		exec "$@" --leak-kb 1048576
	) >$work/output 2>&1
	status=$?
	rmdir "$cgroup/$group"
	[ $status -eq 0 ] && return
	sed 's/^/# /' $work/output
	echo "$migrator, $group: integrity ended with $status" >>$work/wrong
}

batches() {
	[ "$migrator" = off ] || cat "$migration/stats/$migrator/batches"
}

# turn MIGRATOR SLICE: one round.
turn() {
	migrator=$1
	echo "$migrator" >$migration/migrator
	thp=$(vmstat thp_migration_success) before=$(batches) began=$(date +%s)
	check stressors sh "$here/with-disk.sh" 64 sh -c "$failing" "$integrity" --file @ --seconds "$2"
	check moves sh -c "$failing" "$integrity" --areas 2m --only read --threads 1 --bytes 128m --seconds $(($2 * 3))
	[ "$migrator" = off ] || [ "$(batches)" -gt "$before" ] || echo "$migrator copied nothing" >>$work/wrong
	echo "# $migrator: $((($(vmstat thp_migration_success) - thp) * 2)) MiB in $(($(date +%s) - began)) s"
}

in_time() {
	[ "$(date +%s)" -lt $((start + seconds)) ]
}

soak() {
	first=yes
	: >$work/busy
	for action in $actions; do
		repeat "$action" >/dev/null 2>>$work/errors &
	done
	while in_time; do
		for migrator; do
			# The first round has each of them, however slow the machine is.
			if [ "$first" = yes ] || in_time; then
				turn "$migrator" $slice
			fi
		done
		first=no
	done
	elapsed=$(($(date +%s) - start))
	rm $work/busy
	wait
}

report_load() {
	mib=$((($(vmstat thp_migration_success) - moved_thp) * 2))
	echo "# $mib MiB in folios of 2 MiB moved in $elapsed s, $(($(vmstat pgmigrate_success) - moved_pages)) pages of all kinds"
	[ ! -s $work/wrong ]
	report "every byte is right, with each migrator" $? "$(tr '\n' ';' <$work/wrong)"
	[ $mib -ge $((gib_per_hour * 1024 * elapsed / 3600)) ]
	report "at least $gib_per_hour GiB move in an hour" $? "$mib MiB in $elapsed s"
	[ "$(cat $migration/stats/runs/moved)" -gt "$moved_runs" ]
	report "pages moved in runs" $? "none did"
	[ "$(cat $migration/migrc/counters/ptes)" -gt "$deferred_ptes" ]
	report "flushes were deferred" $? "none was"
	echo "# faults: $(faults failslab) in slabs, $(faults fail_page_alloc) in large folios"
	[ "$(faults failslab)" -gt 0 ] && [ "$(faults fail_page_alloc)" -gt 0 ]
	report "allocations did fail" $? "see above"
	for action in $actions; do
		echo "# $action: $(cat $work/"$action") times"
		if [ "$action" = memmap_rebind ] && [ "$watch" = - ]; then
			skip "$action" "no module memmap_watch on this board"
			continue
		fi
		[ "$(cat $work/"$action")" -gt 0 ]
		report "$action" $? "it never succeeded: $(tail -n 1 $work/errors)"
	done
}

report_migration() {
	echo off >$migration/migrator
	echo 0 >$migration/migrc/enabled
	[ "$(cat $migration/migrc/quarantined_bytes)" -eq 0 ]
	report "no page waits for a flush" $? "$(cat $migration/migrc/quarantined_bytes) bytes"
	[ "$(cat $debug/migrc/violations)" -eq 0 ]
	report "migrc's checker has reported nothing" $? "$(cat $debug/migrc/violations) violations"
	if [ -e $migration/dcbm ]; then
		[ "$(cat $migration/dcbm/counters/hung_pages)" -eq 0 ] && [ "$(cat $migration/dcbm/counters/leaked_pages)" -eq 0 ]
		report "no engine keeps a page" $? "see hung_pages and leaked_pages"
	else
		skip "no engine keeps a page" "no dcbm on this board"
	fi
}

report_memory() {
	swapoff /dev/zram0 && echo 1 >/sys/block/zram0/reset
	report "all that was swapped out comes back" $? "swapoff"
	[ "$(online)" = "$was_online" ]
	report "all CPUs and memory blocks are online" $? "$(online | tr '\n' ';')"
	free_kb_again "$free_before" $leak_kb
	echo "# free memory: $free_before KiB before, $after KiB after; a decrease of $leak_kb KiB is allowed"
	[ $((free_before - after)) -le $leak_kb ]
	report "no memory is lost" $? "$((free_before - after)) KiB are"
	# A group ends within moments, on a busy host within some more. One with a charge stays.
	tries=0
	until [ "$(dying)" -le "$dying_before" ] || [ $tries -eq 20 ]; do
		tries=$((tries + 1))
		sleep 1
	done
	echo "# dying control groups: $dying_before before, $(dying) after $tries s"
	[ "$(dying)" -le "$dying_before" ]
	report "no charge of a removed group is left" $? "$(dying) groups are dying"
}

echo "KTAP version 1"
echo "1..18"
set_up
report "the kernel has migrc, runs, cgroups and swap" $? "see the console"
: >$work/wrong
inject
# The kernel keeps some memory of the first round, so that one does not count.
turn off 5
was_online=$(online) dying_before=$(dying) free_before=$(free_kb)
moved_thp=$(vmstat thp_migration_success) moved_pages=$(vmstat pgmigrate_success) start=$(date +%s)
moved_runs=$(cat $migration/stats/runs/moved) deferred_ptes=$(cat $migration/migrc/counters/ptes)
soak "$@"
report_load
report_migration
report_memory
exit $failed
