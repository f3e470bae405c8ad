#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# On a kernel booted with swiotlb=force all DMA goes through bounce buffers: dcbm uses no engine there. Prints KTAP.
#
#   dma-swiotlb.sh DCBM TESTDMA PTDMA
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
dcbm=$1 testdma=$2 ptdma=$3
sysfs=/sys/kernel/mm/migration

engines() {
	find /sys/class/dma -name 'dma*chan*' | wc -l
}

echo "KTAP version 1"
echo "1..4"
grep -qw swiotlb=force /proc/cmdline
report "swiotlb=force" $? "$(cat /proc/cmdline)"
insmod "$dcbm"
insmod "$testdma" devices=1 channels=1
insmod "$ptdma"
[ "$(engines)" -eq 2 ]
report "there are two engines" $? "$(engines)"
! echo dcbm 2>/dev/null >$sysfs/migrator
report "dcbm cannot be selected" $? "it is"
[ "$(grep -c . /sys/kernel/debug/ferry_dcbm/channels)" -eq 0 ]
report "it holds no channel" $? "$(cat /sys/kernel/debug/ferry_dcbm/channels)"
echo off >$sysfs/migrator
rmmod ferry_testdma
exit $failed
