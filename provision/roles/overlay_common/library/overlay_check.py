#!/usr/bin/python
"""Finds out what stands in an overlay's way on a node, and what of it is there, before anything is changed."""

from __future__ import annotations

import errno
import glob
import hashlib
import ipaddress
import json
import os
import shutil
import socket
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: overlay_check
short_description: finds out what stands in an overlay's way on a node, and what of it is there
description: Changes nothing. All that is wrong is told at once, with what to do about it.
options:
  modules:
    description: kernel modules that must be there, built in or loadable.
    type: list
    elements: str
    default: []
  commands:
    description: commands that must be in the path, or at the path that is given.
    type: list
    elements: str
    default: []
  ports:
    description: ports that must be free, such as C(6783/tcp); not looked at while one of C(unit) runs.
    type: list
    elements: str
    default: []
  address_range:
    description: the overlay's addresses; no route of the node may overlap them.
    type: str
  range_argument:
    description: the role's argument that changes the range, for the message.
    type: str
  own_routes:
    description: whether the overlay's own routes are in that range; then only those of the underlay's networks
      are looked at while one of C(unit) runs.
    type: bool
    default: false
  unit:
    description: the systemd units of the overlay's own daemons.
    type: list
    elements: str
    default: []
  made:
    description: a path that is there while an overlay without a daemon is; it counts as one of C(unit) that runs.
    type: path
  ethernet:
    description: whether C(interface) must take other devices on top of it that have addresses of their own.
    type: bool
    default: false
  virtual_functions:
    description: whether the card of C(interface) must have virtual functions (SR-IOV), one of them unused;
      those in use are not looked at while C(made) is there.
    type: bool
    default: false
  address:
    description: the node's underlay address; it must be on C(interface).
    type: str
    required: true
  interface:
    description: the underlay interface.
    type: str
    required: true
  digests:
    description: path and SHA-256 (in hex) of the overlay's daemons.
    type: dict
    default: {}
  settings:
    description: paths of the files that the overlay is started with.
    type: list
    elements: path
    default: []
author: overlaylab
"""

RETURN = """
missing:
  description: those of C(digests) that are absent or of other content.
  type: list
settings:
  description: SHA-256 (in hex) of each of C(settings), null where it is absent.
  type: dict
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "modules": {"type": "list", "elements": "str", "default": []},
            "commands": {"type": "list", "elements": "str", "default": []},
            "ports": {"type": "list", "elements": "str", "default": []},
            "address_range": {"type": "str"},
            "range_argument": {"type": "str"},
            "own_routes": {"type": "bool", "default": False},
            "unit": {"type": "list", "elements": "str", "default": []},
            "made": {"type": "path"},
            "ethernet": {"type": "bool", "default": False},
            "virtual_functions": {"type": "bool", "default": False},
            "digests": {"type": "dict", "default": {}},
            "settings": {"type": "list", "elements": "path", "default": []},
            "address": {"type": "str", "required": True},
            "interface": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )
    asked = module.params
    problems = [*underlay(asked["interface"], asked["address"]), *commands(asked["commands"])]
    # kmod is asked once for all modules: every process counts on an emulated CPU.
    problems += modules(asked["modules"])
    running = bool(asked["made"]) and os.path.exists(asked["made"])
    if asked["ports"] or asked["own_routes"]:
        running = running or any(
            succeeds("systemctl", "is-active", "--quiet", unit) for unit in asked["unit"]
        )
    if not running:
        problems += ports(asked["ports"])
    if asked["ethernet"]:
        problems += ethernet(asked["interface"])
    if asked["virtual_functions"]:
        problems += virtual_functions(asked["interface"], running)
    if asked["address_range"]:
        # Its own routes lead through its devices or other nodes; the underlay's network is on the wire itself.
        only = asked["interface"] if running and asked["own_routes"] else None
        problems += overlaps(ipaddress.ip_network(asked["address_range"]), asked["range_argument"], only)
    if problems:
        module.fail_json(msg="; ".join(problems))
    missing = [path for path, digest in asked["digests"].items() if sha256(path) != digest]
    module.exit_json(
        changed=False, missing=missing, settings={path: sha256(path) for path in asked["settings"]}
    )


def underlay(interface: str, address: str, devices: str = "/sys/class/net") -> list[str]:
    wanted = address.split("/")[0]
    try:
        links = json.loads(output("ip", "-j", "-4", "addr", "show", "dev", interface) or "[]")
    except subprocess.CalledProcessError:
        return [f"there is no interface {interface}: correct underlay_interface in the inventory"]
    # Where it is down, what manages the node's network may have taken the address away.
    with open(os.path.join(devices, interface, "flags")) as file:
        if not int(file.read(), 16) & 1:  # linux/if.h: IFF_UP
            return [f"{interface} is down: `ip link set {interface} up` on the node"]
    have = [info["local"] for link in links for info in link.get("addr_info", ())]
    if wanted not in have:
        there = ", ".join(have) or "none"
        return [
            f"{interface} has not the address {wanted} (it has {there}): correct the inventory or the node"
        ]
    return []


def commands(names: list[str]) -> list[str]:
    return [
        f"the command {name} is missing: install the package that brings it"
        for name in names
        if shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin") is None
    ]


def modules(names: list[str]) -> list[str]:
    # A kernel that takes no modules does not tell what is built in; what it lacks shows when the overlay starts.
    if not os.path.exists("/proc/modules"):
        return []
    # A module that is built in, or loaded by hand, has a folder in /sys though modprobe may not know it.
    absent = [name for name in names if not os.path.isdir(f"/sys/module/{name.replace('-', '_')}")]
    if not absent or succeeds("modprobe", "--dry-run", "--quiet", "--all", *absent):
        return []
    missing = [name for name in absent if not succeeds("modprobe", "--dry-run", "--quiet", name)]
    return [
        f"the kernel ({os.uname().release}) has no module {name}: boot a kernel that has it, or load it on the "
        "machine that this container runs on"
        for name in missing
    ]


def ethernet(interface: str, devices: str = "/sys/class/net") -> list[str]:
    folder = os.path.join(devices, interface)
    if not os.path.isdir(folder):
        return []  # which underlay() has said
    with open(os.path.join(folder, "type")) as file:
        kind = file.read().strip()
    # linux/if_arp.h: ARPHRD_ETHER is 1, also for wireless; loopback is 772, tunnels are in the hundreds and 65534.
    if kind != "1":
        return [
            f"{interface} is no Ethernet (its type is {kind}), and only Ethernet takes further devices on top of it: "
            "choose an Ethernet interface as underlay_interface, or another overlay"
        ]
    if os.path.exists(os.path.join(folder, "phy80211")):
        return [
            f"{interface} is wireless, and an access point passes on no frames of devices that it does not know: "
            "choose a wired interface as underlay_interface"
        ]
    master = os.path.join(folder, "master")
    if os.path.exists(master):
        name = os.path.basename(os.path.realpath(master))
        return [f"{interface} is a port of {name} already: write {name} as underlay_interface"]
    return []


def virtual_functions(interface: str, in_use: bool, devices: str = "/sys/class/net") -> list[str]:
    """sriov_totalvfs, sriov_numvfs and virtfn<n>: Documentation/ABI/testing/sysfs-bus-pci."""
    card = os.path.join(devices, interface, "device")
    try:
        with open(os.path.join(card, "sriov_totalvfs")) as file:
            total = int(file.read())
    except FileNotFoundError:
        return [
            f"the card of {interface} has no virtual functions: SR-IOV runs only on hosts whose underlay card has them"
        ]
    if not total:
        return [
            f"the card of {interface} may have no virtual functions (its sriov_totalvfs is 0): "
            "switch SR-IOV on in the machine's firmware, and in the card's"
        ]
    with open(os.path.join(card, "sriov_numvfs")) as file:
        made = int(file.read())
    if not made or in_use or glob.glob(os.path.join(card, "virtfn*", "net", "*")):
        return []
    return [
        f"none of the {made} virtual functions of {interface} is a network device here: another namespace or a "
        "virtual machine has each of them; give one back, or make more through sriov_numvfs"
    ]


def ports(names: list[str]) -> list[str]:
    problems = []
    for name in names:
        number, _, protocol = name.partition("/")
        kind = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}.get(protocol)
        if kind is None or not number.isdigit():
            continue
        with socket.socket(socket.AF_INET, kind) as trial:
            if protocol == "tcp":
                # Connections of the overlay's last run that wait for their end do not hold the port.
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("0.0.0.0", int(number)))
            except OSError as wrong:
                if wrong.errno != errno.EADDRINUSE:
                    raise
                problems.append(
                    f"port {name} is taken: `ss -lnp 'sport = {number}'` on the node says by what; stop it"
                )
    return problems


def overlaps(wanted, argument: str | None, only: str | None = None) -> list[str]:
    """only: a device; then just the routes of the networks that it is in are looked at."""
    for route in json.loads(output("ip", "-j", "route", "show", "table", "all") or "[]"):
        if route["dst"] == "default" or route.get("type", "unicast") not in ("unicast", "local", "blackhole"):
            continue
        if only and (route.get("dev") != only or "gateway" in route):
            continue
        reached = ipaddress.ip_network(route["dst"], strict=False)
        if reached.version == wanted.version and reached.overlaps(wanted):
            through = f" through {route['dev']}" if "dev" in route else ""
            return [
                f"the overlay's range {wanted} overlaps the route to {route['dst']}{through}: "
                + (f"choose another range with {argument}" if argument else "choose another underlay")
            ]
    return []


def sha256(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def succeeds(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
