#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Binds devices again and again, each round once with every configuration, and keeps what memmap_watch prints.
#
#   memmap-bench.sh WATCH LOG ROUNDS GIB DEVICES CONFIGS
#
# WATCH: memmap_watch.ko. LOG: receives marks and samples in the kernel log's order. GIB: of the devices without
# memory. DEVICES: of fsdax, devdax (on the first NVDIMM), private, generic. CONFIGS: NAME=METHOD,THREADS of memmap's
# parameters, or NAME= for a kernel that has none. Round 0 has each device's first binding, by the first of them.
set -eu

watch=$1 log=$2 rounds=$3 gib=$4 devices=$5 configs=$6
parameters=/sys/module/memmap/parameters
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
		echo "${settings%,*}" >$parameters/method
		echo "${settings#*,}" >$parameters/threads
	fi
}

bind_pmem() {
	driver=$nd/drivers/$1
	echo "$seed" >"$driver/bind"
	echo "$seed" >"$driver/unbind"
}

bind_device() {
	case $1 in
	fsdax) bind_pmem nd_pmem ;;
	devdax) bind_pmem dax_pmem ;;
	*)
		insmod "$watch" type="$1" gib="$gib" rounds=1
		rmmod memmap_watch
		;;
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
