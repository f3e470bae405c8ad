# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Results in KTAP, to be sourced. The script should exit with $failed.
test_number=0
failed=0

# report NAME STATUS REASON: passed if the status is 0; otherwise the reason is printed.
report() {
	test_number=$((test_number + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $test_number $1"
	else
		echo "not ok $test_number $1 # $3"
		failed=1
	fi
}

# skip NAME REASON
skip() {
	test_number=$((test_number + 1))
	echo "ok $test_number $1 # SKIP $2"
}
