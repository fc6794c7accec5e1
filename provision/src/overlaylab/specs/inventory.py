"""Inventories: how to reach the nodes of a lab. The same Ansible YAML file goes to ansible-playbook."""

from __future__ import annotations

import base64
import binascii
import getpass
import json
import os
import re
from dataclasses import dataclass
from io import StringIO
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network, NetmaskValueError
from pathlib import Path
from typing import Any

from overlaylab.core.documents import Document, load_document
from overlaylab.core.documents_limits import Field, shown
from overlaylab.core.errors import UserError
from overlaylab.core.paths import NODE_HOME, PROVISION

SCHEMA = PROVISION / "inventory.schema.json"
# The provider of an inventory that somebody else's hosts stand in.
EXTERNAL = "external"


# Bits: the largest network that was ever given to anybody.
LEAST_LENGTH = 8
# This network (RFC 791): no host has an address there.
NOWHERE = IPv4Network("0.0.0.0/8")


@dataclass(frozen=True)
class InventoryNode:
    """One node and its way in.

    host_key: ``ssh-ed25519 AAAA…``, the only key that is accepted; None: known_hosts decides.
    underlay_interface: the interface that is shaped and measured, ``eth1``.
    """

    name: str
    ssh_host: str
    ssh_port: int
    ssh_user: str
    ssh_key: Path | None
    host_key: str | None
    underlay_interface: str
    underlay_address: IPv4Interface
    zone: str

    @property
    def management_on_underlay(self) -> bool:
        """SSH goes over the shaped interface: port 22 is exempt there and a timer guards the node."""
        return self.ssh_host == str(self.underlay_address.ip)


@dataclass(frozen=True)
class Inventory:
    """The nodes of one lab. provider: the one that made them, or `EXTERNAL`."""

    name: str
    provider: str
    nodes: tuple[InventoryNode, ...]

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones that have a node, sorted."""
        return tuple(sorted({node.zone for node in self.nodes}))


def load_inventory(path: Path) -> Inventory:
    """Read an Ansible inventory in YAML. Raises UserError.

    What stands in ``all.vars`` counts for every host; a host's own value wins.
    """
    if not os.path.isfile(path):  # noqa: PTH113 Path.is_file raises for a name that is too long
        raise UserError(
            "INVENTORY",
            "must name an inventory file",
            seen=f'"{shown(path)}"',
            fix="Write one in Ansible's YAML form: all.hosts, each with ansible_host, underlay_interface, "
            "underlay_address and zone; or leave INVENTORY out for the lab's own nodes.",
        )
    document = load_document(path, SCHEMA)
    _check_values(document, document.data["all"], ("all",))
    everything = document.data["all"]
    common = everything.get("vars") or {}
    nodes = tuple(_node(document, name, common, own or {}) for name, own in everything["hosts"].items())
    _check_addresses(document, nodes)
    name = common.get("overlaylab_cluster", path.stem)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", name):
        raise document.error(
            "all",
            "vars",
            "overlaylab_cluster",
            rule="is missing, and the file's name is none for a cluster",
            seen=json.dumps(name, ensure_ascii=False),
            fix="Add it, or name the file with at most 63 letters, digits, dots, underscores and hyphens.",
        )
    return Inventory(name, common.get("overlaylab_provider", EXTERNAL), nodes)


# Python as root at once, and not a second one for it: 6.8 s to the first answer on emulated CPUs become 4.2 s. For nodes
# of the lab, whose user has sudo; of other hosts it is not known whether theirs takes Python's input through sudo.
AS_ROOT = {"ansible_become": False, "ansible_python_interpreter": f"sudo -n {NODE_HOME}/bin/python3"}


def write_inventory(path: Path, inventory: Inventory) -> None:
    """Write what load_inventory reads. Replaces the file in one step; it holds paths, no secrets."""
    from ruamel.yaml import YAML

    hosts: dict[str, dict[str, Any]] = {}
    for node in inventory.nodes:
        values = {
            "ansible_host": node.ssh_host,
            "ansible_port": node.ssh_port,
            "ansible_user": node.ssh_user,
            "ansible_ssh_private_key_file": str(node.ssh_key) if node.ssh_key else None,
            "host_key": node.host_key,
            "underlay_interface": node.underlay_interface,
            "underlay_address": str(node.underlay_address),
            "zone": node.zone,
        }
        hosts[node.name] = {key: value for key, value in values.items() if value is not None}
    names: dict[str, Any] = {"overlaylab_cluster": inventory.name, "overlaylab_provider": inventory.provider}
    if inventory.provider != EXTERNAL:
        names |= AS_ROOT
    text = StringIO()
    YAML(typ="rt", pure=True).dump({"all": {"vars": names, "hosts": hosts}}, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text("# Written by overlaylab; changes are lost.\n" + text.getvalue(), encoding="utf-8")
    new.replace(path)


def _check_values(document: Document, held: Any, at: tuple[Field, ...]) -> None:
    """Ansible evaluates what stands in braces, wherever a value is used: here a value is what it says."""
    if isinstance(held, dict):
        for key, value in held.items():
            _check_values(document, value, (*at, key))
    elif isinstance(held, str) and (braces := re.search(r"\{[{%#]", held)):
        raise document.error(
            *at,
            rule=f"must be a plain value, without {braces[0]}",
            seen=f'"{held[:60]}"',
            fix="Write the value itself: nothing in an inventory is evaluated.",
        )


def _node(document: Document, name: str, common: dict[str, Any], own: dict[str, Any]) -> InventoryNode:
    values = {**common, **own}

    def at(key: str) -> tuple[str, ...]:
        return ("all", "hosts", name, key) if key in own else ("all", "vars", key)

    for key in ("ansible_host", "underlay_interface", "underlay_address", "zone"):
        if key not in values:
            raise document.error(
                "all",
                "hosts",
                name,
                key,
                rule="is missing",
                fix=f"Add it to the host, or to all.vars where every host has the same. {_ABOUT[key]}",
            )
    ssh_key: Path | None = None
    if (written := values.get("ansible_ssh_private_key_file")) is not None:
        ssh_key = Path(written).expanduser()
        if not ssh_key.is_file():
            raise document.error(
                *at("ansible_ssh_private_key_file"),
                rule="must be a file with the private key",
                seen=f'"{ssh_key}"',
                fix="Correct the path (a relative one starts where you type the command), or leave it "
                "out to use the keys of ssh-agent.",
            )
    host_key = values.get("host_key")
    if host_key is not None and not _is_key(host_key):
        raise document.error(
            *at("host_key"),
            rule="must be a public key on one line: its type and its base64 text",
            seen=f'"{host_key[:40]}"',
            fix="Copy the first two words of the node's /etc/ssh/ssh_host_ed25519_key.pub.",
        )
    return InventoryNode(
        name=name,
        ssh_host=values["ansible_host"],
        ssh_port=values.get("ansible_port", 22),
        ssh_user=values.get("ansible_user") or getpass.getuser(),  # Ansible's default too
        ssh_key=ssh_key,
        host_key=host_key,
        underlay_interface=values["underlay_interface"],
        underlay_address=_address(document, at("underlay_address"), values["underlay_address"]),
        zone=values["zone"],
    )


_ABOUT = {
    "ansible_host": "The name or address that ssh connects to.",
    "underlay_interface": "The interface that carries the measured traffic, such as eth1.",
    "underlay_address": "Its IPv4 address with the network's length, such as 10.0.0.11/24.",
    "zone": "The availability zone in the profile's terms, such as a.",
}


def _address(document: Document, at: tuple[str, ...], text: str) -> IPv4Interface:
    try:
        if "/" not in text:
            raise ValueError("the network's length is missing")
        address = IPv4Interface(text)
        if not re.fullmatch(
            r"[0-9.]+/[0-9]{1,2}", text
        ):  # Python takes a netmask too, and one the other way round
            raise ValueError("the network's length is no number of bits")
        if address.network.prefixlen < LEAST_LENGTH or address in NOWHERE:
            raise ValueError(f"no network of hosts is as large as {address.network}")
    except (AddressValueError, NetmaskValueError, ValueError) as wrong:
        raise document.error(
            *at,
            rule="must be an IPv4 address with its network's length",
            seen=f'"{text}": {wrong}',
            fix="Write it as `ip -br address` on the node prints it, such as 10.0.0.11/24.",
        ) from None
    if address.ip in (address.network.network_address, address.network.broadcast_address):
        raise document.error(
            *at,
            rule=f"must be a host's address in {address.network}",
            seen=f'"{text}"',
            fix="This is the network's first or last address; write the node's own.",
        )
    if (
        address.ip.is_multicast
        or address.ip.is_loopback
        or address.ip.is_unspecified
        or address.ip.is_reserved
    ):
        raise document.error(
            *at,
            rule="must be an address that one node has and others reach",
            seen=f'"{text}"',
            fix="Write the node's own address on the underlay, as `ip -br address` prints it.",
        )
    return address


def _check_addresses(document: Document, nodes: tuple[InventoryNode, ...]) -> None:
    seen: dict[IPv4Address, str] = {}
    ways: dict[tuple[str, int], str] = {}
    for node in nodes:
        way = (node.ssh_host, node.ssh_port)
        if way in ways:
            raise document.error(
                "all",
                "hosts",
                node.name,
                "ansible_host",
                rule="must reach a node that no other entry reaches",
                seen=f"{way[0]} port {way[1]}, also {ways[way]}",
                fix="Two entries for one machine cannot measure a network; give each node its own.",
            )
        address = node.underlay_address.ip
        if address in seen:
            raise document.error(
                "all",
                "hosts",
                node.name,
                "underlay_address",
                rule="must be an address that no other node has",
                seen=f"{address}, also {seen[address]}",
                fix="Give each node its own address.",
            )
        seen[address] = node.name
        ways[way] = node.name


def _is_key(text: str) -> bool:
    """OpenSSH's public key line: the base64 text begins with the type's own name (RFC 4253, 6.6)."""
    if "\n" in text:  # it becomes a line of known_hosts
        return False
    kind, _, encoded = text.partition(" ")
    try:
        blob = base64.b64decode(encoded.split()[0] if encoded else "", validate=True)
    except binascii.Error:
        return False
    name = kind.encode()
    return len(blob) > 4 + len(name) and blob[:4] == len(name).to_bytes(4) and blob[4:].startswith(name)
