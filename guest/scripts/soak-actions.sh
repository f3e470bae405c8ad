# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# shellcheck disable=SC2154 # the variables of the next lines
# To be sourced by soak.sh: what happens to the machine while memory moves. Wants $work, a tmpfs; $cgroup, where the
# second version is mounted; $watch, memmap_watch.ko or -. A wrong byte is a line of $work/wrong.

# repeat ACTION: again and again while $work/busy exists; counts in $work/ACTION how often it succeeds.
repeat() {
	successes=0
	while [ -e "$work/busy" ]; do
		! "$1" || successes=$((successes + 1))
		echo $successes >"$work/$1"
		sleep 1
	done
}

# Every CPU but the first one goes offline, then online.
cpu_hotplug() {
	for cpu in /sys/devices/system/cpu/cpu[1-9]*; do
		echo 0 >"$cpu/online" || return 1
		sleep 0.3
		echo 1 >"$cpu/online" || return 1
	done
}

# Sets $block to a memory block that goes offline. It comes back as movable memory, so that it can do so again.
find_block() {
	for block in /sys/devices/system/node/node1/memory[0-9]* /sys/devices/system/node/node0/memory[0-9]*; do
		if echo offline >"$block/state"; then
			echo online_movable >"$block/state"
			return
		fi
	done
	block=
} 2>/dev/null

# The kernel tries until a signal comes, and the movers bring new pages to the block.
memory_hotplug() {
	[ -n "$block" ] || return 1
	timeout 30 sh -c "echo offline >$block/state" 2>/dev/null
	[ "$(cat "$block/state")" = offline ] || return 1
	sleep 0.5
	echo online_movable >"$block/state"
}

# A group writes more than it may have in memory. It is removed before its file is, and so are its last charges.
cgroup_removal() {
	bytes=12582912
	rmdir "$cgroup/pressure" 2>/dev/null
	mkdir "$cgroup/pressure" && echo 8M >"$cgroup/pressure/memory.max" || return 1
	(
		echo 0 >"$cgroup/pressure/cgroup.procs" || exit 1
		yes "$successes" | head -c $bytes >"$work/file"
	)
	written=$?
	if ! rmdir "$cgroup/pressure" || [ $written -ne 0 ]; then
		rm -f "$work/file"
		return 1
	fi
	yes "$successes" | head -c $bytes | cmp - "$work/file" || echo "a file of a removed group" >>"$work/wrong"
	rm "$work/file"
}

# Reclaim swaps out memory of the stressors' group.
swap_out() {
	[ -e "$cgroup/stressors" ] && echo 4M >"$cgroup/stressors/memory.reclaim"
} 2>/dev/null

# Device memory comes and goes, with every layout of its struct pages.
memmap_rebind() {
	[ "$watch" != - ] || return 1
	dmesg -c >/dev/null
	for layout in type=private "type=generic order=0" "type=generic order=9"; do
		# shellcheck disable=SC2086 # two words
		insmod "$watch" $layout gib=1 rounds=1 faults=1
		rmmod memmap_watch
	done
	[ "$(dmesg | grep -c '"event": "remap"')" -eq 3 ]
}
