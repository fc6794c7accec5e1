"""netperf: requests and their answers, one at a time, over TCP, UDP, or a TCP connection for each of them."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import BYTES, CLIENT_TO_SERVER, Server, server_port
from overlaylab.tools.parsers import netperf

TESTS = {"tcp_rr": "TCP_RR", "udp_rr": "UDP_RR", "tcp_crr": "TCP_CRR"}
# bit/s: what no tier falls below, for the timeout.
SLOW_PATH = 1e6


class Netperf:
    """A number of transactions, not a time: a time may pass without any, and is then reported as a rate of zero."""

    name = "netperf"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = True
    latency_is = "mean"
    parse = staticmethod(netperf.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["test", "transactions", "request"],
        "properties": {
            "test": {"enum": list(TESTS)},
            "transactions": {
                "type": "integer",
                "scaled": True,
                "minimum": 1,
                "maximum": 10000000,
                "description": "the number of requests, one after the other, such as 50000",
            },
            "request": {
                **BYTES,
                "minimum": 1,
                "maximum": 1048576,
                "description": "the size of a request, such as 300 bytes",
            },
            "response": {
                **BYTES,
                "minimum": 1,
                "maximum": 1048576,
                "description": "the size of an answer, such as 300 bytes; left out, the request's",
            },
            # netserver's own port, 12865, is taken where a distribution starts one at boot.
            "port": server_port(19768, "tcp"),
            "data_port": server_port(19769, "tcp", "udp"),
        },
        # A UDP datagram holds no more (RFC 768, and 20 bytes of IP).
        "if": {"properties": {"test": {"const": "udp_rr"}}},
        "then": {"properties": {"request": {"maximum": 65507}, "response": {"maximum": 65507}}},
    }

    def server(self, parameters: JSON) -> Server:
        port = parameters["port"]
        return Server(("netserver", "-D", "-4", "-p", str(port)), port)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        request, response = _sizes(parameters)
        return (
            *("netperf", "-4", "-H", server_address, "-p", str(parameters["port"])),
            *("-t", TESTS[parameters["test"]], "-l", f"-{parameters['transactions']}"),
            # No banner; latencies kept for percentiles; CPU of both ends.
            *("-P", "0", "-j", "-c", "-C", "--", "-r", f"{request},{response}"),
            # A fixed data port, so that a firewall between nodes can be told about it.
            *("-P", f",{parameters['data_port']}", "-k", ",".join(netperf.SELECTORS)),
        )

    def duration(self, parameters: JSON) -> float:
        return self.over(parameters, 0.001, 1e8)

    def over(self, parameters: JSON, round_trip: float, rate: float) -> float:
        """Seconds on a path of that round trip in s which carries `rate` bit/s."""
        transactions: int = parameters["transactions"]
        return transactions * (round_trip + 8 * sum(_sizes(parameters)) / rate)

    def timeout(self, parameters: JSON) -> float:
        # A single datagram that is lost stalls UDP_RR for good: it waits for an answer and sends nothing again.
        transactions: int = parameters["transactions"]
        return 30 + transactions * (0.005 + 8 * sum(_sizes(parameters)) / SLOW_PATH)

    def version_argv(self) -> tuple[str, ...]:
        return ("netperf", "-V")


def _sizes(parameters: JSON) -> tuple[int, int]:
    """Bytes of a request and of its answer."""
    return parameters["request"], parameters.get("response", parameters["request"])


TOOL = Netperf()
