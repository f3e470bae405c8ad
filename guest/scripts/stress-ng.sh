#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run stress-ng, which verifies what it does, with each set of options in turn. Prints KTAP.
#
#   stress-ng.sh STRESS_NG SECONDS NAME=OPTIONS...
#
# STRESS_NG is a shell command. A stressor that is not implemented, lacks resources, or did nothing is skipped.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
stress_ng=$1
seconds=$2
shift 2

# The kernel merges what a stressor declares mergeable.
echo 1 >/sys/kernel/mm/ksm/run
dir=$(mktemp -d) || exit 4
mount -t tmpfs stress-ng "$dir" || exit 4
trap 'umount "$dir"; rmdir "$dir"; echo 0 >/sys/kernel/mm/ksm/run' EXIT

# Whether a line of the metrics has operations: "stress-ng: metrc: [73] NAME OPERATIONS ...".
worked() {
	awk '$2 == "metrc:" && $5 ~ /^[0-9]+$/ && $5 > 0 { done = 1 } END { exit !done }' "$1"
}

echo "KTAP version 1"
echo "1..$#"
for case in "$@"; do
	name=${case%%=*}
	# shellcheck disable=SC2086 # words
	$stress_ng ${case#*=} --verify --timeout "${seconds}s" --metrics-brief --oomable --temp-path "$dir" \
		>"$dir/output" 2>&1
	status=$?
	cat "$dir/output" >&2
	# 3: no resources, 4: not implemented.
	if [ $status -eq 3 ] || [ $status -eq 4 ]; then
		skip "$name" "stress-ng's exit status $status"
	elif [ $status -eq 0 ] && ! worked "$dir/output"; then
		skip "$name" "it did nothing: $(tail -n 1 "$dir/output")"
	else
		report "$name" $status "exit status $status: $(grep -m 1 -E 'fail:|error:' "$dir/output")"
	fi
done
exit $failed
