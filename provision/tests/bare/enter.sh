#!/bin/sh
# Makes a folder the root of this mount namespace and becomes its first process. space.py calls it in namespaces of
# their own (mount, PID, network, UTS, IPC). With chroot(2) instead, the kernel refuses user namespaces
# (user_namespaces(7), EPERM), which mmdebstrap and Electron's sandbox make.
# Usage: enter.sh ROOT COMMAND…
set -eu
PATH=$PATH:/usr/sbin:/sbin
root=$1
shift
mount --bind "$root" "$root"
cd "$root"
mount -t proc -o nosuid,nodev,noexec proc proc
# A fresh one shows the links of this network namespace, not of the one that it was forked from.
mount -t sysfs -o nosuid,nodev,noexec sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount --rbind /dev dev
mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
hostname bare
pivot_root . .
umount -l .
exec "$@"
