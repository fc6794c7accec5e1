"""The records that planner, runner, parsers and store pass to each other. All are immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = Mapping[str, Any]

# The overlay that is the baseline: it is in every block.
HOST = "host"


@dataclass(frozen=True)
class Variant:
    """One overlay in one mode, e.g. weave fastdp encrypted. The host network has no mode."""

    overlay: str
    mode: str | None = None
    encrypted: bool = False

    @property
    def key(self) -> str:
        """Name within the overlay, as MODES= takes it: ``fastdp``, ``fastdp-encrypted``, ``host``."""
        return (self.mode or self.overlay) + ("-encrypted" if self.encrypted else "")

    @property
    def is_baseline(self) -> bool:
        """What every ratio is to: the nodes' own network. Its other modes are variants like any overlay's."""
        return self.overlay == HOST and self.mode is None

    def __str__(self) -> str:
        """For people: ``host``, ``weave fastdp-encrypted``."""
        return self.overlay if self.mode is None else f"{self.overlay} {self.key}"


@dataclass(frozen=True)
class Sample:
    """One value of one metric."""

    # A name of `core.metrics`, or one that a tool declares.
    metric: str
    # In the metric's unit.
    value: float
    # s from the trial's start that the value covers; both None: the whole trial.
    t_start: float | None = None
    t_end: float | None = None
    # Of a percentile, in (0, 1).
    quantile: float | None = None
    # The tool's step in the metric's unit, where it is known.
    resolution: float | None = None


@dataclass(frozen=True)
class PlannedTrial:
    """One execution of one benchmark: where in the experiment it stands and what it runs."""

    block: int
    # Order within the block, from 0, counted over trials.
    position: int
    variant: Variant
    # Name within the suite, e.g. ``tcp-goodput``.
    benchmark: str
    # A file of `tools`: ``iperf3``, ``qperf``.
    tool: str
    # Of the tool, after scaling, in base units.
    parameters: JSON
    repetition: int = 0
    warmup: bool = False
    placement: str = "remote"
    client_node: str = "node1"
    server_node: str = "node2"
    direction: str = "client-to-server"


@dataclass(frozen=True)
class TrialResult:
    """What a trial gave. status: ``ok``, ``failed`` or ``void``; anything but ok carries a reason."""

    status: str
    reason: str | None
    # UTC, ISO 8601 with milliseconds, of the runner's clock: a label, durations never come from it.
    started_at: str
    # Seconds from starting the client to its exit, on the runner's monotonic clock.
    duration: float | None
    argv: tuple[str, ...]
    exit_code: int | None
    stdout: str
    stderr: str
    tool_version: str | None
    samples: tuple[Sample, ...] = ()
    # {node: {"before": {...}, "after": {...}}}: qdisc statistics, counters, CPU, health.
    node_state: JSON = field(default_factory=dict)
    overlay_version: str | None = None
    overlay_mtu: int | None = None
    underlay_mtu: int | None = None


@dataclass(frozen=True)
class RunRecord:
    """What a run is about; every digest is a SHA-256 in hex."""

    cluster: str
    provider: str
    # A name of `core.accelerators`.
    accelerator: str
    # What the nodes run on, e.g. ``2 cores, Intel Xeon …``; no host name.
    machine: str
    image: str | None
    profile: str
    profile_digest: str
    # {"cloud": "Azure", "instance": "A1"} where the profile stands for a published tier.
    stands_for: JSON | None
    suite: str
    suite_digest: str
    scale: float
    seed: int
    blocks: int
    variants: tuple[Variant, ...]
    # {overlay: digest of its role}.
    role_digests: JSON
    # {node: zone}.
    zones: JSON
    # {node: {"underlay_address": …}} and whatever else describes them.
    nodes: JSON
    # The command's own arguments, so that lab:resume can build the same plan.
    arguments: JSON = field(default_factory=dict)
    origin: str = "measured"
    # Which overlaylab planned it, as ``checkout`` says; None where that was not kept.
    lab_version: str | None = None
    # What the nodes' system is, ``debian`` as `packer/systems` has it or ``ubuntu-24.04`` as a host says.
    system: str | None = None
    # Digest of the node kit that they measured with.
    kit: str | None = None


@dataclass(frozen=True)
class Evidence:
    """Proof of a data path or of a node's condition, taken at a stated moment.

    kind: ``status`` (the overlay's own word), ``wire`` (capture on the underlay), ``path`` (what leads to the peer),
    ``mtu`` (DF probe, from each end), ``health`` (daemons that lived through the trial), ``accounting`` (qdisc bytes
    against the peer's), ``settings`` (read back after a revert).
    phase: ``converge``, ``before``, ``during``, ``after``.
    """

    node: str
    kind: str
    phase: str
    ok: bool
    expected: JSON
    observed: JSON
    reason: str | None = None


@dataclass(frozen=True)
class ProfileCheck:
    """One check of a profile: sent by one node, counted at the other.

    verdict: ``pass``, ``fail`` or ``not-applicable`` (the accelerator cannot carry it; reason says why).
    low, high: 95 % interval of what was measured, where it is a count's.
    """

    # ``goodput``, ``rtt-idle``, ``rtt-loaded``, ``baseline-rtt``.
    name: str
    client_node: str
    server_node: str
    expected: float | None
    measured: float | None
    tolerance: float | None
    unit: str
    verdict: str
    reason: str | None = None
    low: float | None = None
    high: float | None = None
