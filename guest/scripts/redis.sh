#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Start a redis-server with keys in it, and run a command with its process ID and the command that loads it.
#
#   redis.sh SERVER BENCHMARK KEYS BYTES REQUESTS COMMAND...
#
# SERVER and BENCHMARK are shell commands. Values have BYTES each. The load is one client that writes REQUESTS random
# keys, one after the other, so that each request that waits counts. COMMAND gets the options --pid and --command. Exit status: COMMAND's, or 4 if
# the server does not start.
set -u

server=$1
benchmark=$2
keys=$3
bytes=$4
requests=$5
shift 5

dir=$(mktemp -d) || exit 4
trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
socket=$dir/socket
# No network, nothing saved; base pages, which are what is measured.
sh -c "exec $server --port 0 --unixsocket $socket --save '' --appendonly no --dir $dir --disable-thp yes" >"$dir/log" 2>&1 &
pid=$!
tries=0
while ! [ -S "$socket" ]; do
	tries=$((tries + 1))
	if [ $tries -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
		echo "redis.sh: redis-server does not start: $(tail -n 1 "$dir/log")" >&2
		exit 4
	fi
	sleep 0.1
done
sh -c "$benchmark -s $socket -t set -n $keys -r $keys -d $bytes -c 8 -q" >"$dir/fill" 2>&1 || {
	echo "redis.sh: redis-benchmark fails: $(tail -n 1 "$dir/fill")" >&2
	exit 4
}
"$@" --pid "$pid" --command "$benchmark -s $socket -t set -n $requests -r $keys -d $bytes -c 1"
