#!/bin/sh
# Makes a bootable Debian disk from packages and the node kit.
# Usage: debian.base.sh FOLDER KIT; FOLDER is empty and belongs to the caller, who finds FOLDER/base.raw there; KIT is a
# folder with kit.tar.gz and kit.digest. Root needs nothing else; an ordinary user works in a user namespace (subuid, subgid).
set -eu

folder=$1
kit=$2
suite=bookworm
uuid=$(cat /proc/sys/kernel/random/uuid)
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# An ordinary user's PATH lacks the folder of mkfs, sfdisk and grub-mkimage.
PATH=$PATH:/usr/sbin:/sbin
export PATH
umask 022

if [ "$(id -u)" = 0 ]; then
    mode=root
    inside() { "$@"; }
else
    mode=unshare
    inside() { mmdebstrap --unshare-helper "$@"; }
    # In the namespace root is one of our subordinate ids; it makes its own files here, as in /tmp.
    chmod 1777 "$folder"
fi

# Copies, because that root can not look into a home folder.
mkdir "$folder/input"
cp "$here"/debian.*.sh "$here"/../scripts/*.sh "$kit"/kit.tar.gz "$kit"/kit.digest "$folder/input/"
chmod -R a+rX "$folder/input"
cd "$folder"

# Documentation goes, licences stay. mmdebstrap hands each hook the root's path as $1.
# shellcheck disable=SC2016
mmdebstrap --mode="$mode" --variant=apt --components=main \
    --include="$(sed 's/#.*//' "$here/debian.packages" | xargs | tr ' ' ',')" \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --essential-hook='sh input/debian.initramfs.sh "$1"' \
    --customize-hook="sh input/debian.configure.sh \"\$1\" input $uuid" \
    "$suite" "$folder/root"

inside sh input/debian.disk.sh root base.raw "$uuid"
inside rm -rf root
rm -rf input
