#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Faults of DMA engines and of their drivers, injected one after the other while stamped memory moves by dcbm. Prints
# KTAP.
#
#   dma-faults.sh FOLIOS INTEGRITY DCBM TESTDMA PTDMA AE4DMA DCA IOATDMA LEAKS CASE...
#
# FOLIOS: to submit to dcbm in each case. INTEGRITY: the program. DCBM, TESTDMA: our modules. PTDMA, AE4DMA, IOATDMA:
# drivers of the kernel, of devices that fail as $FERRY_SHARE/dma-faults.json says; AE4DMA needs PTDMA, IOATDMA needs DCA.
# LEAKS: some or none, whether the cases leak pages. CASE: NAME|SETUP|EVIDENCE|ACTION, as suites/dma.py describes.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
# shellcheck source=guest/scripts/failslab.sh
. "$(dirname "$0")/failslab.sh"
most_folios=$1 integrity=$2 dcbm=$3 testdma=$4 ptdma=$5 ae4dma=$6 dca=$7 ioatdma=$8 leaks=$9
shift 9
sysfs=/sys/kernel/mm/migration
counters=$sysfs/dcbm/counters
channels=/sys/kernel/debug/ferry_dcbm/channels
faults=/sys/kernel/debug/ferry_testdma
inject=/sys/kernel/debug/fail_function
slab=/sys/kernel/debug/failslab
control=$FERRY_SHARE/dma-faults.json

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

# What a case's setup calls.

# knob NAME VALUE: of dcbm
knob() {
	echo "$2" >"$sysfs/dcbm/$1"
}

# A channel hangs long before a completion that is late_ms (100) late; several times the duration of a descriptor.
hang_soon() {
	knob timeout_ms 50
}

# testdma ROLE [FAULT=RATE]...: the engine without hardware; one in RATE descriptors fails.
testdma() {
	insmod "$testdma" role="$1" devices=$nr_devices channels=2 || return
	bound=$1
	# Its channels are devices of their own.
	[ "$1" != idxd ] || bound=testdma_wq
	driver=/sys/bus/platform/drivers/$bound
	devices=$(cd "$driver" && echo "$bound".*)
	shift
	for fault in "$@"; do
		echo "${fault#*=}" >"$faults/${fault%%=*}"
	done
}

# loaded MODULE FILE [PARAMETER]: load it unless it is.
loaded() {
	grep -q "^$1 " /proc/modules || { shift && insmod "$@"; }
}

# models DRIVER JSON: the device models, and their faults. ae4dma cannot be unbound: it would wait for ever for its own
# worker. It stays loaded, and with it ptdma.
models() {
	loaded ptdma "$ptdma"
	[ "$1" != ae4dma ] || loaded ae4dma "$ae4dma" max_hw_q=4
	# The timer soon finds that a channel makes no progress: after 200 to 400 ms.
	[ "$1" != ioatdma ] || { loaded dca "$dca" && loaded ioatdma "$ioatdma" idle_timeout=50; }
	driver=/sys/bus/pci/drivers/$1
	devices=$(cd "$driver" && echo 0*)
	echo "$2" >"$control"
}

# only: no channels but those of $devices
only() {
	knob devices "$devices"
}

# fail_function FUNCTION PERCENT: a function of dcbm's fails.
fail_function() {
	echo "$1" >$inject/inject
	echo "$2" >$inject/probability
	echo 1 >$inject/interval
	echo 1000000 >$inject/times
	echo 0 >$inject/verbose
}

# fail_slab PERCENT: allocations fail that may not wait, as those of a driver in its prep.
fail_slab() {
	spare_radix_trees
	echo Y >$slab/task-filter
	echo Y >$slab/ignore-gfp-wait
	echo 1000000 >$slab/times
	echo 0 >$slab/verbose
	echo "$1" >$slab/probability
	echo 1 >/proc/self/make-it-fail
}

# The actions under load: each succeeds or fails.
wait_only() {
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

# A device that works is unbound at any time, and leaks nothing.
rebind_at_once() {
	for device in $devices; do
		echo "$device" >"$driver/unbind" && echo "$device" >"$driver/bind" || return 1
	done
	[ "$(count leaked_pages)" -eq "$leaked" ]
}

# The same, once its channels copy: they take long to request.
rebind_used() {
	if ! grep -q 'descriptors=[1-9]' $channels; then
		sleep 0.1
		return 1
	fi
	rebind_at_once
}

# A queue whose descriptors hang is unbound: its driver waits for them, but neither dmaengine nor dcbm does.
unbind_hung() {
	sleep 0.1
	grep -q 'hung$' $channels && ! grep -q 'active$' $channels || return 1
	device=${devices%% *}
	rm -f unbound
	{
		echo "$device" >"$driver/unbind"
		: >unbound
	} &
	sleep 1
	cat /sys/class/dma/*/in_use $sysfs/dcbm/devices >/dev/null
	# If they did wait, the unbinding has ended at the same time.
	sleep 1
	ended=$(ls unbound)
	wait $!
	echo "$device" >"$driver/bind" && [ -z "$ended" ]
}

remove_channels() {
	for setting in dcbm/channels=1 dcbm/devices="${devices%% *}" dcbm/channels=64 migrator=kernel migrator=dcbm \
		dcbm/devices=all; do
		echo "${setting#*=}" >"$sysfs/${setting%%=*}" || return 1
		sleep 0.1
	done
}

# Channels of two drivers copy.
both_copy() {
	sleep 0.2
	[ "$(sed -n 's/^[^ ]* \([^ ]*\) .*descriptors=[1-9].*/\1/p' $channels | sort -u | grep -c .)" -eq 2 ]
}

# A channel copies through its IOVA windows.
windows_copy() {
	sleep 0.2
	grep -q 'descriptors=[1-9].*windows=1' $channels
}

# Repeat the action while the load runs, and count how often it succeeds.
repeat() {
	successes=0
	while [ -e busy ]; do
		! "$1" 2>/dev/null || successes=$((successes + 1))
		echo $successes >actions
	done
}

happened() {
	change=$(($(cat "$evidence") - before))
	[ "${change#-}" -ge "$least" ]
}

copied() {
	echo $(($(cat $sysfs/stats/dcbm/folios) - copied_before))
}

# Until enough folios were submitted to dcbm, it copied some, and the fault happened. Each run checks every byte, and
# that each page still moves afterwards.
move() {
	start=$(submitted)
	status=0
	rounds=0
	# A busy host is slow to unbind a thousand times.
	most=$((30 + least / 20))
	moved=0
	while [ $status -eq 0 ] && [ $rounds -lt $most ] && { [ $moved -lt "$folios" ] || [ "$(copied)" -eq 0 ] || ! happened; }; do
		select_dcbm
		"$integrity" --seconds $((1 + folios / 1000)) --bytes 32m --only read,write --movers $movers --audit-by kernel \
			--leak-kb 262144 >now.json 2>&1 || status=$?
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
	[ ! -e $slab ] || { echo 0 >$slab/probability && spare_nothing; }
	[ ! -e /proc/self/make-it-fail ] || echo 0 >/proc/self/make-it-fail
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
	[ "$may_hang" -eq 1 ] || [ "$(count channels_hung)" -eq "$hung" ] || return 1
	[ "$(count descriptors)" -eq $(($(count completed) + $(count errors) + $(count timeouts))) ] &&
		[ "$(count late_completions)" -le "$(count timeouts)" ] && [ "$(count hung_pages)" -eq 0 ]
}

# load NAME EVIDENCE ACTION: three results. EVIDENCE, one of dcbm's counters or a file, is a number that must change by at
# least $least.
load() {
	evidence=$counters/$2
	[ -e "$evidence" ] || evidence=$2
	echo 0 >actions
	before=$(cat "$evidence")
	copied_before=$(cat $sysfs/stats/dcbm/folios)
	leaked=$(count leaked_pages)
	hung=$(count channels_hung)
	: >busy
	repeat "$3" &
	move
	rm -f busy
	wait
	clear_faults
	echo kernel >$sysfs/migrator
	drain
	copied=$(copied)
	[ $status -eq 0 ] && [ $moved -ge "$folios" ] && [ $copied -gt 0 ]
	report "$1: every byte is right" $? "integrity ended with $status after $moved folios of $folios, $copied by dcbm"
	echo "# $moved folios, $copied by dcbm; since the start:$(for file in "$counters"/*; do echo " ${file##*/} $(cat "$file")"; done | tr -d '\n')"
	balanced
	report "$1: the counters add up, no hung channel keeps a page" $? "see above; $(count channels_hung) hung, before $hung"
	happened
	report "$1: the fault happened" $? "$evidence changed by $change from $before, not by $least"
}

# one_case NAME SETUP EVIDENCE ACTION: with the defaults that SETUP may change. If it fails, so does the case: either it
# moves too little or its evidence does not change.
one_case() {
	folios=$most_folios movers=2 nr_devices=8 least=1 may_hang=1
	# Many times the duration of a descriptor, on a busy host, too.
	knob timeout_ms 500
	knob verify auto
	knob channels 16
	knob devices all
	# Whatever the cost model says.
	echo 1 >/sys/kernel/debug/ferry_dcbm/force_offload
	eval "$2"
	select_dcbm
	load "$1" "$3" "$4"
	! grep -q '^ferry_testdma ' /proc/modules || rmmod ferry_testdma
}

echo "KTAP version 1"
echo "1..$(($# * 3 + 1))"
insmod "$dcbm"
clear_faults
for words in "$@"; do
	IFS='|' read -r name setup evidence action <<-END
		$words
	END
	one_case "$name" "$setup" "$evidence" "$action"
done
case $leaks in
some) [ "$(count leaked_pages)" -gt 0 ] && dmesg | grep -q 'dcbm: unbound while it may write memory: [1-9]' ;;
none) [ "$(count leaked_pages)" -eq 0 ] ;;
esac
report "$leaks pages leaked, and the log tells" $? "$(count leaked_pages), $(dmesg | grep -c 'dcbm: unbound while') messages"
exit $failed
