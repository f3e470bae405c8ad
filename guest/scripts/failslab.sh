# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# To be sourced by scripts that inject failures of slab allocations.

# Spare the nodes of radix trees: without one dma-debug disables itself for good.
spare_radix_trees() {
	for cache in /sys/kernel/slab/*; do
		[ "${cache##*/}" = radix_tree_node ] || echo 1 >"$cache/failslab"
	done 2>/dev/null
	echo Y >/sys/kernel/debug/failslab/cache-filter
}

# Undo it. The kernel does not merge a marked cache with a new one like it: in sysfs both would have the same name.
spare_nothing() {
	[ "$(cat /sys/kernel/debug/failslab/cache-filter)" = Y ] || return 0
	echo N >/sys/kernel/debug/failslab/cache-filter
	for cache in /sys/kernel/slab/*; do
		echo 0 >"$cache/failslab"
	done 2>/dev/null
}
