#!/bin/sh
# Nothing runs that was not asked for: what is measured is the node, and every unit costs boot time.
set -eu

# Services of overlays and tools: whoever needs one starts it.
for unit in docker.service docker.socket containerd.service etcd.service bird.service bird6.service \
    openvswitch-switch.service iperf3.service nftables.service rsync.service; do
    # Asked first, as under emulation each `disable` takes seconds.
    if systemctl is-enabled --quiet "$unit" 2>/dev/null; then systemctl disable --quiet "$unit"; fi
done

# Timers, consoles (nobody can log in there) and what waits or works at boot for nothing.
# Links rather than `systemctl mask`, which takes as long.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
    fstrim.timer logrotate.timer man-db.timer systemd-tmpfiles-clean.timer \
    getty.target getty@tty1.service serial-getty@ttyS0.service \
    apparmor.service systemd-networkd-wait-online.service systemd-pstore.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service; do
    ln -sf /dev/null "/etc/systemd/system/$unit"
done

for unit in ssh.service systemd-networkd.service; do
    if ! systemctl is-enabled --quiet "$unit"; then systemctl enable --quiet "$unit"; fi
done
install -d /etc/systemd/journald.conf.d
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n' >/etc/systemd/journald.conf.d/overlaylab.conf
