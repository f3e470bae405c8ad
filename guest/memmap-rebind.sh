#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Binds and unbinds devices many times, every second time with allocations that fail: prints KTAP.
#
#   memmap-rebind.sh WATCH ROUNDS
#
# WATCH: memmap_watch.ko. ROUNDS: bindings of each of four devices: fsdax and devdax on the first NVDIMM, and 1 GiB
# of private and of generic memory.
set -u

watch=$1 rounds=$2
here=$(dirname "$0")
nd=/sys/bus/nd
debugfs=/sys/kernel/debug
# Free memory that a run may cost: per-CPU lists, slabs that stay. A leaked memory map of 1 GiB is 16 MiB.
leak_kb=8192
test_number=0
failed=0

# shellcheck source=guest/pmem.sh
. "$here/pmem.sh"

report() {
	test_number=$((test_number + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $test_number $1"
	else
		echo "not ok $test_number $1 # $3"
		failed=1
	fi
}

inject() {
	for injector in failslab fail_page_alloc; do
		echo "$1" >$debugfs/$injector/probability
	done
}

arm() {
	for injector in failslab fail_page_alloc; do
		echo Y >$debugfs/$injector/task-filter
		echo -1 >$debugfs/$injector/times
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

# Every second round of the module's own fails; how many did is in the kernel's log.
rebind_remap() {
	dmesg -c >/dev/null
	insmod "$watch" type="$1" gib=1 rounds="$2" faults=1 && rmmod memmap_watch
	dmesg | grep -c '"event": "remap"' >"$1.bound"
	dmesg | grep -c '"event": "failed"' >"$1.refused"
}

# A driver that was refused its memory leaves the device unbound, and takes it the next time.
rebind_pmem() {
	driver=$nd/drivers/$2
	bound=0 refused=0 round=0
	while [ $round -lt "$3" ]; do
		sh -c "echo $((round % 2)) >/proc/self/make-it-fail && echo $seed >$driver/bind" 2>/dev/null
		if [ -e "$driver/$seed" ]; then
			bound=$((bound + 1))
			echo "$seed" >"$driver/unbind"
		else
			refused=$((refused + 1))
		fi
		round=$((round + 1))
	done
	echo $bound >"$1.bound"
	echo $refused >"$1.refused"
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

inject 5
refused=0
for device in $devices; do
	rebind $device "$rounds"
	[ "$(cat $device.bound)" -ge $((rounds / 2)) ]
	report "$device binds $rounds times, or is refused memory" $? "bound only $(cat $device.bound) times"
	refused=$((refused + $(cat $device.refused)))
done
inject 0
[ $refused -gt 0 ]
report "allocations did fail" $? "no binding was refused"
after=$(free_kb)
[ $((before - after)) -le $leak_kb ]
report "no memory is lost" $? "$((before - after)) KiB are"
echo "# refused $refused bindings of $((4 * rounds)); free memory changed by $((after - before)) KiB"
exit $failed
