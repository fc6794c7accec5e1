#!/bin/sh
# Turns a folder with a root file system into a disk that boots by BIOS. $1: the folder, $2: the disk. ROOT_UUID: of the file
# system, HASH_SEED: a UUID by which it orders folders; ROOT_LABEL and GRUB_MODULES: other than a node's.
set -eu
root=$1
disk=$2
megabytes=8192 # of which only what is written takes room

truncate -s ${megabytes}M "$disk"
echo 'start=2048, type=83, bootable' | sfdisk --quiet "$disk"
# All tables are initialised now: lazily, the nodes would do it while they are measured.
mkfs.ext4 -q -F -L "${ROOT_LABEL:-overlaylab}" -U "$ROOT_UUID" -i 32768 -J size=32 -m 1 \
    -E "offset=1048576,hash_seed=$HASH_SEED,lazy_itable_init=0,lazy_journal_init=0,nodiscard" \
    -d "$root" "$disk" $((megabytes - 1))M

# GRUB by hand: grub-install wants a block device, which an ordinary user has not. boot.img loads what
# follows it, and core.img finds its configuration on the first partition.
modules=/usr/lib/grub/i386-pc
# shellcheck disable=SC2086  # a list of words
grub-mkimage -O i386-pc -d "$modules" -p '(hd0,msdos1)/boot/grub' -o "$disk.core" \
    biosdisk part_msdos ext2 linux normal ${GRUB_MODULES:-}
dd if="$modules/boot.img" of="$disk" bs=440 count=1 conv=notrunc status=none
dd if="$disk.core" of="$disk" bs=512 seek=1 conv=notrunc status=none
rm "$disk.core"
