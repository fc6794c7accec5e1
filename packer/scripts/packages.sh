#!/bin/sh
# Installs what the list names and the base has not. A base made from that list lacks nothing.
set -eu
missing=
# shellcheck disable=SC2013  # words are meant: one name a line
for package in $(sed 's/#.*//' /tmp/packages); do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086  # a list of words
apt-get install -q -y --no-install-recommends $missing
