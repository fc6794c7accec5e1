"""iperf 2: TCP goodput with parallel streams, or UDP at an offered load as the server reports it."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import (
    BYTES,
    CLIENT_TO_SERVER,
    DATAGRAM,
    OFFERED,
    SECONDS,
    STREAMS,
    Server,
    server_port,
)
from overlaylab.tools.parsers import iperf

# iperf says last how many datagrams were late, and only where there were some: without an end to look for, output that
# was cut short would be a zero. The shell outlives a TERM, so that timeout(1) goes on to KILL what iperf leaves of itself.
WITH_AN_END = f'trap : TERM; "$@"; code=$?; echo "{iperf.END}"; exit "$code"'

# As a server of UDP, 2.1.8 crashed after some 15 clients (segmentation fault). With --parallel it ends after that many
# streams, so that each trial has one of its own.
ANEW = 'while :; do "$@"; sleep 0.1; done'

# Bytes in a UDP datagram (RFC 768). A server reads 1470 of each by itself, and counts no more.
LARGEST = 65507


class Iperf:
    """A server takes one protocol; after UDP it sends its report to the client, which prints it."""

    name = "iperf"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = False
    latency_is = None
    parse = staticmethod(iperf.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["protocol", "duration", "streams"],
        "properties": {
            "protocol": {"enum": ["tcp", "udp"]},
            "duration": {
                **SECONDS,
                "scaled": True,
                "description": "whole seconds, such as 10 s, TCP's slow start among them",
            },
            "streams": STREAMS,
            "offered": OFFERED,
            "datagram": {
                **DATAGRAM,
                "minimum": 128,  # for its own headers
                "description": "the UDP payload of one datagram, such as 1470 bytes, iperf's own; path: the largest that the overlay carries whole",
            },
            "length": {
                **BYTES,
                "minimum": 128,
                "maximum": 1048576,
                "default": 131072,
                "description": "what TCP is given at once, such as 128 KiB",
            },
            "mss": {
                **BYTES,
                "minimum": 88,  # Linux's TCP_MIN_MSS
                "maximum": 32767,  # Linux's MAX_TCP_WINDOW
                "description": "TCP's largest segment, without headers, such as 1358 bytes; left out, the path's",
            },
            "port": server_port(5001, "tcp", "udp"),
        },
        "if": {"properties": {"protocol": {"const": "udp"}}},
        "then": {"required": ["offered", "datagram"], "properties": {"mss": {"not": {}}}},
        "else": {"properties": {"offered": {"not": {}}, "datagram": {"not": {}}}},
    }

    def server(self, parameters: JSON) -> Server:
        port, protocol = parameters["port"], parameters["protocol"]
        argv = ("iperf", "--server", *_udp(parameters), "--port", str(port))
        if protocol == "udp":
            whole = ("--len", str(LARGEST))
            argv = ("sh", "-c", ANEW, "sh", *argv, *whole, "--parallel", str(parameters["streams"]))
        return Server(argv, port, protocol)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        streams = parameters["streams"]
        argv = [
            *("sh", "-c", WITH_AN_END, "sh"),
            *("iperf", "--client", server_address, "--port", str(parameters["port"]), *_udp(parameters)),
            # Its CSV leaves the server's report out; so its text, with exact numbers: bytes and bit/s.
            *("--enhanced", "--format", "b"),
            *("--time", str(parameters["duration"]), "--parallel", str(streams)),
        ]
        if parameters["protocol"] == "udp":
            # --bandwidth counts per stream.
            argv += ["--bandwidth", str(round(parameters["offered"] / streams))]
            argv += ["--len", str(parameters["datagram"])]
        else:
            argv += ["--len", str(round(parameters["length"]))]
            if "mss" in parameters:
                argv += ["--mss", str(parameters["mss"])]
        return tuple(argv)

    def duration(self, parameters: JSON) -> float:
        seconds: float = parameters["duration"]
        return seconds

    def timeout(self, parameters: JSON) -> float:
        # What lies in the buffers of all streams is sent after the time is over, and is waited for.
        return 30 + 2 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("iperf", "--version")


def _udp(parameters: JSON) -> tuple[str, ...]:
    return ("--udp",) if parameters["protocol"] == "udp" else ()


TOOL = Iperf()
