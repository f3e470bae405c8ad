#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Start a redis-server with groups of keys in it, and run a command with its process ID and the command that loads one
# group, which becomes the hot set.
#
#   redis-tier.sh SERVER BENCHMARK GROUPS KEYS BYTES REQUESTS COMMAND...
#
# SERVER and BENCHMARK are shell commands. Each group has KEYS keys, and values of BYTES each. The load is one client
# that reads REQUESTS random keys of the group with the number $SHIFT, modulo GROUPS, one after the other, so that each
# request that waits counts. COMMAND gets the options --pid and --command. Exit status: COMMAND's, or 1 if the server
# does not start.
set -u

# shellcheck source=guest/scripts/redis-start.sh
. "$(dirname "$0")/redis-start.sh"

server=$1
benchmark=$2
groups=$3
keys=$4
bytes=$5
requests=$6
shift 6

start_redis "$server"
prefixes=
group=0
while [ "$group" -lt "$groups" ]; do
	prefixes="$prefixes key:$group:"
	group=$((group + 1))
done
# shellcheck disable=SC2086 # words
fill_redis "$benchmark" "$keys" "$bytes" $prefixes
# shellcheck disable=SC2016 # COMMAND sets SHIFT.
"$@" --pid "$pid" --command "$benchmark -s $socket -n $requests -r $keys -c 1 \
	GET key:\$((SHIFT % $groups)):__rand_int__"
