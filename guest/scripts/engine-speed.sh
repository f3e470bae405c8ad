#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Let each queue of the device models copy at a multiple of the rate of one CPU, which is measured first.
# usage: engine-speed.sh PERMILLE RESULT COMMAND [ARGUMENT]...
# COMMAND moves folios by the migrator kernel; its output is dropped. RESULT is a file for the rates in 10^6 bytes a second:
# {"cpu_mb_per_s": 1500, "queue_mb_per_s": 300}. Exit status: that of COMMAND.
set -eu

permille=$1 result=$2
shift 2
stats=/sys/kernel/mm/migration/stats/kernel
bytes=$(cat $stats/bytes) ns=$(cat $stats/copy_ns)
"$@" >/dev/null
bytes=$(($(cat $stats/bytes) - bytes)) ns=$(($(cat $stats/copy_ns) - ns))
cpu=$((bytes * 1000 / ns))
queue=$((cpu * permille / 1000))
[ $queue -gt 0 ] || queue=1
echo "{\"queue_mb_per_s\": $queue}" >"$FERRY_SHARE/dma-faults.json"
echo "{\"cpu_mb_per_s\": $cpu, \"queue_mb_per_s\": $queue}" >"$result"
