#!/bin/sh
# Before the kernel is installed: what its initramfs is made of. $1: the root.
# tiny-initramfs loads these modules in this order and mounts the root; under emulation initramfs-tools
# takes seven seconds for that.
#
# virtio_blk is libvirt's disk; virtio_scsi with sd_mod is VirtualBox's, which has no virtio disk. Its IDE controller
# would do as well, but then ata_piix would probe the one that QEMU's machine `pc` always has. This kernel has no ahci.
set -eu
mkdir -p "$1/etc/tiny-initramfs"
cat >"$1/etc/tiny-initramfs/tiny-initramfs.conf" <<'CONF'
AUTO_MODULES=no
MICROCODE=no
INCLUDE_MODULES="virtio_pci virtio_blk virtio_scsi sd_mod crc32c_generic ext4"
CONF
