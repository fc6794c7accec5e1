"""sockperf under-load: round-trip times of messages that are sent on a schedule, answered or not."""

from __future__ import annotations

from typing import ClassVar

from overlaylab.core.model import JSON
from overlaylab.tools.base import BYTES, CLIENT_TO_SERVER, SECONDS, Server, server_port
from overlaylab.tools.parsers import sockperf

# sockperf writes its log to a file that it opens by name. Here that is a pipe, descriptor 5, whose content follows what
# sockperf prints: both at once would meet in the middle of a line, and standard output itself cannot be opened
# where it is a daemon's socket. The exit code comes by descriptor 3: a pipeline's is that of its end. The shells
# outlive a TERM, so that timeout(1) goes on to KILL what does not heed it.
LOG = "/dev/fd/5"
LOG_AFTERWARDS = """trap : TERM
exec 4>&1
code=$(trap : TERM
    { { trap : TERM; "$@" 5>&1 >&4 3>&- 4>&-; echo $? >&3; } |
      { trap : TERM; log=$(cat); printf '%s\\n' "$log" >&4; }; } 3>&1)
exit "${code:-1}\""""


class Sockperf:
    """Open loop: during a stall messages are sent on, so that each of them shows how long it lasted for it.

    The sender waits for the next message's time in a loop of its own, which keeps one CPU busy throughout.
    """

    name = "sockperf"
    directions = (CLIENT_TO_SERVER,)
    closed_loop = False
    latency_is = "median"
    parse = staticmethod(sockperf.parse)
    parameters: ClassVar[JSON] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["protocol", "duration", "messages_per_second", "message"],
        "properties": {
            "protocol": {"enum": ["udp", "tcp"]},
            "duration": {
                **SECONDS,
                "scaled": True,
                "maximum": 3600,
                "description": "whole seconds, such as 10 s",
            },
            "messages_per_second": {
                "type": "integer",
                "minimum": 20,
                "maximum": 100000,
                "description": "how many messages are sent each second, such as 1000",
            },
            "message": {
                **BYTES,
                "minimum": 14,  # sockperf's own header
                "maximum": 65507,
                "description": "the size of a message and of its answer, such as 64 bytes",
            },
            "port": server_port(19770, "tcp", "udp"),
        },
    }

    def server(self, parameters: JSON) -> Server:
        port, protocol = parameters["port"], parameters["protocol"]
        return Server(("sockperf", "server", *_tcp(parameters), "-p", str(port)), port, protocol)

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        return (
            *("sh", "-c", LOG_AFTERWARDS, "sh"),
            *(
                "sockperf",
                "under-load",
                *_tcp(parameters),
                "-i",
                server_address,
                "-p",
                str(parameters["port"]),
            ),
            *("--time", str(parameters["duration"]), "--mps", str(parameters["messages_per_second"])),
            # Every message is answered; round trips, not their halves. Its --no-rdtsc is no choice: 3.7 then takes the
            # ticks of the CPU's counter for those of the clock, and sends at a rate that is that much off.
            *("--reply-every", "1", "--msg-size", str(parameters["message"]), "--full-rtt"),
            *("--full-log", LOG),
        )

    def duration(self, parameters: JSON) -> float:
        # It times the CPU's counter for two seconds before.
        measured: float = parameters["duration"]
        return measured + 2

    def timeout(self, parameters: JSON) -> float:
        # The log is written at the end, a line for each message.
        return 30 + 2 * self.duration(parameters)

    def version_argv(self) -> tuple[str, ...]:
        return ("sockperf", "--version")


def _tcp(parameters: JSON) -> tuple[str, ...]:
    return ("--tcp",) if parameters["protocol"] == "tcp" else ()


TOOL = Sockperf()
