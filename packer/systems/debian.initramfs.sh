#!/bin/sh
# Before the kernel is installed: what its initramfs is made of. $1: the root.
# tiny-initramfs loads these modules in this order and mounts the root; under emulation initramfs-tools
# takes seven seconds for that.
set -eu
mkdir -p "$1/etc/tiny-initramfs"
cat >"$1/etc/tiny-initramfs/tiny-initramfs.conf" <<'CONF'
AUTO_MODULES=no
MICROCODE=no
INCLUDE_MODULES="virtio_pci virtio_blk crc32c_generic ext4"
CONF
