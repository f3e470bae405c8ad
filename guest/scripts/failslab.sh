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
