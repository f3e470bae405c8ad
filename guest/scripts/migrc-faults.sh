#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Inject one fault after the other into migrc and print KTAP. With the fault each TEST that is named for it must read stale
# data, and the kernel's checker must report a violation. Without the fault the test must pass, and the checker must report
# nothing.
#
#   migrc-faults.sh ROUNDS PROGRAM DIR FAULT=TEST[,TEST]...
#
# ROUNDS: the test must read stale data within that many. PROGRAM: stale_tlb. DIR: on tmpfs, for files. FAULT: a word of
# migrc's `fault_inject`. A TEST with ~ before it reads stale data too rarely: only the checker must detect the fault. Of a
# TEST with ! before it the checker sees nothing, because nothing is done to a PTE: only the test must detect the fault.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
rounds=$1 program=$2 dir=$3
shift 3
migrc=/sys/kernel/mm/migration/migrc
debug=/sys/kernel/debug/migrc
# Rounds that must pass without the fault.
clean_rounds=20
# Rounds of a test with ~: so many, then as many again until the checker reports something, at most six times.
checker_rounds=10

violations() {
	cat $debug/violations
}

# run_test TEST ROUNDS [OPTION]: returns its status; $reason explains a status that is not 0.
run_test() {
	test=$1 count=$2
	shift 2
	"$program" --machine --dir "$dir" --test "$test" --rounds "$count" "$@" >stale_tlb.json 2>&1
	status=$?
	sed 's/^/# /' stale_tlb.json
	reason=$(sed -n 's/.*"reason": "\(.*\)"}$/\1/p' stale_tlb.json)
	[ -n "$reason" ] || reason=$(tail -n 1 stale_tlb.json)
	return $status
}

clear_fault() {
	echo >$debug/fault_inject
	echo 1 >$migrc/drain
}

# one_case FAULT TEST
one_case() {
	checker_only=${2%%[!~]*}
	test_only=${2%%[!!]*}
	set -- "$1" "${2#[~!]}"
	count=$rounds
	[ -z "$checker_only" ] || count=$checker_rounds
	before=$(violations)
	# If the kernel rejects the word, it injects no fault, the test reads no stale data and this fails.
	echo "$1" >$debug/fault_inject
	for _ in 1 2 3 4 5 6; do
		run_test "$2" "$count" --until-stale
		status=$?
		after=$(violations)
		[ -n "$checker_only" ] && [ "$after" -eq "$before" ] && [ $status -ne 4 ] || break
	done
	clear_fault
	if [ $status -eq 4 ]; then
		[ -n "$checker_only" ] || skip "$1: $2 reads stale data" "$reason"
		[ -n "$test_only" ] || skip "$1: the checker reports $2" "$reason"
		skip "$1: $2 passes without the fault" "$reason"
		return
	fi
	[ -n "$checker_only" ] || report "$1: $2 reads stale data" $status "$reason"
	if [ -z "$test_only" ]; then
		[ "$after" -gt "$before" ]
		report "$1: the checker reports $2" $? "no violation in addition to $before"
	fi
	before=$(violations)
	run_test "$2" $clean_rounds
	status=$?
	[ $status -ne 0 ] || [ "$(violations)" -eq "$before" ] || reason="$(($(violations) - before)) violations"
	[ $status -eq 0 ] && [ "$(violations)" -eq "$before" ]
	report "$1: $2 passes without the fault" $? "$reason"
}

total=1
for pair; do
	for test in $(echo "${pair#*=}" | tr , ' '); do
		case $test in
		[~!]*) total=$((total + 2)) ;;
		*) total=$((total + 3)) ;;
		esac
	done
done
echo "KTAP version 1"
echo "1..$total"
clear_fault
run_test control 10 --until-stale
report "control reads stale data" $? "$reason"
for pair; do
	for test in $(echo "${pair#*=}" | tr , ' '); do
		one_case "${pair%%=*}" "$test"
	done
done
exit $failed
