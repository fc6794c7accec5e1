#!/bin/sh
# Makes a bootable Debian disk from packages alone.
# Usage: debian.base.sh FOLDER PUBLIC_KEY_FILE; leaves FOLDER/base.raw.
# As root it needs nothing else; as an ordinary user it works in a user namespace (subuid, subgid).
set -eu

folder=$1
key=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
suite=bookworm
megabytes=8192
# mkfs, grub-mkimage and sfdisk lie there, and an ordinary user's PATH does not always say so.
PATH=$PATH:/usr/sbin:/sbin
export PATH

if [ "$(id -u)" = 0 ]; then
    mode=root
    inside() { "$@"; }
else
    mode=unshare
    inside() { mmdebstrap --unshare-helper "$@"; }
    # In the namespace, root is one of our subordinate ids: it must be able to write here.
    chmod 777 "$folder"
fi

rm -rf "$folder/input"
mkdir "$folder/input"
cp "$key" "$folder/input/authorized_keys"
cp "$here/../scripts/network.sh" "$here/../scripts/services.sh" "$here/../scripts/access.sh" "$folder/input/"
chmod -R a+rX "$folder/input"

packages=$(sed 's/#.*//' "$here/debian.packages" | tr -s ' \n' ',,' | sed 's/^,//; s/,$//')

# Documentation goes, licences stay.
mmdebstrap --mode="$mode" --variant=apt --include="$packages" \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --essential-hook="sh $here/debian.initramfs.sh \"\$1\"" \
    --customize-hook="sh $here/debian.configure.sh \"\$1\" $folder/input" \
    "$suite" "$folder/root"

# Empty space is not written: lazy initialisation would do it on the nodes, while they are measured.
truncate -s $((megabytes - 1))M "$folder/filesystem"
chmod 666 "$folder/filesystem"
inside mkfs.ext4 -q -F -L overlaylab -i 32768 -J size=32 -m 1 \
    -E lazy_itable_init=0,lazy_journal_init=0,nodiscard -d "$folder/root" "$folder/filesystem"

disk=$folder/base.raw
truncate -s ${megabytes}M "$disk"
echo 'start=2048, type=83, bootable' | sfdisk -q "$disk"
dd if="$folder/filesystem" of="$disk" bs=1M seek=1 conv=notrunc,sparse status=none
# GRUB by hand: grub-install wants a block device, which an ordinary user has not.
modules=/usr/lib/grub/i386-pc
grub-mkimage -O i386-pc -d "$modules" -p '(hd0,msdos1)/boot/grub' -o "$folder/core.img" \
    biosdisk part_msdos ext2 linux normal echo
dd if="$modules/boot.img" of="$disk" bs=440 count=1 conv=notrunc status=none
dd if="$folder/core.img" of="$disk" bs=512 seek=1 conv=notrunc status=none
rm -f "$folder/filesystem" "$folder/core.img"
inside rm -rf "$folder/root"
rm -rf "$folder/input"
