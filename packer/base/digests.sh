#!/bin/sh
# Prints name, version, architecture and SHA-256 of the packages whose files apt kept, and removes them. $1: the root.
set -eu
cd "$1/var/cache/apt/archives"
for file in *.deb; do
    digest=$(sha256sum "$file")
    name=${file%.deb}
    architecture=${name##*_}
    name=${name%_*}
    echo "${name%%_*} ${name#*_} $architecture ${digest%% *}"
    rm "$file"
done | sed 's/%3a/:/'
