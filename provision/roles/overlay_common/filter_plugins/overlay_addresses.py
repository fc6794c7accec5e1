"""Deals an overlay's range out to the nodes: the same answer on every node, without asking one of them."""

from __future__ import annotations

import ipaddress

from ansible.errors import AnsibleFilterError


def overlay_address(network: str, number: int) -> str:
    """The address of the node with this number, counted from 1: ``10.50.0.2`` of 10.50.0.0/16 for 2."""
    whole = _network(network)
    if not 1 <= number <= whole.num_addresses - 2:
        raise AnsibleFilterError(f"the range {network} has no address for node {number}: choose a larger one")
    return str(whole[number])


def overlay_block(network: str, number: int, length: int = 24) -> str:
    """The block of the node with this number, counted from 1: ``10.61.2.0/24`` of 10.61.0.0/16 for 2."""
    whole = _network(network)
    if whole.prefixlen > length or not 1 <= number < 2 ** (length - whole.prefixlen):
        raise AnsibleFilterError(
            f"the range {network} has no /{length} for node {number}: choose a larger one"
        )
    start = int(whole.network_address) + (number << (32 - length))
    return str(ipaddress.IPv4Network((start, length)))


def _network(text: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError as wrong:
        raise AnsibleFilterError(f"the range must be an IPv4 network such as 10.50.0.0/16: {wrong}") from None


class FilterModule:
    def filters(self):
        return {"overlay_address": overlay_address, "overlay_block": overlay_block}
