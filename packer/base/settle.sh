#!/bin/sh
# Makes a root file system that two builds have alike, and prints its SHA-256: of a tar of it, in the order of names, with
# owners as numbers and extended attributes. $1: the root. No file is younger than SOURCE_DATE_EPOCH.
set -eu
cd "$1"
find . -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
tar --create --sort=name --numeric-owner --format=posix --xattrs --xattrs-include='*' \
    --pax-option=delete=atime,delete=ctime . | sha256sum | cut -c1-64
