#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Move the pages of a file between two nodes, and tell whether the migrator has copied them before they moved. movebench
# checks every byte. Prints KTAP.
#
#   early-copy.sh MOVEBENCH FILE
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
movebench=$1 file=$2

echo "KTAP version 1"
echo "1..2"
"$movebench" --folio 4k --bytes 8m --kind file --file "$file" --samples 2 --warmup 0 --config now: >move.json 2>&1
report "every byte of the file is right" $? "$(tail -n 1 move.json)"
grep -q '"copied_bytes": *[1-9]' move.json
report "the migrator copies its folios" $? "it has copied none"
exit $failed
