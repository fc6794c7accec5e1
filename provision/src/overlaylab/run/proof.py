"""What is proven around each trial, on the nodes between which it runs: taken here, judged in `evidence` and `health`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass

from overlaylab.core.errors import NodeError
from overlaylab.core.model import JSON, Evidence, Variant
from overlaylab.nodes import health
from overlaylab.nodes.ssh import Completed, Node
from overlaylab.run import evidence, evidence_local
from overlaylab.shaping import node_state
from overlaylab.specs import overlays


@dataclass(frozen=True)
class Ends:
    """Between whom a variant is measured. mtu: bytes that its overlay claims to carry between the endpoints.

    Within one node, client and server are that node, each in an endpoint of its own.
    """

    variant: Variant
    client: Node
    server: Node
    client_endpoint: str
    server_endpoint: str
    mtu: int

    @property
    def local(self) -> bool:
        return self.client is self.server

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Each node once."""
        return (self.client,) if self.local else (self.client, self.server)

    @property
    def server_namespace(self) -> str:
        return evidence_local.SECOND if self.local else evidence_local.FIRST

    @property
    def mode(self) -> overlays.Mode:
        return overlays.load(self.variant.overlay).modes[self.variant.key]

    @property
    def units(self) -> tuple[str, ...]:
        return overlays.units_of(self.variant)

    @property
    def peer(self) -> evidence.Peer:
        """The server, as a probe from the client takes it."""
        return evidence.Peer(str(self.server.spec.underlay_address.ip), self.server_endpoint)


@dataclass(frozen=True)
class Point:
    """A moment between trials: the proof, the overlay's own word, and the counters on either side of the probe."""

    evidence: tuple[Evidence, ...]
    status: JSON
    states_before: dict[str, JSON]
    states_after: dict[str, JSON]


async def find_ends(client: Node, server: Node, variant: Variant, underlay_mtu: int) -> Ends:
    """Ask the overlay on both nodes who its endpoints are. NodeError where it does not say."""
    ours, theirs = await asyncio.gather(_status(client), _status(server))
    mtu = theirs["overlay_mtu"] or underlay_mtu
    return Ends(variant, client, server, ours["endpoint_address"], theirs["endpoint_address"], mtu)


async def attach_second(node: Node) -> str | None:
    """Attach a second endpoint to the overlay, where there is none on the node. What stands in the way, else None."""
    done = await node.sh(evidence_local.ATTACH, check=False, timeout=300)
    return f"{node.name} gets no second endpoint: {done.stderr.strip()[-300:]}" if done.exit_code else None


async def find_local_ends(node: Node, variant: Variant) -> Ends:
    """Between the endpoint and the second one of a node, which are both there.

    NodeError where one has no address, or they do not reach each other.
    """
    status = await _status(node)
    printed = (await node.sh(evidence_local.addresses_script())).stdout
    try:
        client, server = evidence_local.read_addresses(printed, status)
    except ValueError as error:
        raise NodeError(f"{node.name}: {error}") from error
    reached = await node.sh(evidence_local.reach_script(client, server))
    return Ends(variant, node, node, client, server, evidence_local.read_mtu(reached.stdout))


async def endpoints(nodes: Iterable[Node]) -> dict[str, str]:
    """{node: its endpoint's address}. NodeError where an overlay does not say."""
    asked = list(nodes)
    told = await asyncio.gather(*map(_status, asked))
    return {node.name: status["endpoint_address"] for node, status in zip(asked, told, strict=True)}


async def _status(node: Node) -> JSON:
    """The overlay's own word on a node, with its endpoint's address. NodeError where it has none."""
    printed = (await node.sh(evidence.STATUS)).stdout
    try:
        status = evidence.read_status(printed)
    except ValueError:
        raise NodeError(f"{node.name}: the overlay's status cannot be read: {printed[-200:]!r}") from None
    if not status.get("endpoint_address"):
        raise NodeError(f"{node.name}: the endpoint has no address ({status.get('reason')})")
    return status


async def first_point(ends: Ends, serving: Awaitable[None]) -> Point:
    """The proof before a pair's first trial. serving: starts the server node's servers, which takes a second."""
    found, status = await _prove(ends, serving)
    states = await read_states(ends)
    return Point(found, status, states, states)


async def point(ends: Ends, last: bool = False) -> Point:
    """Counters, then the probe with its own traffic, then counters for the next trial. last: there is none."""
    states = await read_states(ends)
    found, status = await _prove(ends)
    return Point(found, status, states, {} if last else await read_states(ends))


async def _prove(ends: Ends, first: Awaitable[None] | None = None) -> tuple[tuple[Evidence, ...], JSON]:
    """What probes from both nodes proved of the data path, and the overlay's own word on the client's.

    Where pings alone refute it, it is looked at once more: one of six at the full MTU that gets lost says nothing about
    the path, and a path that is wrong stays so.
    """
    found, status = await _probe(ends, first)
    refuted = {item.kind for item in found if not item.ok}
    if refuted and refuted <= {"wire", "mtu"}:
        return await _probe(ends)
    return found, status


async def _probe(ends: Ends, first: Awaitable[None] | None = None) -> tuple[tuple[Evidence, ...], JSON]:
    """One look; see `_prove`.

    first: what the server's node does beforehand; a second command beside it would cost it a login.
    """
    if ends.local:
        return await _probe_locally(ends, first)

    async def from_server() -> Completed:
        if first is not None:
            await first
        script = evidence.ping_back_script(ends.client_endpoint, ends.mtu, ends.mode)
        return await ends.server.sh(script, check=False)

    interface = ends.client.spec.underlay_interface
    printed, back = await asyncio.gather(
        ends.client.sh(evidence.probe_script(interface, ends.peer, ends.mtu, ends.mode), check=False),
        from_server(),
    )
    try:
        probe = evidence.read_probe(printed.stdout)
    except ValueError as error:
        raise NodeError(f"{ends.client.name}: {error}; {printed.stderr.strip()[-200:]}") from error
    try:
        pinged = evidence.read_ping_back(back.stdout)
    except ValueError as error:
        raise NodeError(f"{ends.server.name}: {error}; {back.stderr.strip()[-200:]}") from error
    name = ends.client.name
    found = (
        evidence.judge_status(name, ends.mode, probe.status),
        evidence.judge_wire(name, ends.mode, ends.peer, probe),
        evidence.judge_path(name, ends.peer, probe),
        evidence.judge_mtu(name, ends.mtu, probe),
        evidence.judge_mtu(ends.server.name, ends.mtu, pinged),
    )
    return found, probe.status


async def _probe_locally(ends: Ends, first: Awaitable[None] | None) -> tuple[tuple[Evidence, ...], JSON]:
    """One look at what is between two endpoints of a node."""
    if first is not None:
        await first
    node, addresses = ends.client, (ends.client_endpoint, ends.server_endpoint)
    script = evidence_local.probe_script(node.spec.underlay_interface, *addresses, ends.mtu, ends.mode)
    printed = await node.sh(script, check=False)
    try:
        probe = evidence_local.read_probe(printed.stdout)
    except ValueError as error:
        raise NodeError(f"{node.name}: {error}; {printed.stderr.strip()[-200:]}") from error
    status = evidence.judge_status(node.name, ends.mode, probe.status)
    return (status, *evidence_local.judge(node.name, ends.mode, *addresses, ends.mtu, probe)), probe.status


async def read_states(ends: Ends) -> dict[str, JSON]:
    """Counters of both nodes, and their units' samples."""
    scripts = (node_state.state_script(node.spec.underlay_interface, ends.units) for node in ends.nodes)
    printed = await asyncio.gather(*(n.sh(script) for n, script in zip(ends.nodes, scripts, strict=True)))
    return {n.name: node_state.read_state(d.stdout) for n, d in zip(ends.nodes, printed, strict=True)}


async def measure(
    ends: Ends, before: Point, command: str, limit: float, expected: float
) -> tuple[Completed, JSON | None]:
    """Run a trial's command on the client's node; with it, the health of the server's node in its middle.

    before: tells which daemons there are to look at. limit, expected: seconds after which it is given up, and that it should take. The client's own sample comes with
    its state afterwards. None where there are no daemons, or the trial was over before.
    """
    ours, theirs = (
        list(before.states_after[node.name].get("units", ())) for node in (ends.client, ends.server)
    )
    if ends.local:  # one look is enough
        theirs = []
    script = health.sampled_meanwhile(command, ours, expected / 2)
    looks = False

    async def look() -> str | None:
        nonlocal looks
        await asyncio.sleep(expected / 2)
        looks = True
        return await ends.server.look(health.sample_script(theirs))

    looking = asyncio.create_task(look()) if theirs else None
    try:
        done = await ends.client.sh(script, check=False, timeout=limit)
    finally:
        if looking and not looks:
            looking.cancel()
        if looking:  # not `await looking`, which would hand a Ctrl-C on to it
            await asyncio.wait([looking])
    printed = looking.result() if looking and not looking.cancelled() else None
    return done, None if printed is None else json.loads(printed)


def states_around(
    ends: Ends, before: Point, after: Point, on_server: JSON | None
) -> dict[str, dict[str, JSON]]:
    """{node: {"before", "during", "after"}} of the trial between two points; `during` holds the units' sample.

    on_server: the sample that `measure` took. Without daemons there is no `during`.
    """
    found: dict[str, dict[str, JSON]] = {}
    for node in ends.nodes:
        first = {k: v for k, v in before.states_after[node.name].items() if k != "units_during"}
        last = dict(after.states_before[node.name])
        kept = last.pop("units_during", None)
        # On the server's node, what is kept is of a trial that began there.
        during = on_server if node is ends.server and ends.server is not ends.client else kept
        found[node.name] = {"before": first, "after": last}
        if during is not None:
            found[node.name]["during"] = {"units": during}
    return found


def judge_health(ends: Ends, states: dict[str, dict[str, JSON]]) -> list[Evidence]:
    """Of each node, where the overlay has daemons."""
    if not ends.units:
        return []
    required = bool(overlays.own_units(ends.variant))
    judged = []
    for name, seen in states.items():
        during = seen["during"]["units"] if "during" in seen else None
        moments = health.Moments(seen["before"]["units"], during, seen["after"]["units"])
        judged.append(health.judge(name, ends.units, moments, required))
    return [one for one in judged if one is not None]
