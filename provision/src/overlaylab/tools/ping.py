"""ping: round-trip times of ICMP echo, and the ratio of requests that got no reply."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import BYTES, CLIENT_TO_SERVER
from overlaylab.tools.parsers import ping


class Ping:
    """The kernel answers, so there is no server."""

    name = "ping"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = False
    latency_is = "median"
    parse = staticmethod(ping.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["count", "interval", "payload"],
        "properties": {
            "count": {
                "type": "integer",
                "scaled": True,
                "minimum": 1,
                "maximum": 1000000,
                "description": "the number of echo requests, such as 200",
            },
            "interval": {
                "type": "number",
                "unit": "s",
                "minimum": 0.002,
                "maximum": 60,
                "description": "the time between two requests, such as 20 ms",
            },
            "payload": {
                **BYTES,
                # ping needs 16 bytes of payload to put the time of sending in.
                "minimum": 16,
                "maximum": 65507,
                "description": "the payload of one request, such as 56 bytes",
            },
        },
    }

    def server(self, parameters: JSON) -> None:
        return None

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        return (
            *("ping", "-n", "-D", "-c", str(parameters["count"]), "-i", f"{parameters['interval']:g}"),
            *("-s", str(parameters["payload"]), "-W", "2", server_address),
        )

    def duration(self, parameters: JSON) -> float:
        seconds: float = parameters["count"] * parameters["interval"]
        return seconds

    def timeout(self, parameters: JSON) -> float:
        # Where a reply is lost, ping waits for it: up to the 2 s of -W at the end.
        return 20 + 1.5 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("ping", "-V")


TOOL = Ping()
