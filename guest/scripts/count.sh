#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run a command that moves pages under `count`, with deferred flushes and without. Prints KTAP.
#
#   count.sh COUNT COMMAND...
#
# The output of COMMAND becomes comments.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
counter=$1
shift

# number NAME: of the JSON line
number() {
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" count.json
}

echo "KTAP version 1"
echo "1..4"
"$counter" --output count.json -- sh -c 'exit 5'
[ $? -eq 5 ] && [ "$(number status)" = 5 ]
report "the command's status" $? "the line has $(number status)"
for defer in 0 1; do
	rm -f count.json
	"$counter" --output count.json --defer-flush $defer -- "$@" 2>&1 | sed 's/^/# /'
	sed 's/^/# /' count.json
	[ "$(number status)" = 0 ] && [ "$(number pgmigrate_success)" -gt 0 ]
	report "pages that moved, --defer-flush $defer" $? "the command failed, or pgmigrate_success did not grow"
done
[ "$(number migrc_ptes)" -gt 0 ]
report "flushes that were deferred" $? "migrc's counter did not grow"
exit $failed
