#!/bin/sh
# Makes a folder the root of this mount namespace and becomes its first process. bare_space.py calls it in namespaces of
# their own (mount, PID, network, UTS, IPC, control groups). With chroot(2) instead, the kernel refuses user namespaces
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
# Mounted anew, each hierarchy begins at this namespace's own group (cgroup_namespaces(7)).
grep -q '^[^ ]* /sys/fs/cgroup cgroup2 ' /proc/mounts || mount -t tmpfs -o mode=0755 tmpfs sys/fs/cgroup
hierarchies=$(cat /proc/mounts) # as they are now: the loop adds to them
while read -r _ point type options _; do
    case $type in
        cgroup) controllers=$(printf %s "$options" | sed -E 's/\b(rw|ro|relatime|noatime|nosuid|nodev|noexec),?//g; s/,$//') ;;
        cgroup2) controllers=rw ;;
        *) continue ;;
    esac
    mkdir -p ".$point"
    mountpoint -q ".$point" || mount -t "$type" -o "$controllers" "$type" ".$point"
done <<MOUNTS
$hierarchies
MOUNTS
mount --rbind /dev dev
# A node of its own: setup gives it to a group by number, which is another group outside. Its file stays: libvirt moves
# the mount, which mount(2) refuses (ENOENT) for a file that is gone.
if [ -c dev/kvm ]; then
    rm -f .kvm # the root of a bare machine in a bare machine has one
    mknod -m 0600 .kvm c "$((0x$(stat -c %t dev/kvm)))" "$((0x$(stat -c %T dev/kvm)))"
    mount --bind .kvm dev/kvm
fi
mount -t tmpfs -o mode=0755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
hostname bare
pivot_root . .
umount -l .
exec "$@"
