#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Write a file in the current directory by fio and verify the checksum of each block, with each set of options in turn.
# Prints KTAP.
#
#   fio.sh FIO SECONDS NAME=OPTIONS...
#
# FIO is a shell command. fio stops at the first block that differs.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
fio=$1
seconds=$2
shift 2

echo "KTAP version 1"
echo "1..$#"
for case in "$@"; do
	# shellcheck disable=SC2086 # words
	$fio --name=verified --thread --size=16M --rw=randwrite --bsrange=4k-64k --verify=crc32c --verify_fatal=1 \
		--verify_backlog=64 --time_based --runtime="$seconds" ${case#*=} >fio.out 2>&1
	status=$?
	cat fio.out >&2
	if [ $status -eq 0 ] && ! grep -q 'issued rwts: total=[1-9]' fio.out; then
		skip "${case%%=*}" "fio verified nothing"
	else
		report "${case%%=*}" $status "exit status $status: $(grep -m 1 -E 'verify:|err=|fio:' fio.out)"
	fi
	rm -f verified.* fio.out
done
exit $failed
