#!/bin/sh
# Makes the freshly unpacked system boot and let Packer in. $1: its root, $2: folder with our inputs,
# $3: UUID of the root file system.
set -eu
root=$1
input=$2
uuid=$3

chroot "$root" useradd --create-home --shell /bin/bash lab

# The node kit, with its digest as what brings it to other hosts writes it (nodes/kit_delivery.py).
mkdir -p "$root/opt/overlaylab" "$root/usr/lib/overlaylab"
tar -xzf "$input/kit.tar.gz" -C "$root/opt/overlaylab" --no-same-owner
cp "$input/kit.digest" "$root/opt/overlaylab/"

echo debian >"$root/etc/hostname"
printf '127.0.0.1\tlocalhost\n127.0.1.1\tdebian\n::1\tlocalhost\n' >"$root/etc/hosts"

# Made when the package was installed: a node makes its own (scripts/keys.sh).
rm -f "$root"/etc/ssh/ssh_host_*

# The same scripts that Packer runs in a cloud image; here so that its boot is quick already.
for script in access keys network services; do
    chroot "$root" sh -s <"$input/$script.sh"
done

kernel=$(basename "$root"/boot/vmlinuz-*)
initrd=$(basename "$root"/boot/initrd.img-*)
mkdir -p "$root/boot/grub"
cat >"$root/boot/grub/grub.cfg" <<GRUB
set timeout=0
menuentry "$kernel" {
    linux /boot/$kernel root=UUID=$uuid rootfstype=ext4 rootflags=noatime rw net.ifnames=0 apparmor=0 audit=0 quiet loglevel=3 console=tty0 console=ttyS0
    initrd /boot/$initrd
}
GRUB
