"""qperf: TCP and UDP bandwidth in whole messages, one-way latencies, and the configuration of both ends."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import BYTES, CLIENT_TO_SERVER, SECONDS, Server, server_port
from overlaylab.tools.parsers import qperf


class Qperf:
    """tcp_lat and udp_lat count round trips of one byte and report half of each: a one-way latency.

    udp_bw sends as fast as the node can, whatever becomes of it.
    """

    name = "qperf"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = True
    latency_is = "mean"
    parse = staticmethod(qperf.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["test"],
        "properties": {
            "test": {"enum": ["tcp_bw", "tcp_lat", "udp_bw", "udp_lat", "conf"]},
            "duration": {
                **SECONDS,
                "scaled": True,
                "description": "whole seconds, such as 2 s, which is qperf's own default",
            },
            "message": {
                **BYTES,
                "minimum": 1,
                "maximum": 1073741824,
                "description": "the size of one message, such as 64 KiB, qperf's own for tcp_bw; 32 KiB for udp_bw",
            },
            "port": server_port(19765, "tcp"),
            "data_port": server_port(19766, "tcp", "udp"),
        },
        "if": {"properties": {"test": {"const": "conf"}}},
        "then": {"properties": {"duration": {"not": {}}, "message": {"not": {}}}},
        "else": {
            "required": ["duration"],
            "if": {"properties": {"test": {"enum": ["udp_bw", "udp_lat"]}}},
            "then": {"properties": {"message": {"maximum": 65507}}},
        },
    }

    def server(self, parameters: JSON) -> Server:
        port = parameters["port"]
        return Server(("qperf", "--listen_port", str(port)), port)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        argv = ["qperf", "--listen_port", str(parameters["port"])]
        if parameters["test"] != "conf":
            # A fixed data port, so that a firewall between nodes can be told about it.
            argv += ["--ip_port", str(parameters["data_port"]), "--time", str(parameters["duration"])]
        if "message" in parameters:
            argv += ["--msg_size", str(parameters["message"])]
        return (*argv, "--unify_nodes", "--unify_units", "-vvs", server_address, parameters["test"])

    def duration(self, parameters: JSON) -> float:
        seconds: float = parameters.get("duration", 0)
        return seconds

    def timeout(self, parameters: JSON) -> float:
        return 20 + 1.5 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("qperf", "--version")


TOOL = Qperf()
