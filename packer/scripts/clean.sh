#!/bin/sh
# What must not be the same on every clone goes, what tells of the builder, and what costs room.
set -eu
# This boot's host key; no new login from here on. Written over first: trimming leaves what is smaller than a
# cluster of the disk's file.
find /etc/ssh -name 'ssh_host_*' -exec shred --iterations=1 --remove {} +
# The disk that was started from may have got one (cloud-init, Ignition).
for folder in /root/.ssh /home/*/.ssh; do
    [ ! -d "$folder" ] || find "$folder" -type f -exec shred --iterations=1 --remove {} +
    rm -rf "$folder"
done
rm -f /etc/resolv.conf
: >/etc/resolv.conf # an offline lab has no name server, and asking one that is not there takes seconds
: >/etc/machine-id # empty, not absent: the next boot sets it without a first boot's presets
rm -f /var/lib/dbus/machine-id /var/lib/systemd/random-seed /home/lab/.bash_history
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/log/journal
find /var/log -type f -exec truncate -s 0 {} +
left=$(find / -xdev -type f \( -name 'ssh_host_*' -o -name 'authorized_keys*' -o -name 'known_hosts*' -o -path '*/.ssh/*' \))
[ -z "$left" ] || {
    echo "image test failed: keys: $left" >&2
    exit 1
}
fstrim / || : # the disk may have no such command
sync
