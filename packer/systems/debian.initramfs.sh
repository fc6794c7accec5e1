#!/bin/sh
# Before the kernel is installed: an initramfs with the disk's driver and nothing else.
# Under emulation every driver that udev tries costs boot time.
set -eu
root=$1
mkdir -p "$root/etc/initramfs-tools/conf.d" "$root/usr/share/initramfs-tools/modules.d"
cat >"$root/etc/initramfs-tools/conf.d/overlaylab" <<'CONF'
MODULES=list
COMPRESS=zstd
RESUME=none
FSTYPE=ext4
CONF
printf '%s\n' virtio_pci virtio_blk ext4 >"$root/usr/share/initramfs-tools/modules.d/overlaylab"
