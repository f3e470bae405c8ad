#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Faults of DMA engines and of their drivers, injected one after the other while stamped memory moves by dcbm. Prints
# KTAP.
#
#   dma-faults.sh FOLIOS INTEGRITY DCBM TESTDMA|- PTDMA|- AE4DMA|-
#
# FOLIOS: to submit to dcbm in each case. INTEGRITY: the program. DCBM, TESTDMA: our modules. PTDMA, AE4DMA: the kernel's
# own drivers, of devices that fail as $FERRY_SHARE/dma-faults.json says. AE4DMA needs PTDMA, but only its own engine is
# used then.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
folios=$1 integrity=$2 dcbm=$3 testdma=$4 ptdma=$5 ae4dma=$6
sysfs=/sys/kernel/mm/migration
counters=$sysfs/dcbm/counters
faults=/sys/kernel/debug/ferry_testdma
inject=/sys/kernel/debug/fail_function
slab=/sys/kernel/debug/failslab
control=$FERRY_SHARE/dma-faults.json
# One in so many descriptors fails.
rate=5
# Several times the duration of a descriptor on a busy host; the devices of the real drivers are a process of the host.
timeout_ms=50
# The directory of the driver under test, and those of its devices that can be unbound.
driver=
devices=
# The devices that dcbm may use.
use=all

count() {
	cat "$counters/$1"
}

submitted() {
	echo $(($(cat $sysfs/stats/dcbm/folios) + $(cat $sysfs/stats/dcbm/fallbacks)))
}

# While the only device is unbound, the kernel refuses to select dcbm.
select_dcbm() {
	tries=0
	until echo dcbm 2>/dev/null >$sysfs/migrator || [ $tries -eq 50 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# The actions on the engines under load: each succeeds or fails.
no_action() {
	sleep 1
}

rebind() {
	for device in $devices; do
		[ ! -e "$driver/$device" ] || echo "$device" >"$driver/unbind" || return 1
		sleep 0.1
		echo "$device" >"$driver/bind" || return 1
		sleep 0.3
	done
}

remove_channels() {
	for setting in dcbm/channels=1 dcbm/devices="${devices%% *}" dcbm/channels=64 migrator=kernel migrator=dcbm \
		dcbm/devices=all; do
		echo "${setting#*=}" >"$sysfs/${setting%%=*}"
		sleep 0.1
	done
}

# Repeat the action while the load runs, and count how often it succeeds.
repeat() {
	successes=0
	while [ -e busy ]; do
		! "$1" 2>/dev/null || successes=$((successes + 1))
		echo $successes >actions
	done
}

# Until enough folios were submitted to dcbm. Each run checks every byte, and that each page still moves afterwards.
move() {
	start=$(submitted)
	status=0
	rounds=0
	moved=0
	while [ $status -eq 0 ] && [ $moved -lt "$folios" ] && [ $rounds -lt 30 ]; do
		select_dcbm
		"$integrity" --seconds $((1 + folios / 1000)) --bytes 32m --only read,write --audit-by kernel --leak-kb 262144 >now.json 2>&1 ||
			status=$?
		rounds=$((rounds + 1))
		moved=$(($(submitted) - start))
	done
	[ $status -eq 0 ] || sed 's/^/# /' now.json
}

clear_faults() {
	for fault in error partial lost late late_write early_completion prep; do
		[ ! -e $faults/$fault ] || echo 0 >$faults/$fault
	done
	[ ! -e $inject ] || echo >$inject/inject
	[ ! -e $slab ] || echo 0 >$slab/probability
	echo '{}' >"$control"
}

# A late completion ends a hung channel; if a completion never comes, unbinding the driver does.
drain() {
	waited=0
	while [ "$(count hung_pages)" -ne 0 ] && [ $waited -lt 3 ]; do
		sleep 1
		waited=$((waited + 1))
	done
	[ "$(count hung_pages)" -eq 0 ] || rebind
}

balanced() {
	[ "$(count descriptors)" -eq $(($(count completed) + $(count errors) + $(count timeouts))) ] &&
		[ "$(count late_completions)" -le "$(count timeouts)" ] && [ "$(count hung_pages)" -eq 0 ]
}

# one_case NAME EVIDENCE ACTION: EVIDENCE, one of dcbm's counters or a file, is a number that must have changed.
one_case() {
	evidence=$counters/$2
	[ -e "$evidence" ] || evidence=$2
	echo 0 >actions
	before=$(cat "$evidence")
	copied=$(cat $sysfs/stats/dcbm/folios)
	: >busy
	repeat "$3" &
	move
	rm -f busy
	wait
	clear_faults
	echo kernel >$sysfs/migrator
	drain
	copied=$(($(cat $sysfs/stats/dcbm/folios) - copied))
	# If every fifth descriptor makes its channel hang, it may be that no transfer completes.
	case $2 in
	leaked_pages | late_completions) min=0 ;;
	*) min=1 ;;
	esac
	[ $status -eq 0 ] && [ $moved -ge "$folios" ] && [ $copied -ge $min ]
	report "$1: every byte is right" $? "integrity ended with $status after $moved folios of $folios, $copied by dcbm"
	echo "# $moved folios, $copied by dcbm; since the start:$(for file in "$counters"/*; do echo " ${file##*/} $(cat "$file")"; done | tr -d '\n')"
	balanced
	report "$1: the counters add up, no hung channel keeps a page" $? "see above"
	[ "$(cat "$evidence")" -ne "$before" ]
	report "$1: the fault happened" $? "$evidence is still $before"
}

# If no engine can be had, the case fails, because its evidence does not change.
set_up_dcbm() {
	echo $timeout_ms >$sysfs/dcbm/timeout_ms
	echo 1 >/sys/kernel/debug/ferry_dcbm/force_offload
	echo "$use" >$sysfs/dcbm/devices
	echo 16 >$sysfs/dcbm/channels
	select_dcbm
}

load_testdma() {
	insmod "$testdma" role="$1" devices=8 channels=2
	driver=/sys/bus/platform/drivers/$1
	devices=$(cd "$driver" && echo "$1".*)
	set_up_dcbm
}

# testdma_case NAME ROLE FAULT EVIDENCE ACTION: FAULT is a file of the engine, or - for none.
testdma_case() {
	load_testdma "$2"
	[ "$3" = - ] || echo $rate >"$faults/$3"
	one_case "$1" "$4" "$5"
	rmmod ferry_testdma
}

# injected_case NAME FUNCTION: a function of dcbm's fails.
injected_case() {
	load_testdma ferry_testdma
	echo "$2" >$inject/inject
	echo $((100 / rate)) >$inject/probability
	echo 1 >$inject/interval
	echo 1000000 >$inject/times
	echo 0 >$inject/verbose
	one_case "$1" $inject/times no_action
	rmmod ferry_testdma
}

# Allocations fail that may not wait, as those of a driver in its prep.
allocation_case() {
	load_testdma ferry_testdma
	echo Y >$slab/task-filter
	echo Y >$slab/ignore-gfp-wait
	echo 1000000 >$slab/times
	echo 0 >$slab/verbose
	echo $((100 / rate)) >$slab/probability
	echo 1 >/proc/self/make-it-fail
	one_case "an allocation fails" $slab/times no_action
	echo 0 >/proc/self/make-it-fail
	rmmod ferry_testdma
}

# Each descriptor is in time, but all of a batch are not.
slow_case() {
	load_testdma ferry_testdma
	echo 20 >$faults/late_ms
	echo 1 >$faults/late
	one_case "a slow engine" deadline_exceeded no_action
	rmmod ferry_testdma
}

testdma_cases() {
	testdma_case "an error" ferry_testdma error errors no_action
	# The quirk of this driver is known: its channels stay active.
	testdma_case "an error reported as success" sf-pdma partial verify_failures no_action
	# For a driver without a quirk each such fault makes a channel hang. Some transfers must complete.
	rate=50
	testdma_case "an unknown driver, a partial copy" ferry_testdma partial leaked_pages rebind
	testdma_case "a write after an early completion" ferry_testdma early_completion leaked_pages rebind
	# A trusted driver, if the user does not trust it.
	echo always >$sysfs/dcbm/verify
	testdma_case "a trusted driver, a partial copy, verify=always" ioatdma partial leaked_pages rebind
	echo auto >$sysfs/dcbm/verify
	rate=5
	testdma_case "a lost completion, and the driver unbound" ferry_testdma lost leaked_pages rebind
	testdma_case "a write after the driver is unbound" ferry_testdma late_write leaked_pages rebind
	testdma_case "a late completion" ferry_testdma late late_completions no_action
	testdma_case "prep returns no descriptor" ferry_testdma prep $faults/hits_prep no_action
	testdma_case "the driver unbound under load" ferry_testdma - actions rebind
	testdma_case "channels removed under load" ferry_testdma - actions remove_channels
	slow_case
	injected_case "a mapping fails" dcbm_map
	injected_case "prep fails" dcbm_prep
	allocation_case
	# A driver that reports errors.
	testdma_case "a trusted driver, an error" ioatdma error errors no_action
	testdma_case "a trusted driver, a late completion" ioatdma late late_completions no_action
	# Only the sentinel of a chain shows the errors of this driver. Some chains must be without an error.
	rate=50
	testdma_case "a sentinel, a chain dropped" xilinx-zynqmp-dma error timeouts rebind
	rate=5
	testdma_case "a sentinel, a late completion" xilinx-zynqmp-dma late late_completions no_action
}

# real_case NAME FAULTS EVIDENCE ACTION
real_case() {
	echo "$2" >"$control"
	set_up_dcbm
	one_case "$1" "$3" "$4"
}

# This driver cannot be unbound: it would wait for ever for its own worker.
ae4dma_cases() {
	insmod "$ptdma"
	insmod "$ae4dma" max_hw_q=4
	driver=/sys/bus/pci/drivers/ae4dma
	use=$(cd $driver && echo 0*)
	real_case "ae4dma: no fault" '{}' completed no_action
	real_case "ae4dma: an error reported as success" "{\"error\": $rate}" verify_failures no_action
	real_case "ae4dma: a partial copy" "{\"partial\": $rate}" verify_failures no_action
	real_case "ae4dma: a late completion" "$late" late_completions no_action
}

# A false completion makes its only channel hang until the driver is bound again: that takes time, and some transfers
# must complete.
ptdma_cases() {
	insmod "$ptdma"
	driver=/sys/bus/pci/drivers/ptdma
	devices=$(cd $driver && echo 0*)
	real_case "ptdma: no fault" '{}' completed no_action
	[ "$folios" -le 1000 ] || folios=1000
	real_case "ptdma: an error reported as success" '{"error": 50}' verify_failures rebind
	real_case "ptdma: a partial copy" '{"partial": 50}' verify_failures rebind
	real_case "ptdma: a late completion" "$late" late_completions no_action
	real_case "ptdma: unbound under load" '{}' actions rebind
	real_case "ptdma: a lost completion, and unbound" "{\"stall\": $rate}" leaked_pages rebind
}

# Three results a case.
tests=0
[ "$testdma" = - ] || tests=$((tests + 19 * 3))
if [ "$ae4dma" != - ]; then
	tests=$((tests + 4 * 3))
elif [ "$ptdma" != - ]; then
	tests=$((tests + 6 * 3))
fi
echo "KTAP version 1"
echo "1..$tests"
insmod "$dcbm"
clear_faults
[ "$testdma" = - ] || testdma_cases
timeout_ms=200
late="{\"late\": $rate, \"late_ms\": $((4 * timeout_ms))}"
if [ "$ae4dma" != - ]; then
	ae4dma_cases
elif [ "$ptdma" != - ]; then
	ptdma_cases
fi
exit $failed
