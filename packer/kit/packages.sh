#!/bin/sh
# Unpacks packages and all that they depend on, without installing them.
# Usage: packages.sh FOLDER SUITE COMPONENTS PACKAGES; both lists with commas. FOLDER is empty and belongs to the caller,
# who finds FOLDER/root.tar there: the files of all packages, and they themselves in var/cache/apt/archives. What lies
# in FOLDER/preferences, apt_preferences(5), decides which versions. SNAPSHOTS: where to look for those that mirrors
# dropped.
set -eu

folder=$1
umask 022
if [ "$(id -u)" = 0 ]; then
    mode=root
else
    mode=unshare
    # In the namespace root is one of our subordinate ids.
    chmod 1777 "$folder"
fi
cd "$folder"
# mmdebstrap hands each hook the root's path as $1.
# shellcheck disable=SC2016
mmdebstrap --mode="$mode" --variant=extract --components="$3" --include="$4" \
    --aptopt='Acquire::Languages "none"' --skip=cleanup/apt/cache \
    --setup-hook='[ ! -e preferences ] || cp preferences "$1/etc/apt/preferences.d/overlaylab"' \
    --setup-hook='[ ! -e snapshots.sources ] || cp snapshots.sources "$1/etc/apt/sources.list.d/"' \
    "$2" root.tar
