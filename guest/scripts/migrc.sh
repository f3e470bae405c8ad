#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# migrc on a kernel that is sound: did anything get deferred while other programs ran, and did the checker see anything
# amiss since the boot? Prints KTAP.
#
#   migrc.sh COMMAND...
#
# COMMAND: what runs meanwhile, with migrc on; what it prints become comments.
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
report "migrc and its checker are there" $? "CONFIG_MIGRC, CONFIG_MIGRC_DEBUG"
echo 1 >$migrc/enabled
before=$(count ptes)
"$@" >migrc-command.out 2>&1
status=$?
sed 's/^/# /' migrc-command.out
report "the program passes with migrc on" $status "it ended with status $status: see above"
[ "$(count ptes)" -gt "$before" ]
report "flushes were deferred" $? "not one: this tested nothing"
echo 0 >$migrc/enabled
[ "$(cat $migrc/quarantined_bytes)" -eq 0 ]
report "switched off, nothing stays in quarantine" $? "$(cat $migrc/quarantined_bytes) bytes do"
for file in "$migrc"/counters/*; do
	echo "# ${file##*/} $(cat "$file")"
done
[ "$(cat $debug/violations)" = 0 ]
report "the checker saw nothing amiss since the boot" $? "$(cat $debug/violations) violations"
exit $failed
