#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Memory is compacted, demoted, promoted, allocated in contiguous blocks and taken offline at the same time, and DAMON
# moves it, with each migrator in turn, while integrity checks every byte. Prints KTAP.
#
#   compaction.sh SECONDS INTEGRITY MIGRATOR...
#
# SECONDS: for all migrators together. INTEGRITY: the program. MIGRATOR: off, or one that is loaded.
set -u

here=$(dirname "$0")
# shellcheck source=guest/scripts/ktap.sh
. "$here/ktap.sh"
# shellcheck source=guest/scripts/soak-actions.sh
. "$here/soak-actions.sh"
seconds=$1 integrity=$2
shift 2
migration=/sys/kernel/mm/migration
reasons=$migration/stats/reasons
cma=/sys/kernel/debug/cma/reserved
# shellcheck disable=SC2034 # soak-actions.sh
watch=-
work=/tmp/ferry-compaction
cgroup=$work/cgroup
actions="compact contiguous memory_hotplug demote"
moved="compaction memory_hotplug demotion numa_misplaced damon"
# integrity's own record of a boot's first allocations: see suites/integrity.py.
leak_kb=1048576

compact() {
	echo 1 >/proc/sys/vm/compact_memory
}

# 32 MiB, from a region that movable memory fills.
contiguous() {
	[ -e $cma ] && echo 8192 >$cma/alloc && echo 8192 >$cma/free
}

# Reclaim demotes, since the fast node has a slower one below it.
demote() {
	[ -e "$cgroup/stressors" ] && echo 16M >"$cgroup/stressors/memory.reclaim"
} 2>/dev/null

# bounds NODE: the physical addresses of its memory, from its first memory block to its last.
bounds() {
	for block in /sys/devices/system/node/node"$1"/memory[0-9]*; do
		echo "${block##*memory}"
	done | sort -n | sed -n '1p;$p' | tr '\n' ' '
}

# DAMON migrates what was not accessed lately from the fast node to the slow one.
start_damon() {
	damon=/sys/kernel/mm/damon/admin/kdamonds
	# shellcheck disable=SC2046 # two numbers
	set -- $(bounds 0)
	size=$((0x$(cat /sys/devices/system/memory/block_size_bytes)))
	echo 1 >$damon/nr_kdamonds && echo 1 >$damon/0/contexts/nr_contexts || return 1
	damon=$damon/0
	echo paddr >$damon/contexts/0/operations && echo 1 >$damon/contexts/0/targets/nr_targets || return 1
	echo 1 >$damon/contexts/0/targets/0/regions/nr_regions || return 1
	echo $(($1 * size)) >$damon/contexts/0/targets/0/regions/0/start || return 1
	echo $((($2 + 1) * size)) >$damon/contexts/0/targets/0/regions/0/end || return 1
	echo 1 >$damon/contexts/0/schemes/nr_schemes || return 1
	scheme=$damon/contexts/0/schemes/0
	echo migrate_cold >$scheme/action && echo 1 >$scheme/target_nid || return 1
	for limit in sz nr_accesses age; do
		echo 0 >$scheme/access_pattern/$limit/min || return 1
	done
	echo $((1 << 40)) >$scheme/access_pattern/sz/max && echo 0 >$scheme/access_pattern/nr_accesses/max || return 1
	echo 1000000 >$scheme/access_pattern/age/max && echo on >$damon/state
}

set_up() {
	mkdir -p $work && mount -t tmpfs compaction $work && mkdir $cgroup && mount -t cgroup2 compaction $cgroup || return 1
	echo +memory >$cgroup/cgroup.subtree_control && mkdir $cgroup/stressors || return 1
	echo 1 >/sys/kernel/mm/numa/demotion_enabled && echo 2 >/proc/sys/kernel/numa_balancing || return 1
	echo 1 >$migration/runs && find_block && start_damon
}

vmstat() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat
}

# The pages that all reasons together have moved.
all_moved() {
	cat $reasons/*/moved_pages | awk '{ all += $1 } END { printf "%.0f\n", all }'
}

# turn MIGRATOR: integrity for its share of the time. If the migrator has copied nothing, integrity fails.
turn() {
	by=${1#off}
	(
		echo 0 >$cgroup/stressors/cgroup.procs && echo "$1" >$migration/migrator || exit 1
		exec "$integrity" --seconds $((seconds / turns)) --only read,write,fork,mprotect,split --leak-kb $leak_kb \
			${by:+--copied-by "$by"}
	) >$work/output 2>&1
	status=$?
	[ $status -eq 0 ] || sed 's/^/# /' $work/output
	report "every byte is right with migrator $1" $status "see above"
}

echo "KTAP version 1"
turns=$#
# shellcheck disable=SC2086 # words
echo "1..$(($# + 3 + $(set -- $actions && echo $#) + $(set -- $moved && echo $#)))"
set_up
report "the kernel has tiers, cgroups, runs and DAMON" $? "see the console"
: >$work/wrong
: >$work/busy
for action in $actions; do
	repeat "$action" >/dev/null 2>>$work/errors &
done
in_runs=$(cat $migration/stats/runs/moved)
before=$(for reason in $moved; do cat "$reasons/$reason/moved_pages"; done)
for migrator; do
	turn "$migrator"
done
[ "$(cat $migration/stats/runs/moved)" -gt "$in_runs" ]
report "pages moved in runs" $? "none did"
rm $work/busy
wait
echo off >$damon/state
echo off >$migration/migrator
for action in $actions; do
	echo "# $action: $(cat $work/"$action") times"
	[ "$(cat $work/"$action")" -gt 0 ]
	report "$action" $? "it never succeeded: $(tail -n 1 $work/errors)"
done
# What moved before, as when the setting up looked for a block to take offline, does not count.
# shellcheck disable=SC2086 # numbers
set -- $before
for reason in $moved; do
	[ "$(cat "$reasons/$reason/moved_pages")" -gt "$1" ]
	report "pages move for $reason" $? "none did"
	shift
done
# The counters of a task that is in a migration may be one list apart.
tries=0
until [ "$(all_moved)" -eq "$(vmstat pgmigrate_success)" ] || [ $tries -eq 20 ]; do
	tries=$((tries + 1))
	sleep 1
done
[ $tries -lt 20 ]
report "the pages of all reasons add up to pgmigrate_success" $? "$(all_moved), $(vmstat pgmigrate_success)"
exit $failed
