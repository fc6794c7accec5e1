"""iperf3: TCP goodput and retransmits, or UDP goodput, jitter, loss and reordering at an offered load."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import (
    BYTES,
    CLIENT_TO_SERVER,
    DATAGRAM,
    OFFERED,
    SECONDS,
    SERVER_TO_CLIENT,
    STREAMS,
    Server,
    server_port,
)
from overlaylab.tools.parsers import iperf3

PORT = 5201


class Iperf3:
    """The server reports in JSON too: only the receiver knows what arrived in each interval."""

    name = "iperf3"
    directions = (CLIENT_TO_SERVER, SERVER_TO_CLIENT)
    closed_loop = False
    latency_is = None
    parse = staticmethod(iperf3.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["protocol", "duration", "omit", "streams"],
        "properties": {
            "protocol": {"enum": ["tcp", "udp"]},
            "duration": {
                **SECONDS,
                "scaled": True,
                "description": "whole seconds that count, such as 5 s",
            },
            "omit": {
                **SECONDS,
                "minimum": 0,
                "maximum": 60,
                "description": "whole seconds before them that do not count, such as 1 s",
            },
            "streams": STREAMS,
            "offered": OFFERED,
            "datagram": {
                **DATAGRAM,
                "minimum": 16,
                "description": "the UDP payload of one datagram, such as 1448 bytes; path: the largest that the overlay carries whole",
            },
            "length": {
                **BYTES,
                "minimum": 128,
                "maximum": 1048576,
                "default": 131072,
                "description": "what is written and read at once, such as 8192 bytes: the receiver counts "
                "whole ones, so it is the step of TCP goodput",
            },
            "mss": {
                **BYTES,
                "minimum": 88,  # Linux's TCP_MIN_MSS
                "maximum": 9216,  # iperf's MAX_MSS
                "description": "TCP's largest segment, without headers, such as 1358 bytes; left out, the path's",
            },
            "port": server_port(PORT, "tcp", "udp"),
        },
        # Left out, iperf3 would offer 1 Mbit/s, in datagrams of a size that depends on its version.
        "if": {"properties": {"protocol": {"const": "udp"}}},
        "then": {"required": ["offered", "datagram"], "properties": {"mss": {"not": {}}}},
        "else": {"properties": {"offered": {"not": {}}, "datagram": {"not": {}}}},
    }

    def server(self, parameters: JSON) -> Server:
        # It takes UDP at the same port, agreed upon over TCP.
        port = parameters["port"]
        return Server(("iperf3", "--server", "--port", str(port), "--json"), port)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        streams = parameters["streams"]
        argv = [
            *("iperf3", "--client", server_address, "--port", str(parameters["port"])),
            *("--json", "--get-server-output", "--connect-timeout", "5000"),
            *("--time", str(parameters["duration"]), "--omit", str(parameters["omit"])),
            *("--interval", "1", "--parallel", str(streams)),
        ]
        if parameters["protocol"] == "udp":
            # --bitrate counts per stream.
            argv += ["--udp", "--bitrate", str(round(parameters["offered"] / streams))]
            argv += ["--length", str(parameters["datagram"])]
        else:
            argv += ["--length", str(round(parameters["length"]))]
            if "mss" in parameters:
                argv += ["--set-mss", str(parameters["mss"])]
        if direction == SERVER_TO_CLIENT:
            argv.append("--reverse")
        return tuple(argv)

    def duration(self, parameters: JSON) -> float:
        seconds: float = parameters["omit"] + parameters["duration"]
        return seconds

    def timeout(self, parameters: JSON) -> float:
        # Connecting may take 5 s, and a deep queue drains before the server reports.
        return 20 + 1.5 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("iperf3", "--version")


TOOL = Iperf3()
