#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Start a redis-server with keys in it, and run a command with its process ID and the command that loads it.
#
#   redis.sh SERVER BENCHMARK KEYS BYTES REQUESTS COMMAND...
#
# SERVER and BENCHMARK are shell commands. Values have BYTES each. The load is one client that writes REQUESTS random
# keys, one after the other, so that each request that waits counts. COMMAND gets the options --pid and --command. Exit
# status: COMMAND's, or 1 if the server does not start.
set -u

# shellcheck source=guest/scripts/redis-start.sh
. "$(dirname "$0")/redis-start.sh"

server=$1
benchmark=$2
keys=$3
bytes=$4
requests=$5
shift 5

start_redis "$server"
fill_redis "$benchmark" "$keys" "$bytes" key:
"$@" --pid "$pid" --command "$benchmark -s $socket -t set -n $requests -r $keys -d $bytes -c 1"
