"""What a tool is: how to call it, how long it takes, who reads its output."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import overlaylab.tools as package
from overlaylab.core.documents import unknown
from overlaylab.core.documents_limits import Field
from overlaylab.core.metrics import METRICS, UNITS, Metric
from overlaylab.core.model import JSON, Sample
from overlaylab.core.quantities import QuantityError, quantity
from overlaylab.core.schema_errors import Violation, best_error, in_words, show

CLIENT_TO_SERVER, SERVER_TO_CLIENT = "client-to-server", "server-to-client"

SECONDS = {"type": "number", "unit": "s", "multipleOf": 1, "minimum": 1, "maximum": 86400}
BYTES = {"type": "number", "unit": "bytes", "multipleOf": 1}
STREAMS = {
    "type": "integer",
    "minimum": 1,
    "maximum": 128,
    "description": "parallel streams, from 1 to 128",
}
OFFERED = {
    "type": "number",
    "unit": "bit/s",
    "exclusiveMinimum": 0,
    "description": "the UDP payload offered by all streams together, such as 100 Mbit/s",
}


def server_port(default: int, *transports: str) -> JSON:
    """A parameter that is a port of the tool's server. transports: ``tcp``, ``udp``: what arrives there."""
    limits = {"type": "integer", "minimum": 1024, "maximum": 65535, "description": "a port above 1023"}
    return {**limits, "default": default, "transports": transports}


# In place of a size, where a property has ``path``: the largest datagram that the overlay carries whole.
PATH = "path"
DATAGRAM = BYTES | {"type": ["number", "string"], "path": True, "pattern": f"^{PATH}$", "maximum": 65507}
# Bytes of an IPv4 header without options and a UDP header.
UDP_HEADERS = 28


@dataclass(frozen=True)
class Server:
    """A tool's server, which serves any number of trials until it is ended."""

    argv: tuple[str, ...]
    # Open once the server is ready: a listening TCP socket, or a UDP one that is bound, from when on the kernel keeps
    # what arrives.
    port: int
    # ``tcp`` or ``udp``.
    transport: str = "tcp"


class Tool(Protocol):
    """One tool. The runner calls it inside a network namespace, so argv holds the tool alone.

    A file ``tools/<name>.py`` holds one as ``TOOL``; adding a tool is adding such a file. One that
    measures what no other does declares it as ``metrics``, a tuple of Metric; the others are in core.metrics.
    """

    # As suites write it; the file's own name.
    name: str

    # JSON Schema of the parameters, in base units, as suites state them.
    #
    # Beyond JSON Schema: ``unit`` on a property (s, bit/s, bytes) means that suites write it as a quantity (``5 s``),
    # ``path`` that they may write `PATH` instead, ``scaled`` that SCALE multiplies it, ``transports`` that it is a port
    # (`server_port`), ``default`` is what counts where a suite is silent: only for what changes no result, such as a
    # port.
    parameters: JSON

    # Which way data can flow, ``client-to-server`` first.
    directions: tuple[str, ...]

    # (stdout, stderr, exit code, parameters) -> samples; raises ParseError. Exit code None: stopped.
    parse: Callable[[str, str, int | None, JSON], list[Sample]]

    # Whether it asks again only once it was answered: a stall is then one slow answer, however many requests it would
    # have held up. Only latencies are labelled with it.
    closed_loop: bool

    # What a trial's latency is of its messages: their ``mean`` where the tool tells no more, else their ``median``.
    # None: it measures none.
    latency_is: str | None

    def server(self, parameters: JSON) -> Server | None:
        """What has to run at the other end; None where the kernel answers."""

    def client_argv(
        self, server_address: str, parameters: JSON, direction: str = CLIENT_TO_SERVER
    ) -> tuple[str, ...]:
        """The client: what is timed and parsed."""

    def duration(self, parameters: JSON) -> float:
        """Seconds that one trial is expected to take, with what it omits at the start."""

    def timeout(self, parameters: JSON) -> float:
        """Seconds after which a trial has failed."""

    def version_argv(self) -> tuple[str, ...]:
        """Prints the tool's version in its first line."""


class ParameterError(ValueError):
    """A parameter is wrong; ``violation`` says which and how, for whoever knows the file."""

    def __init__(self, violation: Violation) -> None:
        self.violation = violation
        super().__init__(f"{violation.fields}: {violation.rule}")


def names() -> tuple[str, ...]:
    """Every tool that has a file, sorted."""
    return tuple(
        sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.ispkg and m.name != "base")
    )


def load(name: str) -> Tool:
    """The tool of that name. Raises UserError for one that is unknown."""
    if name not in names():
        raise unknown("tool", "must be a tool that the lab has", name, names())
    tool: Tool = importlib.import_module(f"{package.__name__}.{name}").TOOL
    return tool


def metrics() -> dict[str, Metric]:
    """{name: metric}, those that a tool declares behind those of all. Raises ValueError for a name that comes twice."""
    found = dict(METRICS)
    for tool in names():
        for metric in getattr(load(tool), "metrics", ()):
            if metric.name in found:
                raise ValueError(f"{tool}: the metric {metric.name} is declared already")
            if metric.unit not in UNITS:
                raise ValueError(
                    f"{tool}: the unit {metric.unit} of {metric.name} is none of {', '.join(UNITS)}"
                )
            found[metric.name] = metric
    return found


def ports(tool: Tool) -> list[str]:
    """What its server listens on where a suite says nothing, as a firewall is told: ``5201/tcp``."""
    properties = tool.parameters["properties"].values()
    return [f"{one['default']}/{transport}" for one in properties for transport in one.get("transports", ())]


def resolve(tool: Tool, written: JSON) -> dict[str, Any]:
    """Parameters as a suite writes them, checked, in base units, with defaults. Raises ParameterError."""
    properties = tool.parameters["properties"]
    values = {k: v["default"] for k, v in properties.items() if "default" in v}
    for key, value in written.items():
        schema = properties.get(key, {})
        unit = None if schema.get("path") and value == PATH else schema.get("unit")
        try:
            values[key] = quantity(value, unit) if unit else value
        except QuantityError as wrong:
            about = properties[key].get("description", "a quantity")
            fix = f"Write {about}."
            raise ParameterError(Violation((key,), str(wrong), show(value), fix)) from None
    error = best_error(values, tool.parameters)
    if error is not None:
        violation = in_words(error)
        fields: tuple[Field, ...] = violation.fields
        top = fields[0] if fields else None
        seen = show(written[top]) if isinstance(top, str) and top in written else violation.seen
        fix = violation.fix
        if error.validator == "required":  # by the value of another one: what it is stands elsewhere
            fix = f"Add it: {properties[fields[-1]].get('description', 'a value')}."
        raise ParameterError(Violation(fields, violation.rule, seen, fix))
    # Whole ones as int, so that they read the same in argv, database and report.
    whole = {k for k, v in values.items() if properties[k].get("multipleOf") == 1 and v != PATH}
    return {k: int(v) if k in whole else v for k, v in values.items()}


def protocol(benchmark: str, parameters: JSON) -> str:
    """``udp`` or ``tcp``, as the benchmark's parameters say, else as its name does."""
    said = parameters.get("protocol")
    if said:
        return str(said)
    words = f"{benchmark} {parameters.get('test', '')}"
    return "udp" if parameters.get("udp") or "udp" in words else "tcp"


def at_mtu(parameters: JSON, mtu: int) -> dict[str, Any]:
    """Parameters with a number for `PATH`. mtu: bytes that the overlay carries between the endpoints."""
    return {k: mtu - UDP_HEADERS if v == PATH else v for k, v in parameters.items()}


def scaled(tool: Tool, parameters: JSON, scale: float) -> dict[str, Any]:
    """Parameters with each ``scaled`` one multiplied; whole where the tool takes whole numbers, at least 1.

    What is omitted at the start is not scaled: TCP's slow start takes as long in a long trial as in a short.
    """
    values = dict(parameters)
    for key, schema in tool.parameters["properties"].items():
        if schema.get("scaled") and key in values:
            values[key] = max(1, round(values[key] * scale))
    return values
