#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Several tasks submit copies to each channel of a driver at the same time, and dmatest checks each byte. Prints KTAP.
#
#   dmatest.sh DMATEST DRIVER
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
dmatest=$1 driver=$2
parameters=/sys/module/dmatest/parameters
tasks=4 copies=50

channels() {
	for channel in /sys/class/dma/*; do
		[ "$(basename "$(readlink -f "$channel/device/driver")")" != "$driver" ] || basename "$channel"
	done
}

echo "KTAP version 1"
echo "1..2"
rm -f "$FERRY_SHARE/dma-faults.json"
count=$(channels | grep -c .)
[ "$count" -gt 0 ]
report "$driver has channels" $? "none in /sys/class/dma"
insmod "$dmatest"
echo $tasks >$parameters/threads_per_chan
echo $copies >$parameters/iterations
echo 65536 >$parameters/test_buf_size
echo 20000 >$parameters/timeout
for channel in $(channels); do
	echo "$channel" >$parameters/channel
done
echo 1 >$parameters/run
cat $parameters/wait >/dev/null
good=$(dmesg | grep -c "dmatest: .*: summary $copies tests, 0 failures")
[ "$good" -eq $((tasks * count)) ]
report "$tasks tasks on each of $count channels: every copy is complete when it is called back" $? \
	"so did $good of $((tasks * count)) tasks"
rmmod dmatest
exit $failed
