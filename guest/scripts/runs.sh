#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run a command while base pages migrate in runs. Pages must have moved so. Prints KTAP.
#
#   runs.sh MIGRC COMMAND...
#
# migrc is enabled (1) or disabled (0) before. If it is enabled, flushes must have been deferred. The output of COMMAND
# becomes comments.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
control=/sys/kernel/mm/migration
migrc=$1
shift

count() {
	cat $control/stats/runs/"$1"
}

echo "KTAP version 1"
echo "1..$((3 + migrc))"
[ -e $control/runs ] && echo "$migrc" >$control/migrc/enabled && echo 1 >$control/runs
report "the kernel has runs" $? "CONFIG_FERRY_RUNS, CONFIG_MIGRC"
before=$(count moved) deferred=$(cat $control/migrc/counters/ptes)
"$@" >runs-command.out 2>&1
status=$?
sed 's/^/# /' runs-command.out
report "the program passes with runs on" $status "exit status $status, see above"
[ "$(count moved)" -gt "$before" ]
report "pages moved in runs" $? "no page moved in a run, so this tested nothing"
if [ "$migrc" = 1 ]; then
	[ "$(cat $control/migrc/counters/ptes)" -gt "$deferred" ]
	report "flushes were deferred" $? "no flush was deferred, so this did not test migrc"
fi
for file in "$control"/stats/runs/*; do
	echo "# ${file##*/} $(cat "$file")"
done
echo 0 >$control/runs
echo 0 >$control/migrc/enabled
exit $failed
