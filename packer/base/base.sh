#!/bin/sh
# Makes a bootable disk of a system from packages and the node kit.
# Usage: base.sh FOLDER KIT; without a KIT only the list of packages is made. FOLDER is empty and belongs to the caller, who finds there base.raw, rootfs.sha256 (the digest
# of the root file system) and packages (name, version, architecture, SHA-256 of each); KIT is a folder with kit.tar.gz and
# kit.digest. Root needs nothing else; an ordinary user works in a user namespace (subuid, subgid).
#
# SYSTEM, SUITE, COMPONENTS and INCLUDE (with commas), KEYRING (a file or nothing), ARCHIVE (deb822(5) sources in place of
# the distribution's own, or nothing), ROOT_UUID, HASH_SEED; SOURCE_DATE_EPOCH: no file is younger.
# What lies in FOLDER/preferences and FOLDER/snapshots.sources goes to apt.
set -eu

folder=$1
kit=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
# An ordinary user's PATH lacks the folder of mkfs, sfdisk and grub-mkimage.
PATH=$PATH:/usr/sbin:/sbin
export PATH SOURCE_DATE_EPOCH
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
cp "$here"/*.sh "$here"/../scripts/*.sh "$folder/input/"
[ -z "$kit" ] || cp "$kit"/kit.tar.gz "$kit"/kit.digest "$folder/input/"
chmod -R a+rX "$folder/input"
cd "$folder"
sources=
if [ -n "$ARCHIVE" ]; then
    cp "$ARCHIVE" archive.sources
    sources=archive.sources
fi

# Documentation goes, licences stay. mmdebstrap hands each hook the root's path as $1. The packages' files stay until their
# digests are taken.
# shellcheck disable=SC2016
mmdebstrap --mode="$mode" --variant=apt --components="$COMPONENTS" --include="$INCLUDE" ${KEYRING:+--keyring="$KEYRING"} \
    --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --skip=essential/unlink \
    --setup-hook='[ ! -e preferences ] || cp preferences "$1/etc/apt/preferences.d/overlaylab"' \
    --setup-hook='[ ! -e snapshots.sources ] || cp snapshots.sources "$1/etc/apt/sources.list.d/"' \
    --essential-hook='sh input/initramfs.sh "$1"' \
    --customize-hook='sh input/digests.sh "$1" >packages' \
    --customize-hook='[ ! -e input/kit.digest ] || sh input/configure.sh "$1" input' \
    "$SUITE" "$folder/root" $sources

if [ -z "$kit" ]; then
    inside rm -rf root input
    exit
fi
inside sh input/settle.sh root >rootfs.sha256
inside sh input/disk.sh root base.raw
inside rm -rf root
rm -rf input
