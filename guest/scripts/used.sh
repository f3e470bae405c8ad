#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Check that counters below /sys/kernel/mm/migration have grown since boot. Prints KTAP.
#
#   used.sh COUNTER...
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"

echo "KTAP version 1"
echo "1..$#"
for counter in "$@"; do
	[ "$(cat "/sys/kernel/mm/migration/$counter")" -gt 0 ]
	report "$counter" $? "it is 0, so the programs before tested nothing of it"
done
exit $failed
