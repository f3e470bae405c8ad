#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# With runs, kswapd demotes long lists, although the memory is that of several control groups. Prints KTAP.
#
#   demotion-lists.sh
#
# Node 0 must be the fast node of two.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
tracing=/sys/kernel/tracing
instance=$tracing/instances/ferry
work=/tmp/ferry-demotion
cgroup=$work/cgroup
demotion_enabled=/sys/kernel/mm/numa/demotion_enabled
groups=8

demoted() {
	awk '$1 == "pgdemote_kswapd" { print $2 }' /proc/vmstat
}

set_up() {
	mountpoint -q $tracing || mount -t tracefs tracefs $tracing || return 1
	mkdir -p $work/files $cgroup && mount -t tmpfs -o mpol=bind:0,size=1200m demotion $work/files || return 1
	mount -t cgroup2 demotion $cgroup && echo +memory >$cgroup/cgroup.subtree_control || return 1
	for group in $(seq $groups); do
		mkdir $cgroup/demotion"$group" || return 1
	done
	echo 1 >$demotion_enabled && echo 1 >/sys/kernel/mm/migration/runs || return 1
	mkdir $instance && echo 1 >$instance/events/migrate/mm_migrate_pages/enable
}

# The files go before the groups that they belong to.
clean_up() {
	umount $work/files
	rmdir $cgroup/demotion* && umount $cgroup
	rmdir $instance
	echo 0 >$demotion_enabled
	echo 0 >/sys/kernel/mm/migration/runs
}

# write FILE GROUP: 8 MiB, which the group pays for.
write() {
	(echo 0 >"$cgroup/demotion$2/cgroup.procs" && exec dd if=/dev/zero of="$work/files/$1" bs=1M count=8 2>/dev/null)
}

echo "TAP version 13"
echo "1..1"
trap clean_up EXIT
set_up
status=$?
before=$(demoted) file=0
until [ $status -ne 0 ] || [ $(($(demoted) - before)) -ge 4096 ] || [ $file -eq 144 ]; do
	write $file $((file % groups + 1)) || status=$?
	file=$((file + 1))
done
# shellcheck disable=SC2046 # two numbers
set -- $(sed -n '/kswapd0.*reason=demotion/s/.*nr_succeeded=\([0-9]*\).*/\1/p' $instance/trace |
	awk '{ pages += $1 } END { print NR, pages + 0 }')
echo "# kswapd demoted $2 pages in $1 lists"
[ $status -eq 0 ] && [ "$2" -ge 4096 ] && [ "$2" -ge $(($1 * 128)) ]
report "kswapd demotes long lists" $? "status $status, $2 pages in $1 lists, after $file files"
exit $failed
