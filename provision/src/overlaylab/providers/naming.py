"""What a node is told once, before its clean state is kept: its name, and its address on the underlay."""

from __future__ import annotations

from overlaylab.specs.cluster import NodeSpec


def script(node: NodeSpec) -> str:
    """POSIX sh for root, for any provider: networkd has ``eth1`` then."""
    # Not Vagrant's hostname and auto_config: they restart the network, half a minute on emulated CPUs.
    return f"""set -eu
echo {node.name} >/etc/hostname
hostname {node.name}
cat >/etc/systemd/network/20-underlay.network <<'UNIT'
[Match]
Name=eth1
[Network]
Address={node.underlay_address}
LinkLocalAddressing=no
IPv6AcceptRA=no
# Restarting networkd must not take away what an overlay has set here.
KeepConfiguration=yes
UNIT
networkctl reload
networkctl reconfigure eth1
# VirtualBox tells its guests no MTU; elsewhere it is so already.
ip link set dev eth1 mtu 9001
"""
