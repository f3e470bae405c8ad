#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Everything that a DMA engine or its driver may do wrong, one thing after the other, while stamped memory moves by dcbm:
# prints KTAP.
#
#   dma-faults.sh FOLIOS INTEGRITY DCBM TESTDMA|- PTDMA|- AE4DMA|-
#
# FOLIOS: that dcbm is given in each case. INTEGRITY: the program. DCBM, TESTDMA: our modules. PTDMA, AE4DMA: the kernel's
# own drivers, of devices that fail as $FERRY_SHARE/dma-faults.json says. AE4DMA needs PTDMA, but only its own engine is
# used then.
set -u

# shellcheck source=guest/ktap.sh
. "$(dirname "$0")/ktap.sh"
folios=$1 integrity=$2 dcbm=$3 testdma=$4 ptdma=$5 ae4dma=$6
sysfs=/sys/kernel/mm/migration
counters=$sysfs/dcbm/counters
faults=/sys/kernel/debug/ferry_testdma
inject=/sys/kernel/debug/fail_function
slab=/sys/kernel/debug/failslab
control=$FERRY_SHARE/dma-faults.json
# One in so many descriptors.
rate=5
# Several times what a descriptor takes on a busy host; the real drivers' come from a process outside of the guest.
timeout_ms=50
# Where the driver in question has its files, and the names of those of its devices that can be unbound.
driver=
devices=
# The devices that dcbm may use.
use=all

count() {
	cat "$counters/$1"
}

given() {
	echo $(($(cat $sysfs/stats/dcbm/folios) + $(cat $sysfs/stats/dcbm/fallbacks)))
}

# While its only device is being bound anew there is nothing to select.
choose_dcbm() {
	tries=0
	until echo dcbm 2>/dev/null >$sysfs/migrator || [ $tries -eq 50 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}

# What may be done to the engines meanwhile.
nothing() {
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

take_away() {
	for setting in dcbm/channels=1 dcbm/devices="${devices%% *}" dcbm/channels=64 migrator=kernel migrator=dcbm \
		dcbm/devices=all; do
		echo "${setting#*=}" >"$sysfs/${setting%%=*}"
		sleep 0.1
	done
}

# Each time that it succeeds is a turn.
meanwhile() {
	turns=0
	while [ -e busy ]; do
		! "$1" 2>/dev/null || turns=$((turns + 1))
		echo $turns >turns
	done
}

# Until dcbm has been given enough. Each run audits every byte, and whether what is left still moves.
move() {
	start=$(given)
	status=0
	rounds=0
	moved=0
	while [ $status -eq 0 ] && [ $moved -lt "$folios" ] && [ $rounds -lt 30 ]; do
		choose_dcbm
		"$integrity" --seconds $((1 + folios / 1000)) --bytes 32m --only read,write --audit-by kernel --leak-kb 262144 >now.json 2>&1 ||
			status=$?
		rounds=$((rounds + 1))
		moved=$(($(given) - start))
	done
	[ $status -eq 0 ] || sed 's/^/# /' now.json
}

calm() {
	for fault in error lie lost late ghost early prep; do
		[ ! -e $faults/$fault ] || echo 0 >$faults/$fault
	done
	[ ! -e $inject ] || echo >$inject/inject
	[ ! -e $slab ] || echo 0 >$slab/probability
	echo '{}' >"$control"
}

# Late completions are waited for; what never completes is given up when its driver is unbound.
drain() {
	waited=0
	while [ "$(count quarantined_pages)" -ne 0 ] && [ $waited -lt 3 ]; do
		sleep 1
		waited=$((waited + 1))
	done
	[ "$(count quarantined_pages)" -eq 0 ] || rebind
}

balanced() {
	[ "$(count descriptors)" -eq $(($(count completed) + $(count errors) + $(count timeouts))) ] &&
		[ "$(count late)" -le "$(count timeouts)" ] && [ "$(count quarantined_pages)" -eq 0 ]
}

# one_case NAME WITNESS MEANWHILE: WITNESS, one of dcbm's counters or a file, is a number that must have changed.
one_case() {
	witness=$counters/$2
	[ -e "$witness" ] || witness=$2
	echo 0 >turns
	before=$(cat "$witness")
	copied=$(cat $sysfs/stats/dcbm/folios)
	: >busy
	meanwhile "$3" &
	move
	rm -f busy
	wait
	calm
	echo kernel >$sysfs/migrator
	drain
	copied=$(($(cat $sysfs/stats/dcbm/folios) - copied))
	# Where every fifth descriptor takes its channel out of service, there may be no share that is complete.
	case $2 in
	abandoned_pages | late) least=0 ;;
	*) least=1 ;;
	esac
	[ $status -eq 0 ] && [ $moved -ge "$folios" ] && [ $copied -ge $least ]
	report "$1: every byte is right" $? "integrity ended with $status after $moved folios of $folios, $copied by dcbm"
	echo "# $moved folios, $copied by dcbm; since the start:$(for file in "$counters"/*; do echo " ${file##*/} $(cat "$file")"; done | tr -d '\n')"
	balanced
	report "$1: the counters add up, nothing is left in quarantine" $? "see above"
	[ "$(cat "$witness")" -ne "$before" ]
	report "$1: it did happen" $? "$witness is still $before"
}

# Without an engine there is nothing to test: the case fails by its witness.
select_dcbm() {
	echo $timeout_ms >$sysfs/dcbm/timeout_ms
	echo always >$sysfs/dcbm/offload
	echo "$use" >$sysfs/dcbm/devices
	echo 16 >$sysfs/dcbm/channels
	choose_dcbm
}

load_testdma() {
	insmod "$testdma" role="$1" devices=8 channels=2
	driver=/sys/bus/platform/drivers/$1
	devices=$(cd "$driver" && echo "$1".*)
	select_dcbm
}

# testdma_case NAME ROLE FAULT WITNESS MEANWHILE: FAULT is a file of the engine, or - for none.
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
	one_case "$1" $inject/times nothing
	rmmod ferry_testdma
}

# Of those that may not wait, as a driver's are in its prep.
allocation_case() {
	load_testdma ferry_testdma
	echo Y >$slab/task-filter
	echo Y >$slab/ignore-gfp-wait
	echo 1000000 >$slab/times
	echo 0 >$slab/verbose
	echo $((100 / rate)) >$slab/probability
	echo 1 >/proc/self/make-it-fail
	one_case "an allocation fails" $slab/times nothing
	echo 0 >/proc/self/make-it-fail
	rmmod ferry_testdma
}

# Each descriptor is in time, and there are too many.
slow_case() {
	load_testdma ferry_testdma
	echo 20 >$faults/late_ms
	echo 1 >$faults/late
	one_case "a slow engine" overdue nothing
	rmmod ferry_testdma
}

testdma_cases() {
	testdma_case "an error" ferry_testdma error errors nothing
	# By a driver that is known to do so: its channels stay in service.
	testdma_case "an error reported as success" sf-pdma lie mismatches nothing
	# By one that is not: a channel is lost each time. Some shares are to be complete.
	rate=50
	testdma_case "a stranger that lies" ferry_testdma lie abandoned_pages rebind
	testdma_case "a write after a false completion" ferry_testdma early abandoned_pages rebind
	# And by one that is trusted, where the user is not.
	echo always >$sysfs/dcbm/verify
	testdma_case "a trusted driver that lies, all compared" ioatdma lie abandoned_pages rebind
	echo auto >$sysfs/dcbm/verify
	rate=5
	testdma_case "a lost completion, and the driver unbound" ferry_testdma lost abandoned_pages rebind
	testdma_case "a write after the driver is gone" ferry_testdma ghost abandoned_pages rebind
	testdma_case "a late completion" ferry_testdma late late nothing
	testdma_case "no descriptor to be had" ferry_testdma prep $faults/hits_prep nothing
	testdma_case "the driver unbound at work" ferry_testdma - turns rebind
	testdma_case "channels taken away" ferry_testdma - turns take_away
	slow_case
	injected_case "a mapping fails" dcbm_map
	injected_case "prep fails" dcbm_prep
	allocation_case
	# A driver that reports errors.
	testdma_case "a trusted driver, an error" ioatdma error errors nothing
	testdma_case "a trusted driver, a late completion" ioatdma late late nothing
	# A driver whose errors only the sentinel of a chain betrays. Some chains are to be without an error.
	rate=50
	testdma_case "a sentinel, a chain dropped" xilinx-zynqmp-dma error timeouts rebind
	rate=5
	testdma_case "a sentinel, a late completion" xilinx-zynqmp-dma late late nothing
}

# real_case NAME FAULTS WITNESS MEANWHILE
real_case() {
	echo "$2" >"$control"
	select_dcbm
	one_case "$1" "$3" "$4"
}

# It cannot be unbound: it would wait for ever for its own worker.
ae4dma_cases() {
	insmod "$ptdma"
	insmod "$ae4dma" max_hw_q=4
	driver=/sys/bus/pci/drivers/ae4dma
	use=$(cd $driver && echo 0*)
	real_case "ae4dma: all is well" '{}' completed nothing
	real_case "ae4dma: an error reported as success" "{\"error\": $rate}" mismatches nothing
	real_case "ae4dma: half copied" "{\"partial\": $rate}" mismatches nothing
	real_case "ae4dma: a late completion" "$late" late nothing
}

# What it says falsely costs it its only channel, until it is bound anew: which takes time, and some shares are to be
# complete.
ptdma_cases() {
	insmod "$ptdma"
	driver=/sys/bus/pci/drivers/ptdma
	devices=$(cd $driver && echo 0*)
	real_case "ptdma: all is well" '{}' completed nothing
	[ "$folios" -le 1000 ] || folios=1000
	real_case "ptdma: an error reported as success" '{"error": 50}' mismatches rebind
	real_case "ptdma: half copied" '{"partial": 50}' mismatches rebind
	real_case "ptdma: a late completion" "$late" late nothing
	real_case "ptdma: unbound at work" '{}' turns rebind
	real_case "ptdma: a lost completion, and unbound" "{\"stall\": $rate}" abandoned_pages rebind
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
calm
[ "$testdma" = - ] || testdma_cases
timeout_ms=200
late="{\"late\": $rate, \"late_ms\": $((4 * timeout_ms))}"
if [ "$ae4dma" != - ]; then
	ae4dma_cases
elif [ "$ptdma" != - ]; then
	ptdma_cases
fi
exit $failed
