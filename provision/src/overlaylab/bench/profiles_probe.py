"""Transfers that a profile is judged by: sent by one node, counted at the other."""

from __future__ import annotations

import asyncio
import json
import math
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from overlaylab.bench.profiles_judge import Cap, Second, Udp
from overlaylab.core.errors import NodeError
from overlaylab.core.model import JSON
from overlaylab.nodes import servers
from overlaylab.nodes.ssh import Nodes
from overlaylab.shaping.node_state import SOCKET_DROPS, idle_share, read_state, state_script
from overlaylab.tools import base as tools
from overlaylab.tools import iperf3
from overlaylab.tools.base import Server
from overlaylab.tools.parsers import ParseError

# Bytes that TCP's receiver counts at once.
BLOCK = 8192
# Bytes that a UDP socket has in the kernel at most (net.core.wmem_default).
SOCKET_BUFFER = 212_992
# Memory that a datagram takes there over its frame's bytes, at most.
PACKING = 2.5


def streams_for(cap: Cap) -> int:
    """UDP streams whose sockets fill the queue: a socket that waits for its own packets offers no more than the rate."""
    return 1 + math.ceil(PACKING * (cap.queue + cap.burst) / SOCKET_BUFFER)


class Probe:
    """Sends between nodes that are up. Every method raises NodeError where a tool fails."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.tool = tools.load("iperf3")

    async def start(self, names: Iterable[str], count: int = 1) -> None:
        """Servers on the nodes, `count` on each, as one serves one transfer at a time; earlier ones are stopped."""
        wanted = {f"iperf3-{n}": self._server(iperf3.PORT + n) for n in range(count)}
        await asyncio.gather(*(servers.start(self.nodes[name], wanted) for name in names))

    def _server(self, port: int) -> Server:
        server = self.tool.server({"port": port})
        assert server is not None
        return server

    async def stop(self) -> None:
        await asyncio.gather(*map(servers.stop, self.nodes.values()))

    async def tcp(self, client: str, server: str, *, seconds: int, omit: int) -> float:
        """Goodput in bit/s over `seconds`, after `omit` further ones."""
        report = await self._transfer(client, server, {"protocol": "tcp", "duration": seconds, "omit": omit})
        return float(report["end"]["sum_received"]["bits_per_second"])

    async def series(
        self, client: str, server: str, *, seconds: int, interval: float, server_number: int = 0
    ) -> list[Second]:
        """What arrived in each interval of a TCP transfer, from its very start."""
        parameters = {"protocol": "tcp", "duration": seconds, "omit": 0, "port": iperf3.PORT + server_number}
        return read_series(await self._transfer(client, server, parameters, interval))

    async def udp(
        self, client: str, server: str, *, offered: float, payload: int, seconds: int, streams: int = 1
    ) -> tuple[Udp, float]:
        """offered: bit/s of payload. Also the share of CPU that was idle on the busier node."""
        states, dropped = await self._states(client, server), await self._socket_drops(server)
        parameters = {"protocol": "udp", "duration": seconds, "omit": 0}
        parameters |= {"offered": offered, "datagram": payload, "streams": streams}
        report = await self._transfer(client, server, parameters)
        after = await self._states(client, server)
        shares = [share for share in map(idle_share, states, after) if share is not None]
        dropped = await self._socket_drops(server) - dropped
        return read_udp(report, dropped), min(shares, default=0.0)

    async def _socket_drops(self, name: str) -> int:
        return int((await self.nodes[name].sh(SOCKET_DROPS)).stdout)

    async def _states(self, *names: str) -> list[dict[str, Any]]:
        specs = {name: self.nodes[name].spec for name in names}
        done = await asyncio.gather(
            *(self.nodes[name].sh(state_script(specs[name].underlay_interface)) for name in names)
        )
        return [read_state(one.stdout) for one in done]

    async def _transfer(
        self, client: str, server: str, asked: Mapping[str, Any], interval: float | None = None
    ) -> JSON:
        parameters = {"streams": 1, "length": BLOCK, "port": iperf3.PORT, **asked}
        argv = list(self.tool.client_argv(self._address(server), parameters))
        if interval is not None:
            argv[argv.index("--interval") + 1] = f"{interval:g}"
        limit = self.tool.timeout(parameters)
        done = await self.nodes[client].sh(shlex.join(argv), check=False, timeout=limit)
        try:
            self.tool.parse(done.stdout, done.stderr, done.exit_code, parameters)
        except ParseError as error:
            raise NodeError(f"iperf3 from {client} to {server}: {error}") from error
        printed: JSON = json.loads(done.stdout)
        return printed

    def _address(self, name: str) -> str:
        return str(self.nodes[name].spec.underlay_address.ip)


def read_udp(report: JSON, dropped: int = 0) -> Udp:
    """From a client's report of a transfer of which nothing was omitted.

    dropped: datagrams that came to the receiver's node and found its socket full; the network carried them.

    Bytes are what the receiver told at the end; its counts of losses know nothing of the last ones.
    """
    end, payload = report["end"], report["start"]["test_start"]["blksize"]
    streams = report["server_output_json"]["end"]["streams"]
    return Udp(
        sent=end["sum_sent"]["packets"],
        received=min(end["sum_received"]["bytes"] // payload + dropped, end["sum_sent"]["packets"]),
        payload=payload,
        seconds=end["sum_sent"]["seconds"],
        overtaken=sum(one["udp"]["out_of_order"] for one in streams),
    )


def read_series(report: JSON) -> list[Second]:
    """What the receiver counted in each of its intervals, all streams together."""
    totals = [interval["sum"] for interval in report["server_output_json"]["intervals"]]
    # A sliver at the end is some packets over no time.
    return [
        Second(total["start"], total["end"], total["bytes"])
        for total in totals
        if total["end"] - total["start"] > 0.05
    ]
