#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Binds devices again and again, each round once with every configuration, and keeps the samples of memmap_watch.
#
#   memmap-bench.sh WATCH LOG ROUNDS GIB DEVICES CONFIGS
#
# WATCH: memmap_watch.ko. LOG: receives marks and samples in the kernel log's order. GIB: of the devices without
# memory. DEVICES: of fsdax, devdax (on the first NVDIMM), private, generic, dedup (generic compounds of 2 MiB with a
# deduplicated vmemmap). CONFIGS: NAME=NONTEMPORAL,THREADS of the parameters of zone_device_init, or NAME= for a kernel
# without them. Round 0 has each device's first binding, by the first configuration.
set -eu

watch=$1 log=$2 rounds=$3 gib=$4 devices=$5 configs=$6
parameters=/sys/module/zone_device_init/parameters
nd=/sys/bus/nd

# shellcheck source=guest/scripts/pmem.sh
. "$(dirname "$0")/pmem.sh"

mark() {
	echo "memmap_mark: $*" >/dev/kmsg
}

# The ring buffer holds a few hundred lines, so it is emptied after every binding.
collect() {
	dmesg -c | grep -o 'memmap_[a-z]*: .*' >>"$log"
}

configure() {
	settings=${1#*=}
	if [ -n "$settings" ]; then
		echo "${settings%,*}" >$parameters/nontemporal
		echo "${settings#*,}" >$parameters/threads
	fi
}

bind_pmem() {
	driver=$nd/drivers/$1
	echo "$seed" >"$driver/bind"
	echo "$seed" >"$driver/unbind"
}

bind_module() {
	insmod "$watch" type="$1" order="$2" gib="$gib" rounds=1
	rmmod memmap_watch
}

bind_device() {
	case $1 in
	fsdax) bind_pmem nd_pmem ;;
	devdax) bind_pmem dax_pmem ;;
	dedup) bind_module generic 9 ;;
	*) bind_module "$1" 0 ;;
	esac
}

measure() {
	round=0
	while [ "$round" -le "$rounds" ]; do
		for config in $configs; do
			configure "$config"
			mark "device=$1 config=${config%%=*} round=$round"
			bind_device "$1"
			collect
		done
		round=$((round + 1))
	done
}

dmesg -c >/dev/null
for device in $devices; do
	case $device in
	fsdax | devdax)
		insmod "$watch"
		if [ "$device" = fsdax ]; then claim pfn 4096; else claim dax 2097152; fi
		measure "$device"
		disclaim
		rmmod memmap_watch
		;;
	*) measure "$device" ;;
	esac
done
