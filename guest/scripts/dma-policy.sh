#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What dcbm leaves to others: it takes no channel of a controller that serves peripherals, and a device that never
# answers makes no task wait for long. Prints KTAP.
#
#   dma-policy.sh STALLBENCH DCBM TESTDMA
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
stallbench=$1 dcbm=$2 testdma=$3
sysfs=/sys/kernel/mm/migration
knobs=$sysfs/dcbm
debug=/sys/kernel/debug/ferry_dcbm
faults=/sys/kernel/debug/ferry_testdma
# What a host that is busy and a debug kernel may add to a wait (ms).
slack=300

# set_to FILE VALUE: fails if the kernel refuses the value
set_to() {
	echo "$2" 2>/dev/null >"$1"
}

held() {
	grep -c . $debug/channels
}

echo "KTAP version 1"
echo "1..9"
insmod "$dcbm"

insmod "$testdma" devices=2 channels=2 slave=1
! set_to $sysfs/migrator dcbm && [ "$(held)" -eq 0 ]
report "no channel of a slave DMA controller is taken" $? "$(held) channels"
set_to $knobs/devices ferry_testdma.1 && set_to $sysfs/migrator dcbm && [ "$(held)" -eq 2 ]
report "unless the device is named" $? "$(held) channels"
! set_to $knobs/devices all && [ "$(cat $knobs/devices)" = ferry_testdma.1 ] && [ "$(held)" -eq 2 ]
report "all would leave none: refused" $? "$(cat $knobs/devices): $(held) channels"
set_to $sysfs/migrator off && set_to $knobs/devices all && [ "$(held)" -eq 0 ]
report "all gives them back" $? "$(held) channels"
rmmod ferry_testdma

# The driver of this engine is trusted. Offload everything, although its work is done by CPUs.
insmod "$testdma" role=ioatdma devices=4 channels=2
set_to $sysfs/migrator dcbm
report "dcbm is selected" $? "is there an engine?"
echo 1 >$debug/force_offload

# longest_wait SECONDS: of a thread that touches 32 pages while they move, in one batch each time (ms)
longest_wait() {
	"$stallbench" --bytes 128k --request-pages 1 --load-ms $(($1 * 1000)) --samples 1 --warmup 0 --config dcbm: >stall.json ||
		return
	sed 's/^/# /' stall.json >&2
	sed -n 's/.*"max_ns": *\([0-9]*\).*/\1/p' stall.json | awk '{ print int($1 / 1e6) }'
}

count() {
	cat "$knobs/counters/$1"
}

usual=$(longest_wait 3)
# Every descriptor is late by far more than its deadline, and then its channel is used again.
echo 3000 >$faults/late_ms
echo 1 >$faults/late
# No transfer has more than twice batch_max_us.
most=$(($(cat $sysfs/batch_max_us) * 4 / 1000))
# Two of the eight channels hang with each batch, so four batches in a row may, and after each of them the kernel tries
# its other passes.
limit=$((4 * (most + 30) + 2 * (${usual:-1000} + slack)))
# A busy host makes it longer: one measurement of five must be within the limits.
tries=0 is_short=1 is_soon=1
until [ $is_short -eq 0 ] && [ $is_soon -eq 0 ] || [ $tries -eq 5 ]; do
	tries=$((tries + 1)) timeouts=$(count timeouts)
	batches=$(cat $sysfs/stats/dcbm/batches) locked=$(cat $sysfs/stats/dcbm/copy_ns)
	hung=$(longest_wait 10)
	batches=$(($(cat $sysfs/stats/dcbm/batches) - batches)) timeouts=$(($(count timeouts) - timeouts))
	locked=$((($(cat $sysfs/stats/dcbm/copy_ns) - locked) / 1000000 / (batches ? batches : 1)))
	echo "# folios locked for $locked ms in $batches batches, $timeouts timeouts"
	echo "# longest wait $hung ms, without the fault $usual ms"
	[ $batches -gt 0 ] && [ $timeouts -ge $batches ] && [ $locked -le $((most + 10)) ]
	is_short=$?
	[ "${hung:-0}" -gt 0 ] && [ "${hung:-0}" -le $limit ]
	is_soon=$?
done
report "an engine that hangs keeps a batch locked for at most 4 times batch_max_us" $is_short \
	"$locked ms, more than $most ms"
report "a thread that touches its folios does not wait much longer" $is_soon "$hung ms, more than $limit ms"
echo 0 >$faults/late
sleep 4

# An engine that fails each descriptor rests for longer each time, and is used again when it is well.
echo 0 >$debug/force_offload
echo 1 >$faults/error
# Each rejected batch lets its CPU migrate 64 lists without dcbm.
tries=0
until [ "$(count errors)" -gt 0 ] && [ "$(count rejected_resting)" -gt 0 ] || [ $tries -eq 20 ]; do
	tries=$((tries + 1))
	longest_wait 3 >/dev/null
done
tries=$(count transfers)
longest_wait 5 >/dev/null
tries=$(($(count transfers) - tries))
sed 's/^/# /' $debug/engines
echo "# $tries transfers in five seconds, $(count rejected_resting) batches rejected so far"
# Four engines, each tried by two channels after a rest of a second or more.
[ "$(count rejected_resting)" -gt 0 ] && [ "$(count errors)" -gt 0 ] && [ $tries -le 40 ]
report "an engine that always fails rests" $? "$tries transfers"
echo 0 >$faults/error
copied=$(count copied_bytes) waited=0
while [ "$(count copied_bytes)" -eq "$copied" ] && [ $waited -lt 30 ]; do
	longest_wait 1 >/dev/null
	waited=$((waited + 1))
done
echo "# used again after $waited s"
[ "$(count copied_bytes)" -gt "$copied" ]
report "it is used again within 30 s of being well" $? "it is not"
echo kernel >$sysfs/migrator
rmmod ferry_testdma
exit $failed
