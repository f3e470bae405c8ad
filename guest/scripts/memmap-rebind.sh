#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Binds and unbinds devices many times; every second time, all allocations fail while the kernel initialises their
# struct pages. Prints KTAP. Allocations outside of the initialisation succeed, because the kernel does not survive
# their failure: on x86, a failed add_pages() warns, and leaves half a range behind.
#
#   memmap-rebind.sh WATCH ROUNDS
#
# WATCH: memmap_watch.ko. ROUNDS: bindings of each of seven devices: fsdax and devdax on the first NVDIMM, private,
# coherent and generic memory, each large enough to be shared by two CPUs, for which the kernel allocates memory; and generic
# compounds of 2 MiB and of 1 GiB with a deduplicated vmemmap, as devdax and CXL have without an altmap.
set -u

watch=$1 rounds=$2
here=$(dirname "$0")
nd=/sys/bus/nd
debugfs=/sys/kernel/debug
gib=2
# Free memory that a run may take: per-CPU lists, slabs that stay. A leaked memory map of 2 GiB has 32 MiB.
leak_kb=8192
injected=1000000

# shellcheck source=guest/scripts/pmem.sh
. "$here/pmem.sh"
# shellcheck source=guest/scripts/free.sh
. "$here/free.sh"
# shellcheck source=guest/scripts/ktap.sh
. "$here/ktap.sh"

inject() {
	for injector in failslab fail_page_alloc; do
		echo "$1" >$debugfs/$injector/probability
	done
}

arm() {
	for injector in failslab fail_page_alloc; do
		echo Y >$debugfs/$injector/task-filter
		echo $injected >$debugfs/$injector/times
		echo 0 >$debugfs/$injector/verbose
	done
	echo 0 >$debugfs/fail_page_alloc/min-order
	echo N >$debugfs/fail_page_alloc/ignore-gfp-wait
	echo N >$debugfs/failslab/ignore-gfp-wait
}

# rebind_remap DEVICE TYPE ORDER ROUNDS
rebind_remap() {
	dmesg -c >/dev/null
	insmod "$watch" type="$2" order="$3" gib=$gib rounds="$4" faults=1 && rmmod memmap_watch
	dmesg | grep '"event": "remap"' >"$1.log"
	wc -l <"$1.log" >"$1.bound"
}

# A deduplicated vmemmap takes at most a quarter of the 16 MiB for 1 GiB, and some page tables. Per-CPU lists hide a
# part of what a round takes, so take the round that seems to take most: at most 16 MiB were seen, and 32 MiB without
# deduplication.
deduplicated() {
	kib=$(sed 's/.*"memmap_kib": \([-0-9]*\).*/\1/' "$1.log" | sort -n | tail -n 1)
	[ "$kib" -lt $((gib * 16384 * 3 / 4)) ]
}

rebind_pmem() {
	driver=$nd/drivers/$2
	bound=0 round=0
	insmod "$watch" faults=1
	while [ $round -lt "$3" ]; do
		echo "$seed" >"$driver/bind"
		[ ! -e "$driver/$seed" ] || bound=$((bound + 1))
		echo "$seed" >"$driver/unbind"
		round=$((round + 1))
	done
	rmmod memmap_watch
	echo $bound >"$1.bound"
}

rebind() {
	case $1 in
	fsdax)
		claim pfn 4096
		rebind_pmem fsdax nd_pmem "$2"
		disclaim
		;;
	devdax)
		claim dax 2097152
		rebind_pmem devdax dax_pmem "$2"
		disclaim
		;;
	dedup_2m) rebind_remap "$1" generic 9 "$2" ;;
	dedup_1g) rebind_remap "$1" generic 18 "$2" ;;
	*) rebind_remap "$1" "$1" 0 "$2" ;;
	esac
}

echo "KTAP version 1"
echo "1..18"
arm
devices="fsdax devdax private coherent generic dedup_2m dedup_1g"

# The kernel keeps some memory that it allocates for the first bindings, so the leak test begins after them.
inject 0
for device in $devices; do
	rebind $device 4
	[ "$(cat $device.bound)" -eq 4 ]
	report "$device binds" $? "$(cat $device.bound) of 4"
done
for device in dedup_2m dedup_1g; do
	deduplicated $device
	report "$device has a deduplicated vmemmap" $? "it takes $kib KiB"
done
before=$(free_kb)

inject 100
for device in $devices; do
	rebind $device "$rounds"
	[ "$(cat $device.bound)" -eq "$rounds" ]
	report "$device binds $rounds times" $? "bound only $(cat $device.bound) times"
done
inject 0
failures=$((injected - $(cat $debugfs/failslab/times)))
[ $failures -ge $((rounds * 2)) ]
report "allocations did fail" $? "$failures did, in $((7 * rounds)) bindings"
free_kb_again "$before" $leak_kb
[ $((before - after)) -le $leak_kb ]
report "no memory is lost" $? "$((before - after)) KiB are"
echo "# $failures allocations failed in $((7 * rounds)) bindings; free memory changed by $((after - before)) KiB"
exit $failed
