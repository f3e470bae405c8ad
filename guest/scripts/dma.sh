#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# dcbm on engines that work: which channels it uses, what it refuses, how often it is interrupted, and whether every
# byte arrives. Prints KTAP.
#
#   dma.sh CHANNELS SECONDS MOVEBENCH INTEGRITY DCBM TESTDMA
#
# CHANNELS: that there are, half of them near each of two nodes. SECONDS: under load at the end. DCBM, TESTDMA: modules.
set -u

# shellcheck source=guest/ktap.sh
. "$(dirname "$0")/ktap.sh"
channels=$1 seconds=$2 movebench=$3 integrity=$4 dcbm=$5 testdma=$6
sysfs=/sys/kernel/mm/migration
knobs=$sysfs/dcbm
held=/sys/kernel/debug/ferry_dcbm/channels
asleep=/sys/kernel/debug/ferry_testdma

# sum KEY: over the channels held
sum() {
	sed -n "s/.* $1=\([0-9]*\).*/\1/p" $held | awk '{ all += $1 } END { printf "%.0f\n", all }'
}

interrupts() {
	awk '/dma/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) all += $i } END { printf "%.0f\n", all }' /proc/interrupts
}

move() {
	"$movebench" --folio "$1" --bytes "$2" --samples 2 --warmup 0 --config now: >move.json 2>&1
}

echo "KTAP version 1"
echo "1..19"
insmod "$dcbm"
report "the module loads" $? "insmod says so"
echo 64 >$knobs/channels
# On a busy host an emulated engine may be silent for longer than the second that a real one is given.
echo 20000 >$knobs/timeout_ms
echo dcbm >$sysfs/migrator
report "dcbm is selected" $? "is there an engine?"
sed 's/^/# /' $held
sed 's/^/# /' /sys/kernel/debug/ferry_dcbm/costs

[ "$(grep -c . $held)" -eq "$channels" ]
report "$channels channels" $? "$(grep -c . $held)"
[ "$(grep -c 'node=0 ' $held)" -eq $((channels / 2)) ] && [ "$(grep -c 'node=1 ' $held)" -eq $((channels / 2)) ]
report "half of them near each node" $? "$(grep -c 'node=0 ' $held) near node 0"

# refuses KNOB VALUE...: each is refused, and the knob is as it was.
refuses() {
	knob=$1
	shift
	was=$(cat "$knobs/$knob")
	for value in "$@"; do
		if echo "$value" 2>/dev/null >"$knobs/$knob"; then
			echo "# $knob takes '$value'"
			return 1
		fi
	done
	[ "$(cat "$knobs/$knob")" = "$was" ]
}
refuses channels 0 65 -1 x '' && refuses timeout_ms 0 60001 x && refuses verify maybe '' && refuses offload x &&
	refuses devices '' , no.such.device && [ "$(grep -c . $held)" -eq "$channels" ]
report "bad values are refused and change nothing" $? "see above"

# Whether it pays is another question.
echo always >$knobs/offload
echo $((channels / 2)) >$knobs/channels
bytes=$(sum bytes) near=$(sum near)
move 2m 64m
report "2 MiB folios move" $? "$(tail -n 1 move.json)"
bytes=$(($(sum bytes) - bytes)) near=$(($(sum near) - near))
[ $bytes -gt 0 ] && [ $near -eq $bytes ]
report "as many channels as are near: only those are used" $? "$near of $bytes bytes by near ones"

echo "$channels" >$knobs/channels
before=$(interrupts) batches=$(cat $sysfs/stats/dcbm/batches) descriptors=$(cat $knobs/counters/descriptors)
move 2m 128m
count=$(($(interrupts) - before)) batches=$(($(cat $sysfs/stats/dcbm/batches) - batches))
descriptors=$(($(cat $knobs/counters/descriptors) - descriptors))
echo "# $count interrupts, $descriptors descriptors, $batches batches of 2 MiB folios over $channels channels"
[ "$batches" -gt 0 ] && [ "$count" -gt 0 ] && [ "$count" -le $((batches * channels)) ]
report "at most one interrupt a batch and channel" $? "$count in $batches batches"

# compares MODE BYTES: so many of each 2 MiB folio.
compares() {
	echo "$1" >$knobs/verify
	compared=$(cat $knobs/counters/verified_bytes) folios=$(cat $sysfs/stats/dcbm/folios)
	move 2m 16m
	compared=$(($(cat $knobs/counters/verified_bytes) - compared)) folios=$(($(cat $sysfs/stats/dcbm/folios) - folios))
	echo "# verify=$1: $compared bytes of $folios folios compared"
	[ $folios -gt 0 ] && [ $compared -eq $((folios * $2)) ]
}
# A page has 64 cache lines, of which a sample is one.
compares always $((2 << 20)) && compares sampled $(((2 << 20) / 64)) && compares never 0
report "what verify says is compared" $? "see above"
echo auto >$knobs/verify

echo auto >$knobs/offload
refused=$(cat $knobs/counters/refused_slower) folios=$(cat $sysfs/stats/dcbm/folios)
move 4k 8m
[ "$(cat $knobs/counters/refused_slower)" -gt "$refused" ] && [ "$(cat $sysfs/stats/dcbm/folios)" -eq "$folios" ]
report "4 KiB folios are refused" $? "$(($(cat $sysfs/stats/dcbm/folios) - folios)) were not"
folios=$(cat $sysfs/stats/dcbm/folios)
move 2m 16m
[ "$(cat $sysfs/stats/dcbm/folios)" -gt "$folios" ]
report "2 MiB folios are not" $? "all were"

echo always >$knobs/offload
folios=$(cat $sysfs/stats/dcbm/folios)
"$integrity" --seconds "$seconds" --only read,write --leak-kb 65536 >integrity.json 2>&1
status=$?
[ $status -eq 0 ] || sed 's/^/# /' integrity.json
report "every byte arrives" $status "see above"
folios=$(($(cat $sysfs/stats/dcbm/folios) - folios))
echo "# $folios folios under load"
[ $folios -ge 1000 ]
report "by dcbm" $? "$folios folios"

# Until the devices are suspended and have been so for a second.
nap() {
	echo 1 >/sys/module/suspend/parameters/pm_test_delay && echo devices >/sys/power/pm_test &&
		echo freeze >/sys/power/state
}

# An engine of ours counts what is held while it is suspended. The other engines are in use meanwhile, too.
insmod "$testdma" devices=2 channels=2
all=$((channels + 4))
# Its channels are looked for by a work.
tries=0
until [ "$(grep -c . $held)" -eq $all ] || [ $tries -eq 50 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
"$integrity" --seconds "$seconds" --only read,write --leak-kb 65536 >integrity.json 2>&1 &
load=$!
status=0
for turn in 1 2 3; do
	sleep 1
	nap || status=$?
done
report "the system sleeps" $status "turn $turn"
folios=$(cat $sysfs/stats/dcbm/folios)
wait $load
status=$?
[ $status -eq 0 ] || sed 's/^/# /' integrity.json
report "under load, and every byte arrives" $status "see above"
[ "$(cat $asleep/sleeps)" -eq 6 ] && [ "$(cat $asleep/held_asleep)" -eq 0 ]
report "no channel is held meanwhile" $? "$(cat $asleep/held_asleep) were, in $(cat $asleep/sleeps) sleeps of two devices"
folios=$(($(cat $sysfs/stats/dcbm/folios) - folios))
[ "$(grep -c . $held)" -eq $all ] && [ $folios -gt 0 ]
report "all are in use again afterwards" $? "$(grep -c . $held) of $all held, $folios folios"

echo kernel >$sysfs/migrator
rmmod ferry_testdma
count() {
	cat "$knobs/counters/$1"
}
for file in "$knobs"/counters/*; do
	echo "# ${file##*/} $(cat "$file")"
done
[ "$(count descriptors)" -eq "$(count completed)" ] && [ "$(count mismatches)" -eq 0 ]
report "every descriptor completed, none wrongly" $? "$(count completed) of $(count descriptors)"
rmmod ferry_dcbm
report "the module is unloaded" $? "rmmod says so"
exit $failed
