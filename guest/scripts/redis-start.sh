# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# To be sourced: a redis-server that ends with the script.

# start_redis SERVER: start it. Sets $pid, $dir (its own, removed at the end) and $socket. The script ends with status 1
# if the server does not start.
start_redis() {
	dir=$(mktemp -d) || exit 1
	trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
	socket=$dir/socket
	# No network, nothing saved; base pages, which are what is measured.
	sh -c "exec $1 --port 0 --unixsocket $socket --save '' --appendonly no --dir $dir --disable-thp yes" \
		>"$dir/log" 2>&1 &
	pid=$!
	tries=0
	while ! [ -S "$socket" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
			echo "redis-start.sh: redis-server does not start: $(tail -n 1 "$dir/log")" >&2
			exit 1
		fi
		sleep 0.1
	done
}

# fill_redis BENCHMARK KEYS BYTES PREFIX...: make KEYS keys of each prefix, with values of BYTES each. Their numbers
# have 12 digits, as redis-benchmark's __rand_int__ has. BENCHMARK is a shell command. The script ends with status 1 if
# the server then has another number of keys.
fill_redis() {
	benchmark=$1
	keys=$2
	bytes=$3
	shift 3
	# The server makes the keys itself: by requests this would take minutes on an emulated machine, and requests for
	# random keys miss a third of them. redis-benchmark does not tell an error of the server, so the server's log does.
	make="local value = string.rep(\"x\", $bytes)
for _, prefix in ipairs(ARGV) do
	for key = 0, $keys - 1 do
		redis.call(\"SET\", prefix .. string.format(\"%012d\", key), value)
	end
end
redis.log(redis.LOG_WARNING, \"keys made: \" .. redis.call(\"DBSIZE\"))"
	sh -c "$benchmark -s $socket -n 1 -c 1 -q EVAL '$make' 0 $*" >"$dir/fill" 2>&1
	grep -q "keys made: $((keys * $#))\$" "$dir/log" && return
	echo "redis-start.sh: the server has not $((keys * $#)) keys: $(tail -n 1 "$dir/fill"); $(tail -n 1 "$dir/log")" >&2
	exit 1
}
