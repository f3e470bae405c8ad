#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Breaks migrc on purpose, one rule after the other: prints KTAP. Of each mutation and each event that must show it, the
# test must see stale data, the checker of the kernel must be loud, and both must be quiet again once it is mended.
#
#   migrc-faults.sh ROUNDS PROGRAM DIR MUTATION=EVENT[,EVENT]...
#
# ROUNDS: until which stale data must have been seen. DIR: on tmpfs, for files. MUTATION: a word of migrc's `fault_inject`.
# EVENT with ~ before it: only the checker must see it, since what it breaks shows too seldom.
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
rounds=$1 program=$2 dir=$3
shift 3
migrc=/sys/kernel/mm/migration/migrc
debug=/sys/kernel/debug/migrc
# That must pass after each mutation.
again=20
# Enough for the checker, of events that show it too seldom.
few=60

violations() {
	cat $debug/violations
}

# play EVENT ROUNDS [OPTION]: its status; `said` is why it is not 0.
play() {
	event=$1 count=$2
	shift 2
	"$program" --machine --dir "$dir" --test "$event" --rounds "$count" "$@" >program.json 2>&1
	status=$?
	sed 's/^/# /' program.json
	said=$(sed -n 's/.*"reason": "\(.*\)"}$/\1/p' program.json)
	[ -n "$said" ] || said=$(tail -n 1 program.json)
	return $status
}

mend() {
	echo >$debug/fault_inject
	echo 1 >$migrc/drain
}

# one_case MUTATION EVENT
one_case() {
	seldom=${2%%[!~]*}
	set -- "$1" "${2#"~"}"
	most=$rounds
	[ -z "$seldom" ] || most=$few
	before=$(violations)
	# What cannot be set breaks nothing: the event passes, which is the failure.
	echo "$1" >$debug/fault_inject
	play "$2" "$most" --until-stale
	status=$?
	after=$(violations)
	mend
	if [ $status -eq 4 ]; then
		[ -n "$seldom" ] || skip "$1: $2 sees it" "$said"
		skip "$1: the checker sees it in $2" "$said"
		skip "$1: $2 passes once it is mended" "$said"
		return
	fi
	[ -n "$seldom" ] || report "$1: $2 sees it" $status "$said"
	[ "$after" -gt "$before" ]
	report "$1: the checker sees it in $2" $? "no violation in addition to $before"
	before=$(violations)
	play "$2" $again
	status=$?
	[ $status -ne 0 ] || [ "$(violations)" -eq "$before" ] || said="$(($(violations) - before)) violations"
	[ $status -eq 0 ] && [ "$(violations)" -eq "$before" ]
	report "$1: $2 passes once it is mended" $? "$said"
}

total=1
for pair; do
	for event in $(echo "${pair#*=}" | tr , ' '); do
		case $event in
		"~"*) total=$((total + 2)) ;;
		*) total=$((total + 3)) ;;
		esac
	done
done
echo "KTAP version 1"
echo "1..$total"
mend
play control 10 --until-stale
report "a store that never happens is seen" $? "$said"
for pair; do
	for event in $(echo "${pair#*=}" | tr , ' '); do
		one_case "${pair%%=*}" "$event"
	done
done
exit $failed
