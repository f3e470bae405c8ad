# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# For sourcing: claims the first NVDIMM's namespace for one of the two drivers that make device memory of it. Sets
# $seed to the device that is bound; wants $nd.

# claim pfn 4096: fsdax, for nd_pmem. claim dax 2097152: devdax of 2 MiB compounds, for dax_pmem. The struct pages are
# kept on the device either way.
claim() {
	region=$(echo "$nd"/devices/region*)
	namespace=$(basename "$(echo "$region"/namespace*.0)")
	seed=$(cat "$region/$1_seed")
	[ ! -e "$nd/drivers/nd_pmem/$namespace" ] || echo "$namespace" >"$nd/drivers/nd_pmem/unbind"
	echo pmem >"$nd/devices/$seed/mode"
	echo "$2" >"$nd/devices/$seed/align"
	cat /proc/sys/kernel/random/uuid >"$nd/devices/$seed/uuid"
	echo "$namespace" >"$nd/devices/$seed/namespace"
}

disclaim() {
	echo >"$nd/devices/$seed/namespace"
}
