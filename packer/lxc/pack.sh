#!/bin/sh
# Packs the root file system of a disk as the rootfs.tar.gz of an lxc box. As root, for owners, capabilities and
# the mount; in a mount namespace of its own (unshare --mount), which takes mount and loop device with it
# however this ends.
# Usage: pack.sh DISK OFFSET WORK OUT; WORK is an empty folder; OUT is there already and keeps its owner.
set -eu
umask 022
disk=$1
offset=$2
work=$3
out=$4
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

mount -t tmpfs -o mode=0700 tmpfs "$work"
mkdir -p "$work/image/rootfs" "$work/own"
mount -o ro,loop,offset="$offset" "$disk" "$work/image/rootfs"
# Copied, so that its files are root's, whoever's the checkout is. Only modes x and not x are meant.
cp -R "$here/rootfs" "$work/own/rootfs"
chmod -R u=rwX,go=rX "$work/own/rootfs"

# Kernel, its modules and the boot loader are for a VM; the rest differs by the files in rootfs/ alone.
# Of two members with the same name, unpacking leaves the later.
# A pipe would hide tar's failure from sh.
mkfifo "$work/pipe"
gzip -1 <"$work/pipe" >"$out" &
tar --create --file "$work/pipe" --numeric-owner --xattrs --xattrs-include='*' --one-file-system \
    --anchored --exclude='./rootfs/boot/*' --exclude='./rootfs/usr/lib/modules/*' --exclude='./rootfs/lost+found' \
    --directory "$work/image" ./rootfs --directory "$work/own" ./rootfs
wait $!
