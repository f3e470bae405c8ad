# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# To be sourced: how much memory is free.

# Free memory in KiB. Pages on per-CPU lists, which hold up to tens of MiB here, are free but not in MemFree.
free_kb() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	sleep 1
	awk '/^MemFree:/ { kib += $2 } $1 == "count:" { kib += 4 * $2 } END { print kib }' /proc/meminfo /proc/zoneinfo
}

# free_kb_again BEFORE ALLOWED: RCU and per-CPU lists free memory within moments, on a busy host within some more; a leak
# stays. Sets $after.
free_kb_again() {
	attempt=0
	after=$(free_kb)
	while [ $(($1 - after)) -gt "$2" ] && [ $attempt -lt 20 ]; do
		sleep 1
		after=$(free_kb)
		attempt=$((attempt + 1))
	done
}
