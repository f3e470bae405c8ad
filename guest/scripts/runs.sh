#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run a command while base pages migrate in runs. Pages must have moved so. Prints KTAP.
#
#   runs.sh MIGRC COMMAND...
#
# migrc is enabled (1) or disabled (0) before. The output of COMMAND becomes comments.
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
echo "1..3"
[ -e $control/runs ] && echo "$migrc" >$control/migrc/enabled && echo 1 >$control/runs
report "the kernel has runs" $? "CONFIG_FERRY_RUNS, CONFIG_MIGRC"
before=$(count moved)
"$@" >runs-command.out 2>&1
status=$?
sed 's/^/# /' runs-command.out
report "the program passes with runs on" $status "exit status $status, see above"
[ "$(count moved)" -gt "$before" ]
report "pages moved in runs" $? "no page moved in a run, so this tested nothing"
for file in "$control"/stats/runs/*; do
	echo "# ${file##*/} $(cat "$file")"
done
echo 0 >$control/runs
echo 0 >$control/migrc/enabled
exit $failed
