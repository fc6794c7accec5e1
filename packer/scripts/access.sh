#!/bin/sh
# Only the key of the machine that built the image gets in: no password works anywhere.
set -eu
usermod --password '*' lab # no password, yet not "locked", which sshd would refuse
passwd --quiet --lock root
install -d -m 750 /etc/sudoers.d
echo 'lab ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/lab
chmod 440 /etc/sudoers.d/lab
install -d /etc/ssh/sshd_config.d
cat >/etc/ssh/sshd_config.d/10-overlaylab.conf <<'CONF'
HostKey /etc/ssh/ssh_host_ed25519_key
AllowUsers lab
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
X11Forwarding no
UseDNS no
# Runner and Ansible open many at a time.
MaxSessions 64
MaxStartups 64:30:128
CONF
