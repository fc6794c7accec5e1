"""connect: how long setting a TCP connection up takes, which is where firewalls and policies are looked at."""

from __future__ import annotations

import inspect
from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import CLIENT_TO_SERVER, Server, server_port
from overlaylab.tools.on_node import connect as program
from overlaylab.tools.parsers import connect


class Connect:
    """A program of the lab's own on both nodes: the tools that measure this are not in the distribution."""

    name = "connect"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = True
    latency_is = "median"
    parse = staticmethod(connect.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["count"],
        "properties": {
            "count": {
                "type": "integer",
                "scaled": True,
                "minimum": 1,
                "maximum": 20000,
                "description": "the number of connections, one after the other, such as 200",
            },
            "port": server_port(19767, "tcp"),
        },
    }

    def server(self, parameters: JSON) -> Server:
        port = parameters["port"]
        return Server(("python3", "-c", _source(), str(port)), port)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        return (
            *("python3", "-c", _source()),
            *(str(parameters["port"]), server_address, str(parameters["count"])),
        )

    def duration(self, parameters: JSON) -> float:
        # Some milliseconds each, most of them the node's own.
        connections: int = parameters["count"]
        return connections * 0.005

    def timeout(self, parameters: JSON) -> float:
        return 30 + 20 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("python3", "--version")


def _source() -> str:
    """The program as it is handed to python3 on a node. systemd would expand `$` and `%`: it has neither."""
    return inspect.getsource(program)


TOOL = Connect()
