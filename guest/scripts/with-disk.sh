#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Run a command while a file system in memory is mounted, by way of a loop device; a leading "@" of an argument stands for
# its directory.
# usage: [MKFS=COMMAND] with-disk.sh MEGABYTES COMMAND [ARGUMENT]...
# MKFS: the command that makes the file system, before the path of its image; without it that is ext4.
# Exit status: the command's, or 4 if such a file system cannot be made here.
set -u

if [ $# -lt 2 ]; then
	echo "usage: with-disk.sh MEGABYTES COMMAND [ARGUMENT]..." >&2
	exit 2
fi
megabytes=$1
shift
PATH=$PATH:/usr/sbin:/sbin
dir=$(mktemp -d) || exit 4
trap 'umount "$dir/disk" 2>/dev/null; umount "$dir"; rmdir "$dir"' EXIT

# A guest without programs of the host has busybox, which makes ext2; the ext4 driver mounts that, too.
make_disk() {
	if [ -n "${MKFS-}" ]; then
		eval "$MKFS \"\$1\"" >/dev/null
	elif command -v mkfs.ext4 >/dev/null; then
		mkfs.ext4 -q -E nodiscard "$1"
	else
		mke2fs -F "$1" >/dev/null
	fi
}

# The image is on a tmpfs of its own, because /tmp may be on the host, across 9p. It is allocated as a whole and stays so
# (nodiscard): if it grew, the growth would look like a leak. By writing, since fallocate(2) on tmpfs fails when reclaim
# wants its pages.
if ! { mount -t tmpfs -o mode=0700 ferry "$dir" && mkdir "$dir/disk" &&
       dd if=/dev/zero of="$dir/image" bs=1M count="$megabytes" 2>/dev/null && make_disk "$dir/image" &&
       mount -o loop "$dir/image" "$dir/disk"; }; then
	echo "with-disk.sh: no such file system on a loop device here" >&2
	exit 4
fi
i=$#
while [ "$i" -gt 0 ]; do
	argument=$1
	shift
	case $argument in
	@*) argument=$dir/disk${argument#@} ;;
	esac
	set -- "$@" "$argument"
	i=$((i - 1))
done
"$@"
