"""What a drill's scripts are told of the node that they run on, and how they are run there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overlaylab.core.errors import NodeError
from overlaylab.core.model import Variant
from overlaylab.nodes.ssh import Completed, Nodes
from overlaylab.run.plan import endpoints
from overlaylab.specs.inventory import Inventory

CLIENT, SERVER, OTHER = "client", "server", "other"

# Seconds that a script may take on a node.
PATIENCE = 180.0


@dataclass(frozen=True)
class Place:
    """One node in a drill."""

    node: str
    # client, server or other.
    role: str
    # The interface, and its IPv4 address.
    underlay: str
    address: str
    # The underlay address of the other end; that of the server for nodes that are no end.
    peer_address: str
    # Its own address in the overlay, and that of the other end.
    endpoint: str
    peer_endpoint: str


def places(inventory: Inventory, addresses: Mapping[str, str]) -> tuple[Place, ...]:
    """Every node, in the inventory's order. addresses: {node: its endpoint's}."""
    client, server = endpoints(inventory)[0]
    underlay = {node.name: str(node.underlay_address.ip) for node in inventory.nodes}
    found = []
    for node in inventory.nodes:
        role = {client: CLIENT, server: SERVER}.get(node.name, OTHER)
        peer = client if role == SERVER else server
        found.append(
            Place(
                node=node.name,
                role=role,
                underlay=node.underlay_interface,
                address=underlay[node.name],
                peer_address=underlay[peer],
                endpoint=addresses[node.name],
                peer_endpoint=addresses[peer],
            )
        )
    return tuple(found)


def at(places: Sequence[Place], role: str) -> Place:
    """The client or the server."""
    return next(place for place in places if place.role == role)


def with_variables(place: Place, variant: Variant, text: str) -> str:
    """A script behind the variables that it may use."""
    values = {
        "NODE": place.node,
        "ROLE": place.role,
        "UNDERLAY": place.underlay,
        "ADDRESS": place.address,
        "PEER_ADDRESS": place.peer_address,
        "ENDPOINT": place.endpoint,
        "PEER_ENDPOINT": place.peer_endpoint,
        "OVERLAY": variant.overlay,
        "MODE": variant.key,
    }
    told = " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    return f"{told}\n{text}"


async def run(nodes: Nodes, places: Sequence[Place], variant: Variant, text: str, what: str) -> None:
    """Run a script on every node, one after the other. NodeError where it fails on one, or one does not answer."""
    for place in places:
        done = await ask(nodes, place, variant, text)
        if done.exit_code != 0:
            told = (done.stderr or done.stdout).strip().splitlines()
            raise NodeError(
                f"{place.node}: {what} ended with {done.exit_code}: {' / '.join(told[-3:]) or 'no word'}"
            )


async def ask(nodes: Nodes, place: Place, variant: Variant, text: str) -> Completed:
    """What a script gave on one node.

    Through the shell that is open, never in a session of its own: sudo notes the command of each in the journal, where
    a trainee would find it.
    """
    return await nodes[place.node].sh(with_variables(place, variant, text), check=False, timeout=PATIENCE)
