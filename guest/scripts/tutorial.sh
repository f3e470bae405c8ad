#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Load the migrator of docs/tutorials/write-a-migrator.md, let it copy while a program checks each byte, unload it.
# Prints KTAP.
#
#   tutorial.sh MODULE.ko PROGRAM...
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"

module=$1
shift
cd /sys/kernel/mm/migration || exit 1
echo "KTAP version 1"
echo "1..6"

insmod "$module" && echo plain >migrator && grep -q '\[plain\]' migrator
report "plain can be selected" $? "the selector is: $(cat migrator)"

! rmmod ferry_plain 2>/dev/null
report "rmmod is refused while plain is selected" $? "rmmod succeeded"

echo 4 >plain/max_order && ! (echo 99 >plain/max_order) 2>/dev/null && [ "$(cat plain/max_order)" = 4 ]
report "max_order takes 4 and refuses 99" $? "it is $(cat plain/max_order)"

"$@" >&2
report "each byte is right" $? "the program ended with an error"

[ "$(cat stats/plain/folios)" -gt 0 ]
report "plain has copied" $? "stats/plain/folios is $(cat stats/plain/folios)"

echo off >migrator && rmmod ferry_plain && grep -q '\[off\]' migrator && ! grep -q plain migrator
report "plain can be unloaded" $? "the selector is: $(cat migrator)"
exit $failed
