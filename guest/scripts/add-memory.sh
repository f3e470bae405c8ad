#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Adds to the system, as movable memory, what the firmware gave to a driver (pmem-region, NVDIMM): by device-dax's kmem,
# in whole memory blocks. Once a boot.
set -eu

nd=/sys/bus/nd
dax=/sys/bus/dax
# shellcheck source=guest/scripts/pmem.sh
. "$(dirname "$0")/pmem.sh"

claim dax 2097152
echo "$seed" >$nd/drivers/dax_pmem/bind
device=$(basename "$(echo $dax/devices/dax*)")
echo online_movable >/sys/devices/system/memory/auto_online_blocks
echo "$device" >$dax/drivers/device_dax/unbind
echo "$device" >$dax/drivers/kmem/new_id
