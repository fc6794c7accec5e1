"""Measuring a pair of hosts as they are. Nothing on them is shaped, changed or cleared: what a cloud does to
their traffic is what is wanted. Only a server of iperf3 runs there meanwhile, and ends with the measurement."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from overlaylab.bench import calibration
from overlaylab.bench.calibration import CalibrationError, Carried, Loss
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import JSON, Sample
from overlaylab.core.progress import readable
from overlaylab.nodes import servers
from overlaylab.nodes.ssh import Node, Nodes
from overlaylab.shaping.checks import BUSY
from overlaylab.shaping.node_state import SOCKET_DROPS, idle_share, qdisc_bytes, read_state, state_script
from overlaylab.shaping.shaper import RTT_INTERVAL, RTT_PINGS, Shaper
from overlaylab.specs.profile import load_profile
from overlaylab.tools import base as tools
from overlaylab.tools import iperf3
from overlaylab.tools.parsers import ParseError

UDP_SECONDS = 20
# Of the rate that was found: what is lost at half of it is lost for another reason than the cap.
UDP_SHARE = 0.5
# Bytes that iperf3 writes and its receiver counts at once: 5 % of what 5 Mbit/s carry in a second, and few
# enough system calls for 10 Gbit/s.
BLOCK = 32768
# Bytes of IPv4 and ICMP or UDP headers, which all are the same (RFC 791, 792, 768).
HEADERS = 28
# What a profile can say.
LEAST_MTU, MOST_MTU = 576, 9001
TOOLS = ("iperf3", "ping", "ip", "tc", "timeout", "systemd-run", "nproc", "awk")

# The server's scripts run in the endpoint; here that is the node's own network, as the role overlay_host has it.
_ENTER = f"""
if [ -e /run/netns/{servers.ENDPOINT} ]; then
    if [ /run/netns/{servers.ENDPOINT} -ef /proc/self/ns/net ]; then echo there; else echo overlay; fi
else{servers.attach_script(servers.ENDPOINT)}fi
"""


@dataclass(frozen=True)
class Transfer:
    """One direction of TCP. bound: whose CPU was busy meanwhile, in words; None where none was."""

    sender: str
    receiver: str
    carried: Carried
    bound: str | None


@dataclass(frozen=True)
class Datagrams:
    """One direction of UDP. offered: bit/s of payload; unread: datagrams that arrived and that the receiver's
    socket dropped, which `loss` does not hold."""

    sender: str
    receiver: str
    offered: float
    loss: Loss
    unread: int


@dataclass(frozen=True)
class Measured:
    """All that was found out about a pair. mtu: what passes both ways; links: {node: its interface's MTU}.

    zones: of the first and the second node. shaped: nodes on which a profile of ours was in force.
    """

    pair: tuple[str, str]
    zones: tuple[str, str]
    cpus: dict[str, int]
    links: dict[str, int]
    mtu: int
    rtts: tuple[float, ...]
    transfers: tuple[Transfer, ...]
    datagrams: tuple[Datagrams, ...]
    shaped: tuple[str, ...]


def seconds(duration: int) -> float:
    """How long measuring takes, with `duration` s of TCP each way."""
    return 2 * (duration + UDP_SECONDS) + 15


class Calibration:
    """Measures the first two nodes. `duration`: seconds of TCP each way."""

    def __init__(self, nodes: Nodes, duration: int, say: Callable[[str], None]) -> None:
        self.nodes, self.duration, self.say = nodes, duration, say
        first, second = list(nodes)[:2]
        self.pair = (first, second)
        self.client, self.server = nodes[first], nodes[second]

    async def measure(self) -> Measured:
        """Measure, and take away what that took, whatever happens. Raises UserError, NodeError."""
        await self._check_tools()
        entered: dict[str, str] = {}
        try:
            for node in (self.client, self.server):
                entered[node.name] = (await node.sh(_ENTER)).stdout.strip()
                if entered[node.name] == "overlay":
                    raise UserError(
                        node.name,
                        "must carry no overlay while its own network is measured",
                        seen="an endpoint of one",
                        fix="Reset the overlay, or take nodes that are clean",
                    )
            return await self._measure()
        finally:
            await self._tidy(entered)

    async def _measure(self) -> Measured:
        pair = (self.client, self.server)
        cpus = {node.name: int((await node.sh("nproc")).stdout) for node in pair}
        links = {node.name: int((await node.sh(f"cat {_link(node)}/mtu")).stdout) for node in pair}
        shaped = tuple([node.name for node in pair if qdisc_bytes(await self._state(node)) is not None])
        for name in shaped:
            self.say(f"{name}: a profile is in force and stays; what is measured is the network with it")
        mtu = await self._mtu(min(links.values()))
        self.say(f"MTU: {mtu} bytes pass both ways")
        # Before the load: afterwards a token bucket may be empty.
        shaper = Shaper(self.nodes, load_profile("none"))
        rtts = await shaper.rtts(*self.pair, RTT_PINGS, RTT_INTERVAL)
        found, half = calibration.rtt(rtts)
        self.say(f"RTT: {found.median * 1e3:.3f} ms ± {half * 1e3:.3f}")
        directions = tools.load("iperf3").directions
        transfers = [await self._tcp(direction) for direction in directions]
        datagrams = [await self._udp(direction, transfers, mtu) for direction in directions]
        return Measured(
            pair=self.pair, zones=(self.client.spec.zone, self.server.spec.zone), cpus=cpus, links=links,
            mtu=mtu, rtts=tuple(rtts), transfers=tuple(transfers), datagrams=tuple(datagrams), shaped=shaped,
        )  # fmt: skip

    async def _check_tools(self) -> None:
        script = f"for c in {' '.join(TOOLS)}; do command -v $c >/dev/null || echo $c; done"
        for node in (self.client, self.server):
            missing = (await node.sh(script)).stdout.split()
            if missing:
                raise UserError(
                    node.name,
                    "must have the commands that measuring needs",
                    seen=f"none of these: {', '.join(missing)}",
                    fix="Install them there; on Debian and Ubuntu: iperf3, iputils-ping, iproute2, systemd",
                )

    async def _mtu(self, link: int) -> int:
        """Largest packet that passes both ways with DF set, at most the smaller interface's MTU."""
        found = []
        for sender, receiver in ((self.client, self.server), (self.server, self.client)):

            async def passes(size: int, sender: Node = sender, receiver: Node = receiver) -> bool:
                argv = ["ping", "-n", "-q", "-M", "do", "-c", "3", "-i", "0.2", "-W", "1"]
                argv += ["-s", str(size - HEADERS), _address(receiver)]
                return (await sender.sh(shlex.join(argv), check=False)).exit_code == 0

            size = await calibration.largest(LEAST_MTU, min(link, MOST_MTU), passes)
            if size is None:
                raise UserError(
                    f"{sender.name}→{receiver.name}",
                    f"must let pings of {LEAST_MTU} bytes pass",
                    seen="no reply",
                    fix="Let ICMP through between the hosts, on the underlay's addresses",
                )
            found.append(size)
        return min(found)

    async def _tcp(self, direction: str) -> Transfer:
        parameters = {"protocol": "tcp", "duration": self.duration, "omit": 0, "streams": 1}
        sender, receiver = self._ends(direction)
        self.say(f"{sender.name}→{receiver.name}: TCP for {readable(self.duration)} …")
        before = [await self._state(node) for node in (sender, receiver)]
        samples, report = await self._iperf3({**parameters, "length": BLOCK, "port": iperf3.PORT}, direction)
        after = [await self._state(node) for node in (sender, receiver)]
        idle = dict(zip((sender.name, receiver.name), map(idle_share, before, after), strict=True))
        try:
            carried = calibration.carried(samples, grain=BLOCK * 8)
        except CalibrationError as error:
            raise NodeError(f"iperf3 from {sender.name} to {receiver.name}: {error}") from error
        bound = cpu_bound(idle, report["end"].get("cpu_utilization_percent", {}))
        drop = f", then {carried.sustained / 1e6:.4g} Mbit/s" if carried.sustained else ", no drop"
        self.say(f"{sender.name}→{receiver.name}: goodput {carried.rate / 1e6:.4g} Mbit/s{drop}")
        return Transfer(sender.name, receiver.name, carried, bound)

    async def _udp(self, direction: str, transfers: list[Transfer], mtu: int) -> Datagrams:
        sender, receiver = self._ends(direction)
        rates = calibration.slower([t.carried for t in transfers], mtu)
        payload = mtu - HEADERS
        offered = UDP_SHARE * (rates.sustained or rates.rate) * payload / (mtu + 14)
        self.say(f"{sender.name}→{receiver.name}: UDP at {offered / 1e6:.4g} Mbit/s for {UDP_SECONDS} s …")
        parameters = {
            "protocol": "udp", "duration": UDP_SECONDS, "omit": 0, "streams": 1,
            "offered": offered, "datagram": payload, "port": iperf3.PORT,
        }  # fmt: skip
        before = int((await receiver.sh(SOCKET_DROPS)).stdout)
        samples, _ = await self._iperf3(parameters, direction)
        unread = int((await receiver.sh(SOCKET_DROPS)).stdout) - before
        value = {s.metric: s for s in samples if s.t_start is None}
        one = value["loss"].resolution
        assert one  # iperf3's parser gives it, as it counts datagrams
        counted = round(1 / one)
        missing = round(value["loss"].value * counted)
        lost = max(0, missing - unread)
        return Datagrams(
            sender.name,
            receiver.name,
            value["offered"].value,
            calibration.loss(counted, lost),
            missing - lost,
        )

    async def _iperf3(self, parameters: JSON, direction: str) -> tuple[list[Sample], JSON]:
        """Samples, and iperf3's whole report. The client is always the first node: one port to let through."""
        tool = tools.load("iperf3")
        serving = tool.server(parameters)
        assert serving is not None
        # Anew for each: a server ends by itself after servers.LIFETIME, and a bucket may take that long.
        await servers.start(self.server, {"iperf3": serving})
        limit = tool.timeout(parameters)
        argv = tool.client_argv(_address(self.server), parameters, direction)
        script = servers.in_endpoint(argv, limit)
        done = await self.client.sh(script, check=False, timeout=limit + 10)
        try:
            return tool.parse(done.stdout, done.stderr, done.exit_code, parameters), json.loads(done.stdout)
        except ParseError as error:
            raise NodeError(f"iperf3 between {' and '.join(self.pair)}: {error}") from error

    def _ends(self, direction: str) -> tuple[Node, Node]:
        """Sender and receiver."""
        ends = (self.client, self.server)
        return ends if direction == tools.CLIENT_TO_SERVER else ends[::-1]

    async def _state(self, node: Node) -> dict[str, Any]:
        return read_state((await node.sh(state_script(node.spec.underlay_interface))).stdout)

    async def _tidy(self, entered: dict[str, str]) -> None:
        for name, how in entered.items():
            try:
                # Ending the server ends a client that still runs, too.
                await servers.stop(self.nodes[name])
                if how.startswith("made"):
                    await self.nodes[name].sh(servers.detach_script(servers.ENDPOINT, how))
            except NodeError as error:  # a dead host is often why we leave: that is what the user has to read
                self.say(f"could not tidy up: {error}")


def cpu_bound(idle: dict[str, float | None], used: JSON) -> str | None:
    """Whose CPU held a transfer back, in words; None where nobody's did.

    idle: {node: share of all CPUs}. used: iperf3's cpu_utilization_percent, of one CPU: on a host of many CPUs
    one busy thread leaves the others idle.
    """
    told = [
        f"{share:.0%} of {node}'s CPU was idle"
        for node, share in idle.items()
        if share is not None and share < BUSY
    ]
    most = max((used.get(key, 0) for key in ("host_total", "remote_total")), default=0)
    if not told and most > 100 * (1 - BUSY):
        told = [f"iperf3 used {most:.0f} % of one CPU"]
    return "; ".join(told) or None


def _address(node: Node) -> str:
    return str(node.spec.underlay_address.ip)


def _link(node: Node) -> str:
    return f"/sys/class/net/{shlex.quote(node.spec.underlay_interface)}"
