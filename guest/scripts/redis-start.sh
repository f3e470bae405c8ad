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

# fill_redis COMMAND: run the shell command that fills it; status 1 if that fails.
fill_redis() {
	sh -c "$1" >"$dir/fill" 2>&1 && return
	echo "redis-start.sh: redis-benchmark fails: $(tail -n 1 "$dir/fill")" >&2
	exit 1
}
