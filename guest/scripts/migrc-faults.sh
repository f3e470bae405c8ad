#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Injects one fault after the other into migrc and prints KTAP. With the fault, each TEST that is named for it must see stale
# data and the kernel's checker must report a violation; without the fault, the test must pass and the checker be silent.
#
#   migrc-faults.sh ROUNDS PROGRAM DIR FAULT=TEST[,TEST]...
#
# ROUNDS: the test must see stale data within that many. PROGRAM: stale_tlb. DIR: on tmpfs, for files. FAULT: a word of
# migrc's `fault_inject`. A TEST with ~ before it sees stale data too rarely: there only the checker must report.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
rounds=$1 program=$2 dir=$3
shift 3
migrc=/sys/kernel/mm/migration/migrc
debug=/sys/kernel/debug/migrc
# Rounds that must pass after each fault.
again=20
# Rounds for a test with ~: enough for the checker.
few=60

violations() {
	cat $debug/violations
}

# run_test TEST ROUNDS [OPTION]: its status; `said` is why it is not 0.
run_test() {
	test=$1 count=$2
	shift 2
	"$program" --machine --dir "$dir" --test "$test" --rounds "$count" "$@" >stale_tlb.json 2>&1
	status=$?
	sed 's/^/# /' stale_tlb.json
	said=$(sed -n 's/.*"reason": "\(.*\)"}$/\1/p' stale_tlb.json)
	[ -n "$said" ] || said=$(tail -n 1 stale_tlb.json)
	return $status
}

clear_fault() {
	echo >$debug/fault_inject
	echo 1 >$migrc/drain
}

# one_case FAULT TEST
one_case() {
	seldom=${2%%[!~]*}
	set -- "$1" "${2#"~"}"
	most=$rounds
	[ -z "$seldom" ] || most=$few
	before=$(violations)
	# If the word is not accepted, no fault is injected: the test passes, which is the failure.
	echo "$1" >$debug/fault_inject
	run_test "$2" "$most" --until-stale
	status=$?
	after=$(violations)
	clear_fault
	if [ $status -eq 4 ]; then
		[ -n "$seldom" ] || skip "$1: $2 sees it" "$said"
		skip "$1: the checker sees it in $2" "$said"
		skip "$1: $2 passes without the fault" "$said"
		return
	fi
	[ -n "$seldom" ] || report "$1: $2 sees it" $status "$said"
	[ "$after" -gt "$before" ]
	report "$1: the checker sees it in $2" $? "no violation in addition to $before"
	before=$(violations)
	run_test "$2" $again
	status=$?
	[ $status -ne 0 ] || [ "$(violations)" -eq "$before" ] || said="$(($(violations) - before)) violations"
	[ $status -eq 0 ] && [ "$(violations)" -eq "$before" ]
	report "$1: $2 passes without the fault" $? "$said"
}

total=1
for pair; do
	for test in $(echo "${pair#*=}" | tr , ' '); do
		case $test in
		"~"*) total=$((total + 2)) ;;
		*) total=$((total + 3)) ;;
		esac
	done
done
echo "KTAP version 1"
echo "1..$total"
clear_fault
run_test control 10 --until-stale
report "a store that never happens is seen" $? "$said"
for pair; do
	for test in $(echo "${pair#*=}" | tr , ' '); do
		one_case "${pair%%=*}" "$test"
	done
done
exit $failed
