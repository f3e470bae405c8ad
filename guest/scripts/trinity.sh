#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Fuzz system calls by trinity as the user nobody. Prints KTAP. The kernel's log tells whether the kernel survived; the
# tests here are that trinity made calls, and that each of its processes can be killed.
#
#   trinity.sh TRINITY SECONDS
set -u

# shellcheck source=guest/scripts/ktap.sh
. "$(dirname "$0")/ktap.sh"
trinity=$1
seconds=$2
nobody=65534

# A copy, because nobody may have no access to where it is.
dir=$(mktemp -d) || exit 4
mount -t tmpfs -o mode=1777,size=64M trinity "$dir" && cp "$trinity" "$dir/trinity" && cd "$dir" || exit 4

# Its calls must not take all memory of the guest.
group=/sys/fs/cgroup
[ -e $group/cgroup.procs ] || mount -t cgroup2 cgroup2 $group || exit 4
echo +memory >$group/cgroup.subtree_control
mkdir -p $group/trinity && echo 512M >$group/trinity/memory.max || exit 4

as_nobody() {
	(
		echo 0 >$group/trinity/cgroup.procs
		exec setpriv --reuid $nobody --regid $nobody --clear-groups "$@"
	)
}

# trinity ends with a line "Ran 1234 syscalls. Successes: 400  Failures: 834".
calls() {
	sed -n 's/.*Ran \([0-9]*\) syscalls.*/\1/p' output | awk '{ sum += $1 } END { print sum + 0 }'
}

# Nobody may reap what has ended (Z).
all_ended() {
	tries=0
	while pgrep -u $nobody -r D,R,S,T,t,I >/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 60 ] || return 1
		sleep 1
	done
}

# trinity may end before its time, because its calls write to its own memory, too.
end=$(($(date +%s) + seconds))
while left=$((end - $(date +%s))) && [ $left -gt 0 ]; do
	as_nobody timeout -s INT -k 60 "$left" ./trinity -q -a 64 -C 4 -l off --disable-fds=sockets -N 1000000000
	as_nobody kill -KILL -1
done >output 2>&1
tail -n 20 output >&2
calls=$(calls)

echo "KTAP version 1"
echo "1..2"
echo "# $calls system calls"
[ "$calls" -gt 0 ]
report "system calls" $? "trinity made none: $(tail -n 1 output)"
all_ended
report "no process is left" $? "$(ps -u $nobody -o pid=,stat=,wchan=,args= | head -n 1)"
exit $failed
