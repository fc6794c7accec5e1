"""Takes away what flanneld and the CNI plugin flannel leave on a node. For the overlay-reset of those that use them."""

import ipaddress
import json
import os

import traces

DEVICES = ("flannel.1", "flannel0", "flannel.ipip", "flannel-wg")
BRIDGE = "cni0"


def stop_flanneld():
    """Subnet file, keys and the plugins' notes end with it (RuntimeDirectory)."""
    traces.stop_unit("overlaylab-flannel.service")


def own_rule(line):
    """Rules outside Flannel's own chains: the jumps into them (pkg/trafficmngr/iptables)."""
    return "flanneld " in line and " -j FLANNEL-" in line


def own_routes(routes, network):
    """Routes of `ip -j route` to the other nodes' subnets through those nodes; the others go with their devices."""
    network = ipaddress.ip_network(network)
    for route in routes:
        if route["dst"] != "default" and "gateway" in route:
            reached = ipaddress.ip_network(route["dst"])
            if reached != network and reached.subnet_of(network):
                yield route


def remove_devices():
    # The kernel takes a deleted namespace's devices away a little later, and their ends here with them.
    ports = os.listdir(f"/sys/class/net/{BRIDGE}/brif") if traces.link_exists(BRIDGE) else []
    for link in (*ports, BRIDGE, *DEVICES):
        if traces.link_exists(link):
            traces.run("ip", "link", "delete", link)


def remove_routes():
    try:
        with open(f"{traces.STATE}/network") as file:
            network = file.read().strip()
    except FileNotFoundError:
        return
    for route in own_routes(json.loads(traces.run("ip", "-j", "-4", "route", "show") or "[]"), network):
        traces.run("ip", "route", "delete", route["dst"], "via", route["gateway"], "dev", route["dev"])


def remove_rules():
    traces.remove_rules(own_rule, "FLANNEL-")


def forget():
    for name in ("network", "version"):
        if os.path.exists(f"{traces.STATE}/{name}"):
            os.remove(f"{traces.STATE}/{name}")
