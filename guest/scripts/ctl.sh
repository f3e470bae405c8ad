#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Use the control files by the tool, which needs Python's standard library only. Prints KTAP.
#
#   ctl.sh SRC [PROMTOOL...]
#
# SRC: the directory of the package ferry. PROMTOOL: the command that checks metrics.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
src=$1
shift
work=$(mktemp -d)
migration=/sys/kernel/mm/migration

control() {
	PYTHONPATH=$src python3 -S -m ferry.control "$@"
}

# For sh: is the selected word of a file this one?
selected() {
	grep -q "\[$2\]" "$migration/$1"
}

echo "KTAP version 1"
echo "1..7"
control show --format json >"$work/show" && python3 -m json.tool "$work/show" >/dev/null
report "show prints JSON" $? "show"
control save "$work/saved"
report "save" $? "save"
control set migrator=kernel reasons/compaction/migrator=off && selected migrator kernel && selected reasons/compaction/migrator off
report "set changes two settings" $? "$(cat $migration/migrator)"
control set migrator=off reasons/compaction/batch_max_us=-1 2>"$work/error"
[ $? -eq 2 ] && selected migrator kernel
report "set writes all or none" $? "$(cat "$work/error")"
control restore "$work/saved" && control save "$work/again" && [ "$(grep -v '^#' "$work/saved")" = "$(grep -v '^#' "$work/again")" ]
report "restore undoes all" $? "see the console"
control metrics >"$work/metrics" && grep -q '^ferry_moved_pages_total{reason="compaction"} ' "$work/metrics"
report "metrics count by reason" $? "$(grep moved_pages "$work/metrics")"
if [ $# -gt 0 ]; then
	"$@" check metrics <"$work/metrics" >"$work/checked" 2>&1
	report "promtool accepts the metrics" $? "$(head -n 3 "$work/checked")"
else
	skip "promtool accepts the metrics" "only if the suite is named"
fi
exit $failed
