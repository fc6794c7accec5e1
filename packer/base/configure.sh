#!/bin/sh
# Makes the freshly unpacked system boot and let Packer in. $1: its root, $2: folder with our inputs. SYSTEM is its name,
# ROOT_UUID that of the root file system.
set -eu
root=$1
input=$2

chroot "$root" useradd --create-home --shell /bin/bash lab

# The node kit, with its digest as what brings it to other hosts writes it (nodes/kit_delivery.py).
mkdir -p "$root/opt/overlaylab"
tar -xzf "$input/kit.tar.gz" -C "$root/opt/overlaylab" --no-same-owner
cp "$input/kit.digest" "$root/opt/overlaylab/"

echo "$SYSTEM" >"$root/etc/hostname"
printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n::1\tlocalhost\n' "$SYSTEM" >"$root/etc/hosts"

# Made when the package was installed: a node makes its own (scripts/keys.sh).
rm -f "$root"/etc/ssh/ssh_host_*

# The same scripts that Packer runs in a cloud image; here so that its boot is quick already.
for script in access keys network services; do
    chroot "$root" sh -s <"$input/$script.sh"
done

kernel=$(basename "$root"/boot/vmlinuz-*)
initrd=$(basename "$root"/boot/initrd.img-*)
# Packed anew, as cpio notes when and under which inode each file came to lie there.
# shellcheck disable=SC2016  # expanded in there
chroot "$root" sh -euc '
    work=$(mktemp -d)
    cd "$work"
    gzip -dc "$1" | cpio --quiet --extract
    find . -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    find . | LC_ALL=C sort | cpio --quiet --reproducible --create --format=newc --owner=0:0 | gzip -n9 >"$1"
    rm -r "$work"
' sh "/boot/$initrd"
mkdir -p "$root/boot/grub"
cat >"$root/boot/grub/grub.cfg" <<GRUB
set timeout=0
menuentry "$kernel" {
    linux /boot/$kernel root=UUID=$ROOT_UUID rootfstype=ext4 rootflags=noatime rw net.ifnames=0 apparmor=0 audit=0 quiet loglevel=3 console=tty0 console=ttyS0
    initrd /boot/$initrd
}
GRUB

# What tells of the builder, and what the next boot makes by itself. An offline lab has no name server, and asking one that is
# not there takes seconds. machine-id is empty, not absent: without a first boot's presets.
# A link would lead out of here.
rm -f "$root/etc/resolv.conf" "$root/etc/machine-id"
: >"$root/etc/resolv.conf"
: >"$root/etc/machine-id"
rm -f "$root/var/lib/dbus/machine-id" "$root/var/lib/systemd/random-seed" "$root/var/cache/ldconfig/aux-cache" "$root"/etc/*-
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/etc/apt/preferences.d/overlaylab
# No mirror: which one it was differs by the builder's machine.
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/*
find "$root/var/log" -type f -delete
