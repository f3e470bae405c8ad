#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Everything that a DMA engine or its driver may do wrong, one thing after the other, while stamped memory moves by dcbm:
# prints KTAP.
#
#   dma-faults.sh FOLIOS INTEGRITY DCBM TESTDMA [PTDMA AE4DMA]
#
# FOLIOS: that dcbm is given in each case. INTEGRITY: the program. DCBM, TESTDMA: our modules. With PTDMA and AE4DMA, the
# kernel's own drivers, their devices go through it too; what these do wrong is set in $FERRY_SHARE/dma-faults.json.
set -u

folios=$1 integrity=$2 dcbm=$3 testdma=$4 ptdma=${5-} ae4dma=${6-}
sysfs=/sys/kernel/mm/migration
counters=$sysfs/dcbm/counters
faults=/sys/kernel/debug/ferry_testdma
inject=/sys/kernel/debug/fail_function
control=$FERRY_SHARE/dma-faults.json
# One in so many descriptors.
rate=5
timeout_ms=20
test_number=0
failed=0

report() {
	test_number=$((test_number + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $test_number $1"
	else
		echo "not ok $test_number $1 # $3"
		failed=1
	fi
}

count() {
	cat "$counters/$1"
}

given() {
	echo $(($(cat $sysfs/stats/dcbm/folios) + $(cat $sysfs/stats/dcbm/fallbacks)))
}

# What is being done to the engines meanwhile, until the file is gone.
meanwhile() {
	while [ -e busy ]; do
		"$@" 2>/dev/null
	done
}

nothing() {
	sleep 1
}

rebind() {
	echo "$2" >"$1/unbind"
	sleep 0.1
	echo "$2" >"$1/bind"
	sleep 0.3
}

rebind_testdma() {
	for device in /sys/bus/platform/drivers/"$role"/"$role".*; do
		rebind "/sys/bus/platform/drivers/$role" "${device##*/}"
	done
}

take_away() {
	for setting in channels=1 devices="$role.0" channels=64 devices="$role.1" migrator=kernel migrator=dcbm devices=all; do
		echo "${setting#*=}" >"$knobs/${setting%%=*}" 2>/dev/null ||
			echo "${setting#*=}" >"$sysfs/${setting%%=*}"
		sleep 0.05
	done
}
knobs=$sysfs/dcbm

# Until dcbm has been given enough. Each run audits every byte.
move() {
	start=$(given)
	status=0
	rounds=0
	while [ $status -eq 0 ] && [ $(($(given) - start)) -lt "$folios" ] && [ $rounds -lt 60 ]; do
		"$integrity" --seconds 2 --only read,write --leak-kb 262144 >"$1.json" 2>&1 || status=$?
		rounds=$((rounds + 1))
	done
	moved=$(($(given) - start))
	[ $status -eq 0 ] || sed 's/^/# /' "$1.json"
}

calm() {
	for fault in error lie lost late prep; do
		[ ! -e $faults/$fault ] || echo 0 >$faults/$fault
	done
	echo >$inject/inject
	echo 0 >/sys/kernel/debug/failslab/probability
	echo '{}' >"$control"
}

# Late completions are not waited for longer than this (s).
drain() {
	waited=0
	while [ "$(count quarantined_pages)" -ne 0 ] && [ $waited -lt 10 ]; do
		sleep 1
		waited=$((waited + 1))
	done
}

balanced() {
	[ "$(count descriptors)" -eq $(($(count completed) + $(count errors) + $(count timeouts))) ] &&
		[ "$(count late)" -le "$(count timeouts)" ] && [ "$(count quarantined_pages)" -eq 0 ]
}

show_counters() {
	for file in "$counters"/*; do
		echo "# $1: ${file##*/} $(cat "$file")"
	done
}

# one_case NAME WITNESS MEANWHILE...: WITNESS, a counter that must have grown, or - for none.
one_case() {
	name=$1 witness=$2
	shift 2
	[ "$witness" = - ] || before=$(count "$witness")
	: >busy
	meanwhile "$@" &
	move "$name"
	rm -f busy
	wait
	calm
	drain
	echo kernel >$sysfs/migrator
	[ $status -eq 0 ] && [ $moved -ge "$folios" ]
	report "$name: every byte of $folios folios" $? "status $status after $moved folios"
	balanced
	report "$name: the counters add up, nothing is left in quarantine" $? "see the counters"
	[ "$witness" = - ] || [ "$(count "$witness")" -gt "$before" ]
	report "$name: it did go wrong" $? "$witness has not grown"
	show_counters "$name"
}

select_dcbm() {
	echo $timeout_ms >$sysfs/dcbm/timeout_ms
	echo always >$sysfs/dcbm/offload
	echo all >$sysfs/dcbm/devices
	echo 16 >$sysfs/dcbm/channels
	echo dcbm >$sysfs/migrator
}

# testdma_case NAME ROLE FAULT WITNESS MEANWHILE...: FAULT is a file of the engine, or - for none.
testdma_case() {
	name=$1 role=$2 fault=$3 witness=$4
	shift 4
	insmod "$testdma" role="$role" devices=4 channels=2
	select_dcbm
	[ "$fault" = - ] || echo $rate >"$faults/$fault"
	one_case "$name" "$witness" "$@"
	rmmod ferry_testdma
}

# injected_case NAME FUNCTION VALUE WITNESS: a function of dcbm's that fails.
injected_case() {
	insmod "$testdma" devices=4 channels=2
	select_dcbm
	echo "$2" >$inject/inject
	echo "$3" >"$inject/$2/retval"
	echo 20 >$inject/probability
	echo 1 >$inject/interval
	echo -1 >$inject/times
	echo 0 >$inject/verbose
	one_case "$1" "$4" nothing
	rmmod ferry_testdma
}

# Only allocations that may not wait, as those of a driver's prep are.
allocation_case() {
	insmod "$testdma" devices=4 channels=2
	select_dcbm
	slab=/sys/kernel/debug/failslab
	echo Y >$slab/task-filter
	echo Y >$slab/ignore-gfp-wait
	echo -1 >$slab/times
	echo 0 >$slab/verbose
	echo 20 >$slab/probability
	echo 1 >/proc/self/make-it-fail
	one_case "an allocation fails" - nothing
	echo 0 >/proc/self/make-it-fail
	rmmod ferry_testdma
}

# real_case NAME FAULTS WITNESS MEANWHILE...: the device models' control file says what goes wrong.
real_case() {
	name=$1
	echo "$2" >"$control"
	witness=$3
	shift 3
	select_dcbm
	one_case "$name" "$witness" "$@"
}

rebind_ptdma() {
	for device in /sys/bus/pci/drivers/ptdma/0*; do
		rebind /sys/bus/pci/drivers/ptdma "${device##*/}"
	done
	sleep 0.5
}

echo "KTAP version 1"
insmod "$dcbm"
echo '{}' >"$control"

testdma_case "an error" ferry_testdma error errors nothing
testdma_case "an error reported as success" ferry_testdma lie mismatches nothing
testdma_case "a lost completion, driver unbound" ferry_testdma lost timeouts rebind_testdma
testdma_case "a late completion" ferry_testdma late late nothing
testdma_case "no descriptor to be had" ferry_testdma prep - nothing
testdma_case "the driver unbound at work" ferry_testdma - - rebind_testdma
testdma_case "channels taken away" ferry_testdma - - take_away
injected_case "a mapping fails" dcbm_map -5 map_failures
injected_case "prep fails" dcbm_prep 0 -
allocation_case
# A driver that reports errors and can stop its device.
testdma_case "trusted driver, an error" switchtec_dma error errors nothing
testdma_case "trusted driver, a lost completion" switchtec_dma lost timeouts nothing
testdma_case "trusted driver, a late completion" switchtec_dma late timeouts nothing
# A driver whose errors only the sentinel of a chain betrays.
testdma_case "sentinel, a chain dropped" xilinx-zynqmp-dma error timeouts rebind_testdma
testdma_case "sentinel, a late completion" xilinx-zynqmp-dma late late nothing

if [ -n "$ptdma" ]; then
	timeout_ms=200
	insmod "$ae4dma" max_hw_q=4
	insmod "$ptdma"
	real_case "ptdma and ae4dma: all is well" '{}' completed nothing
	real_case "ptdma and ae4dma: an error reported as success" "{\"error\": $rate}" mismatches nothing
	real_case "ptdma and ae4dma: half copied" "{\"partial\": $rate}" mismatches nothing
	real_case "ptdma and ae4dma: a late completion" "{\"late\": $rate, \"late_ms\": 600}" late nothing
	real_case "ptdma unbound at work" '{}' completed rebind_ptdma
	real_case "ptdma: a lost completion, driver unbound" "{\"ptdma\": {\"stall\": $rate}}" timeouts rebind_ptdma
fi
echo "1..$test_number"
exit $failed
