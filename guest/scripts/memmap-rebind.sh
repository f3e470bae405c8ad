#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Binds and unbinds devices many times, and every second time no allocation succeeds while their struct pages are
# initialised: prints KTAP. Around it the kernel does not survive that: on x86, a failed add_pages() warns, and leaves
# half a range behind.
#
#   memmap-rebind.sh WATCH ROUNDS
#
# WATCH: memmap_watch.ko. ROUNDS: bindings of each of four devices: fsdax and devdax on the first NVDIMM, private and
# generic memory; each large enough to be shared by two CPUs, for which memory is allocated.
set -u

watch=$1 rounds=$2
here=$(dirname "$0")
nd=/sys/bus/nd
debugfs=/sys/kernel/debug
gib=2
# Free memory that a run may cost: per-CPU lists, slabs that stay. A leaked memory map of 2 GiB is 32 MiB.
leak_kb=8192
injected=1000000

# shellcheck source=guest/scripts/pmem.sh
. "$here/pmem.sh"
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

free_kb() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	sed -n 's/^MemFree: *\([0-9]*\).*/\1/p' /proc/meminfo
}

rebind_remap() {
	dmesg -c >/dev/null
	insmod "$watch" type="$1" gib=$gib rounds="$2" faults=1 && rmmod memmap_watch
	dmesg | grep -c '"event": "remap"' >"$1.bound"
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
	*) rebind_remap "$1" "$2" ;;
	esac
}

echo "KTAP version 1"
echo "1..10"
arm
devices="fsdax devdax private generic"

# What the first bindings make the kernel allocate for good is no leak.
inject 0
for device in $devices; do
	rebind $device 4
	[ "$(cat $device.bound)" -eq 4 ]
	report "$device binds" $? "$(cat $device.bound) of 4"
done
before=$(free_kb)

# Every way to write has its turn: which one auto would take depends on the host.
set_method() {
	case $1 in
	devdax) method=block ;;
	generic) method=cached ;;
	*) method=streaming ;;
	esac
	echo $method >/sys/module/memmap/parameters/method
}

inject 100
for device in $devices; do
	set_method $device
	rebind $device "$rounds"
	[ "$(cat $device.bound)" -eq "$rounds" ]
	report "$device binds $rounds times" $? "bound only $(cat $device.bound) times"
done
inject 0
failures=$((injected - $(cat $debugfs/failslab/times)))
[ $failures -ge $((rounds * 2)) ]
report "allocations did fail" $? "$failures did, in $((4 * rounds)) bindings"
# RCU and per-CPU lists let go within moments, on a busy host some more; a leak never does.
attempt=0
after=$(free_kb)
while [ $((before - after)) -gt $leak_kb ] && [ $attempt -lt 20 ]; do
	sleep 1
	after=$(free_kb)
	attempt=$((attempt + 1))
done
[ $((before - after)) -le $leak_kb ]
report "no memory is lost" $? "$((before - after)) KiB are"
echo "# $failures allocations failed in $((4 * rounds)) bindings; free memory changed by $((after - before)) KiB"
exit $failed
