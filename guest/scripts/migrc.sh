#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run a command with migrc enabled on a correct kernel. Flushes must be deferred, and the kernel's checker must have
# reported nothing since boot. Prints KTAP.
#
#   migrc.sh COMMAND...
#
# The output of COMMAND becomes comments.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
migrc=/sys/kernel/mm/migration/migrc
debug=/sys/kernel/debug/migrc

count() {
	cat "$migrc/counters/$1"
}

echo "KTAP version 1"
echo "1..5"
[ -e $migrc/enabled ] && [ -e $debug/violations ]
report "the kernel has migrc and its checker" $? "CONFIG_MIGRC, CONFIG_MIGRC_DEBUG"
echo 1 >$migrc/enabled
before=$(count ptes)
"$@" >migrc-command.out 2>&1
status=$?
sed 's/^/# /' migrc-command.out
report "the program passes with migrc on" $status "exit status $status, see above"
[ "$(count ptes)" -gt "$before" ]
report "flushes were deferred" $? "no flush was deferred, so this tested nothing"
echo 0 >$migrc/enabled
[ "$(cat $migrc/quarantined_bytes)" -eq 0 ]
report "disabling migrc empties the quarantine" $? "$(cat $migrc/quarantined_bytes) bytes are left"
for file in "$migrc"/counters/*; do
	echo "# ${file##*/} $(cat "$file")"
done
[ "$(cat $debug/violations)" = 0 ]
report "the checker has reported nothing since boot" $? "$(cat $debug/violations) violations"
exit $failed
