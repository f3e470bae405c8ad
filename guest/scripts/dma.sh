#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# dcbm on DMA engines that work: which channels it uses, which values and folios it refuses, how many interrupts a batch
# takes, and whether every byte arrives; and what their driver reports after an error. Prints KTAP.
#
#   dma.sh CHANNELS SECONDS MOVEBENCH INTEGRITY DCBM TESTDMA ERRORS
#
# CHANNELS: how many the machine has, half of them near each of two nodes. SECONDS: of load at the end. DCBM, TESTDMA,
# ERRORS: modules; ERRORS loads if the driver of the engines is right.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
total=$1 seconds=$2 movebench=$3 integrity=$4 dcbm=$5 testdma=$6 errors=$7
sysfs=/sys/kernel/mm/migration
knobs=$sysfs/dcbm
debug=/sys/kernel/debug/ferry_dcbm
channels=$debug/channels
suspends=/sys/kernel/debug/ferry_testdma
moves_failed=0

# sum KEY: over the channels in use
sum() {
	sed -n "s/.* $1=\([0-9]*\).*/\1/p" $channels | awk '{ all += $1 } END { printf "%.0f\n", all }'
}

count() {
	cat "$knobs/counters/$1"
}

folios() {
	cat $sysfs/stats/dcbm/folios
}

interrupts() {
	awk '/dma/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) all += $i } END { printf "%.0f\n", all }' /proc/interrupts
}

# move FOLIO BYTES: movebench checks every byte.
move() {
	"$movebench" --folio "$1" --bytes "$2" --samples 2 --warmup 0 --config now: >move.json 2>&1 && return
	sed 's/^/# /' move.json
	moves_failed=1
	return 1
}

load() {
	"$integrity" --seconds "$seconds" --only read,write --leak-kb 65536 >integrity.json 2>&1
}

# wait_channels NUMBER: a work of dcbm's takes new channels.
wait_channels() {
	tries=0
	until [ "$(grep -c . $channels)" -eq "$1" ] || [ $tries -eq 50 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

echo "KTAP version 1"
echo "1..22"
insmod "$dcbm"
report "the module loads" $? "insmod says so"
echo 64 >$knobs/channels
# On a busy host an emulated engine may be silent for longer than the second that a real one is given.
echo 20000 >$knobs/timeout_ms
# What others move would be counted, too.
echo off >$sysfs/reasons/compaction/migrator
echo off >$sysfs/reasons/numa_misplaced/migrator
echo dcbm >$sysfs/migrator
report "dcbm is selected" $? "is there an engine?"
sed 's/^/# /' $channels

[ "$(grep -c . $channels)" -eq "$total" ]
report "$total channels" $? "$(grep -c . $channels)"
[ "$(grep -c 'node=0 ' $channels)" -eq $((total / 2)) ] && [ "$(grep -c 'node=1 ' $channels)" -eq $((total / 2)) ]
report "half of them near each node" $? "$(grep -c 'node=0 ' $channels) near node 0"

# refuses FILE VALUE...: each value is refused, and the file shows its old value.
refuses() {
	file=$1
	shift
	was=$(cat "$file")
	for value in "$@"; do
		if echo "$value" 2>/dev/null >"$file"; then
			echo "# $file accepts '$value'"
			return 1
		fi
	done
	[ "$(cat "$file")" = "$was" ]
}
refuses $knobs/channels 0 65 -1 x '' && refuses $knobs/timeout_ms -1 20001 x &&
	refuses $knobs/verify maybe sampled never '' && refuses $debug/force_offload x &&
	refuses $knobs/devices '' , no.such.device && [ "$(grep -c . $channels)" -eq "$total" ]
report "bad values are refused and change nothing" $? "see above"

# Whatever was learned of the engines.
echo 1 >$debug/force_offload
echo $((total / 2)) >$knobs/channels
bytes=$(sum bytes) near=$(sum near)
move 2m 64m
report "2 MiB folios move" $? "$(tail -n 1 move.json)"
bytes=$(($(sum bytes) - bytes)) near=$(($(sum near) - near))
[ $bytes -gt 0 ] && [ $near -eq $bytes ]
report "if as many channels may be used as are near, only those are used" $? "$near of $bytes bytes by near ones"

echo "$total" >$knobs/channels
before=$(interrupts) transfers=$(count transfers) descriptors=$(count descriptors)
move 2m 128m
irqs=$(($(interrupts) - before)) transfers=$(($(count transfers) - transfers))
descriptors=$(($(count descriptors) - descriptors))
echo "# $irqs interrupts, $descriptors descriptors, $transfers transfers of 2 MiB folios over $total channels"
# One a chain. The driver may find half a transfer submitted, and start that as a chain.
[ "$irqs" -gt 0 ] && [ "$irqs" -le "$descriptors" ]
report "at most one interrupt a descriptor" $? "$irqs for $descriptors descriptors"

# The pages of 32 MiB, there and back, in the events of the task's control group.
group=/tmp/ferry-dma
mkdir -p $group && mount -t cgroup2 dma $group && echo +memory >$group/cgroup.subtree_control && mkdir $group/mover
before=$(count copied_bytes)
(
	echo 0 >$group/mover/cgroup.procs
	move 2m 32m
) || moves_failed=1
bytes=$(($(count copied_bytes) - before))
pages=$(awk '$1 == "pgmigrate_dma" { print $2 }' $group/mover/memory.stat)
rmdir $group/mover && umount $group
[ "$pages" -gt 0 ] && [ $((pages * 4096)) -eq "$bytes" ]
report "the control group's events have the pages that channels copied" $? "$pages pages, $bytes bytes"

# verifies MODE BYTES: the CPU compares so many bytes of each 2 MiB folio.
verifies() {
	echo "$1" >$knobs/verify
	compared=$(count verified_bytes) copied=$(folios)
	move 2m 16m
	compared=$(($(count verified_bytes) - compared)) copied=$(($(folios) - copied))
	echo "# verify=$1: $compared bytes of $copied folios compared"
	[ $copied -gt 0 ] && [ $compared -eq $((copied * $2)) ]
}
# The driver of these engines is trusted.
verifies always $((2 << 20)) && verifies auto 0
report "verify decides what the CPU compares" $? "see above"

# An engine that costs more than it gains is rejected once that is known. After 10 seconds that is forgotten.
sleep 11
echo 0 >$debug/force_offload
offloaded=$(count copied_bytes)
move 2m 64m
[ "$(count copied_bytes)" -gt "$offloaded" ]
report "unknown engines are tried" $? "$(count copied_bytes) bytes"
# 2 MiB batches that were rejected let each of their CPUs migrate 64 lists without dcbm: at most 16 moves on four CPUs.
first_rejected=$(count rejected_slower) first_offloaded=$(count copied_bytes) moves=0 rejected=0 offloaded=0
until [ $rejected -gt 0 ] || [ $offloaded -gt 0 ] || [ $moves -eq 16 ]; do
	moves=$((moves + 1))
	move 4k 16m
	rejected=$(($(count rejected_slower) - first_rejected))
	offloaded=$(($(count copied_bytes) - first_offloaded))
done
sed 's/^/# /' $debug/engines
echo "# 4 KiB folios, $moves moves: $offloaded bytes by channels, $rejected batches rejected"
[ $rejected -gt 0 ] || [ $offloaded -gt 0 ]
report "4 KiB folios go to channels or are rejected" $? "neither"

report "movebench finds every byte right" $moves_failed "see above"

echo 1 >$debug/force_offload
copied=$(folios)
load
status=$?
[ $status -eq 0 ] || sed 's/^/# /' integrity.json
report "every byte arrives" $status "see above"
copied=$(($(folios) - copied))
echo "# $copied folios under load"
[ $copied -ge 1000 ]
report "by dcbm" $? "$copied folios"

# Suspend and resume the devices, with a second in between.
suspend_cycle() {
	echo 1 >/sys/module/suspend/parameters/pm_test_delay && echo devices >/sys/power/pm_test &&
		echo freeze >/sys/power/state
}

# testdma counts the channels that are in use while it is suspended. The other engines are under load, too.
insmod "$testdma" devices=2 channels=2
all=$((total + 4))
wait_channels $all
load &
load=$!
status=0
for cycle in 1 2 3; do
	sleep 1
	suspend_cycle || status=$?
done
report "the system suspends" $status "cycle $cycle"
copied=$(folios)
wait $load
status=$?
[ $status -eq 0 ] || sed 's/^/# /' integrity.json
report "under load, and every byte arrives" $status "see above"
[ "$(cat $suspends/suspends)" -eq 6 ] && [ "$(cat $suspends/channels_in_suspend)" -eq 0 ]
report "no channel is in use while its device is suspended" $? \
	"$(cat $suspends/channels_in_suspend) were, in $(cat $suspends/suspends) suspends of two devices"
copied=$(($(folios) - copied))
[ "$(grep -c . $channels)" -eq $all ] && [ $copied -gt 0 ]
report "all are in use again afterwards" $? "$(grep -c . $channels) of $all, $copied folios"

echo kernel >$sysfs/migrator
rmmod ferry_testdma
for file in "$knobs"/counters/*; do
	echo "# ${file##*/} $(cat "$file")"
done
[ "$(count descriptors)" -eq "$(count completed)" ] && [ "$(count verify_failures)" -eq 0 ]
report "every descriptor completed, none wrongly" $? "$(count completed) of $(count descriptors)"
rmmod ferry_dcbm
report "the module is unloaded" $? "rmmod says so"

insmod "$errors"
report "the driver reports an error to each client, and success to those before it" $? \
	"$(dmesg | sed -n 's/.*zynqmp_errors: //p' | head -n 1)"
exit $failed
