#!/bin/sh
# eth0 is management, by DHCP. Every other link is left alone: the underlay (eth1) gets its address
# from Vagrant or from the runner, overlays make their own.
set -eu
install -d /etc/systemd/network /etc/systemd/networkd.conf.d
cat >/etc/systemd/network/10-management.network <<'CONF'
[Match]
Name=eth0
[Network]
DHCP=ipv4
IPv6AcceptRA=no
KeepConfiguration=yes
[DHCPv4]
# Clones share everything but their MAC address.
ClientIdentifier=mac
CONF
# Comes last in the order of names: any file for eth1 (Vagrant's is 50-vagrant-eth1) takes precedence.
cat >/etc/systemd/network/90-underlay.network <<'CONF'
[Match]
Name=eth1
[Link]
Unmanaged=yes
CONF
# Restarting networkd must not take away what an overlay has set on these two links: routes and
# addresses (systemd.network(5), KeepConfiguration), rules and routes elsewhere (networkd.conf(5)).
# Router solicitations have no place on a measured link.
install -d /etc/systemd/network/50-vagrant-eth1.network.d
printf '[Network]\nKeepConfiguration=yes\nIPv6AcceptRA=no\n' \
    >/etc/systemd/network/50-vagrant-eth1.network.d/overlaylab.conf
cat >/etc/systemd/networkd.conf.d/overlaylab.conf <<'CONF'
[Network]
ManageForeignRoutes=no
ManageForeignRoutingPolicyRules=no
CONF
# Where NetworkManager does it: eth0 alone.
if [ -d /etc/NetworkManager ]; then
    install -d /etc/NetworkManager/conf.d
    printf '[keyfile]\nunmanaged-devices=*,except:interface-name:eth0\n' >/etc/NetworkManager/conf.d/overlaylab.conf
fi
# udev would give virtual links MAC addresses of its own (systemd.link(5), MACAddressPolicy); daemons
# that set one lose the race. The name policy goes with it: net.ifnames=0 says the same.
ln -sf /dev/null /etc/systemd/network/99-default.link
if command -v update-grub >/dev/null && [ -d /etc/default/grub.d ]; then
    # shellcheck disable=SC2016  # update-grub expands it
    echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX net.ifnames=0"' >/etc/default/grub.d/overlaylab.cfg
    update-grub 2>/dev/null
fi
# Users may ping, as systemd has it by default and Debian has not: the kit's ping has no file capability.
printf 'net.ipv4.ping_group_range = 0 2147483647\n' >/etc/sysctl.d/50-overlaylab.conf
