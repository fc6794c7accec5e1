"""Profiles (profiles/): what a node's network and CPU are held to, each number with its source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from overlaylab.core import documents
from overlaylab.core.documents import Document, load_document, named, parse_document
from overlaylab.core.documents_limits import Field
from overlaylab.core.model import JSON
from overlaylab.core.paths import CLUSTERS, PROFILES
from overlaylab.core.quantities import QuantityError, quantity
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory
from overlaylab.specs.profile_rules import ANY_PAIR, ETHERNET_HEADER, cross_check

# Seconds, where a profile does not say: TCP fills the rate with it, and loaded latency stays bounded.
QUEUE = 0.02

# Base units of the figures at the top of a document; None for ratios, counts and yes or no.
_UNITS: Mapping[str, str | None] = {
    "rate": "bit/s",
    "sustained": "bit/s",
    "burst": "bytes",
    "bucket": "bytes",
    "overhead": "bytes",
    "mtu": "bytes",
    "queue": "s",
    "jitter": "s",
    "loss": None,
    "vcpus": None,
    "quota": None,
    "ingress_metered": None,
}


@dataclass(frozen=True)
class Figure:
    """One fact and where it comes from."""

    # In base units; None: uncapped; a text for `wording`.
    value: float | bool | str | None
    source: str
    # ``published``, ``documented``, ``measured``, ``derived`` or ``estimate``.
    confidence: str


@dataclass(frozen=True)
class Profile:
    """A named set of impairments, in base units: bit/s, bytes, s, ratio.

    None means that the profile does not touch it: no cap, the node's own MTU, all CPU time.

    rate: what the node may send, L2 bytes counted; burst: bytes at line speed, None for the computed one.
    sustained, bucket: two-rate tiers: ``rate`` until ``bucket`` bytes above ``sustained`` are used up.
    overhead: bytes per packet that count beyond the L2 frame (24 for a wire's preamble, gap and checksum).
    queue: seconds that a packet waits at most, at the rate. within_zone: target RTT in s, None for no delay.
    between_zones: (zone, zone) in alphabetical order -> target RTT; see ``rtt``.
    jitter: s; the one-way delay is uniform in ±jitter around its mean, as netem draws it where it is given no
    distribution, so the standard deviation of an RTT is jitter times the square root of 2/3.
    loss: ratio of packets; quota: share of the vCPUs' time, of all of them together, in (0, 1].
    offloads: ``segmented``: all is cut into packets before it is counted. ``no-tunnel-offload``: the NIC cuts
    plain TCP itself and cannot cut what is in a tunnel, as Hyper-V's netvsc and Xen's netfront were in 2015;
    packets of tunnels are cut before they are counted. ``default``: as the node has it.
    wording: the cloud's own words for the network, such as ``Low to Moderate``.
    price: ``{value, currency, per, date, source}`` as the document has it, None where nobody looked it up.
    figures: provenance of each number under its dotted name, ``latency.within_zone``; not of `wording`.
    digest: SHA-256 of the document, in hex.
    """

    name: str
    description: str
    stands_for: JSON | None
    rate: float | None
    burst: float | None
    sustained: float | None
    bucket: float | None
    overhead: float
    queue: float
    within_zone: float | None
    between_zones: Mapping[tuple[str, str], float]
    jitter: float
    loss: float
    mtu: int | None
    vcpus: int | None
    quota: float | None
    offloads: str
    ingress_metered: bool
    wording: Figure | None
    price: JSON | None
    figures: Mapping[str, Figure]
    digest: str
    source: Document = field(repr=False, compare=False)

    @property
    def is_none(self) -> bool:
        """It holds nothing back: applying it means removing every trace of another one."""
        held = (self.rate, self.within_zone, self.mtu, self.quota)
        return held == (None,) * 4 and not (
            self.between_zones or self.jitter or self.loss or self.vcpus or self.tunnels_segmented
        )

    @property
    def segmented(self) -> bool:
        """All traffic is cut into packets before it is counted."""
        return self.offloads == "segmented"

    @property
    def tunnels_segmented(self) -> bool:
        """What leaves an overlay's devices is cut before the underlay counts it."""
        return self.offloads in ("segmented", "no-tunnel-offload")

    def burst_bytes(self, mtu: int) -> int:
        """The token bucket's size: as stated, else 8 ms at the rate and at least two frames.

        Less than 8 ms loses goodput, less than two frames everything (facts: Shaping is exact if …).
        """
        if self.rate is None:
            raise ValueError(f"profile {self.name} has no rate")
        if self.burst is not None:
            return round(self.burst)
        return round(max(self.rate / 8 * 0.008, 2 * (mtu + ETHERNET_HEADER)))

    def rtt(self, zone: str, other: str) -> float | None:
        """The target RTT between two zones or within one, in s; None where nothing is added."""
        if zone == other:
            return self.within_zone
        pair = (min(zone, other), max(zone, other))
        if pair in self.between_zones:
            return self.between_zones[pair]
        return self.between_zones.get((ANY_PAIR, ANY_PAIR))


def unit_of(name: str) -> str | None:
    """The base unit of a figure by its dotted name; None for ratios, counts and yes or no."""
    return "s" if name.startswith("latency.") else _UNITS.get(name)


def load_profile(name: str) -> Profile:
    """The profile ``profiles/<name>.yml``. Raises UserError."""
    return read_profile(named("profile", name, PROFILES, "PROFILE"))


def read_profile(path: Path) -> Profile:
    """A profile from any file, schema and cross-checks applied. Raises UserError."""
    document = load_document(path, PROFILES / "profile.schema.json")
    figures = _figures(document)

    def value(name: str, default: Any = None) -> Any:
        return figures[name].value if name in figures else default

    data = document.data
    mtu = value("mtu")
    profile = Profile(
        name=path.stem,
        description=data["description"],
        stands_for=data["stands_for"],
        rate=value("rate"),
        burst=value("burst"),
        sustained=value("sustained"),
        bucket=value("bucket"),
        overhead=value("overhead", 0.0),
        queue=value("queue", QUEUE),
        within_zone=value("latency.within_zone"),
        between_zones={
            _pair(name.removeprefix("latency.between_zones.")): figure.value
            for name, figure in figures.items()
            if name.startswith("latency.between_zones.") and isinstance(figure.value, int | float)
        },
        jitter=value("jitter", 0.0),
        loss=value("loss", 0.0),
        mtu=None if mtu is None else int(mtu),
        vcpus=value("vcpus"),
        quota=value("quota"),
        offloads=data["offloads"],
        ingress_metered=value("ingress_metered"),
        wording=_figure(document, ("wording",), None) if "wording" in data else None,
        price=data.get("price"),
        figures=figures,
        digest=document.digest,
        source=document,
    )
    cross_check(profile)
    return profile


def varied(profile: Profile, what: str, **changes: Any) -> Profile:
    """The profile with some fields changed, for a bench that checks a tier in a variation of it.

    what: how it is called, ``mtu=9001``: part of name and digest, so that it is never pooled with the tier itself.
    changes: fields of Profile, in base units; figures keep what the document says.
    """
    if fixed := {"name", "digest", "source", "figures"} & changes.keys():
        raise ValueError(f"{sorted(fixed)} of a profile follow from its document and from what varies")
    told = repr((profile.digest, what, sorted(changes.items())))
    digest = hashlib.sha256(told.encode()).hexdigest()
    return replace(profile, name=f"{profile.name} {what}", digest=digest, **changes)


def check_zones(profile: Profile, lab: ClusterSpec | Inventory) -> None:
    """Refuse a profile that names a zone nobody has, or that leaves a pair of the lab's zones open.

    One profile serves several labs, so it may name zones of any cluster file. A lab of one zone has no pairs:
    nothing is said between zones there. Raises UserError.
    """
    known = sorted({*lab.zones, *_zones_of_clusters()})
    for pair in profile.between_zones:
        for zone in pair:
            if zone not in (*known, ANY_PAIR):
                raise profile.source.error(
                    "latency",
                    "between_zones",
                    "-".join(pair),
                    rule=f"must name zones of {lab.name} or of another cluster: {', '.join(known)}",
                    seen=f'"{zone}"',
                    fix=f"Correct the zone, take another cluster, or write {ANY_PAIR} for every pair.",
                )
    if len(lab.zones) < 2:
        return
    if profile.within_zone is None and not profile.between_zones:
        return
    for index, zone in enumerate(lab.zones):
        for other in lab.zones[index + 1 :]:
            if profile.rtt(zone, other) is None:
                raise profile.source.error(
                    "latency",
                    "between_zones",
                    f"{zone}-{other}",
                    rule=f"is missing: {lab.name} has the zones {', '.join(lab.zones)}",
                    fix=f"Add the round-trip time between them, or {ANY_PAIR} for every pair.",
                )


def _zones_of_clusters() -> set[str]:
    """Every zone that a file of vagrant/clusters has a node in. Raises UserError."""
    files = (parse_document(CLUSTERS / f"{name}.yml") for name in documents.names_in(CLUSTERS))
    return {str(node.get("zone")) for file in files for node in file.data.get("nodes", [])}


def _pair(text: str) -> tuple[str, str]:
    if text == ANY_PAIR:
        return (ANY_PAIR, ANY_PAIR)
    zone, other = sorted(text.split("-"))
    return (zone, other)


def _figures(document: Document) -> dict[str, Figure]:
    """Every number of the document under its dotted name, in base units and in the document's order."""
    places: list[tuple[Field, ...]] = []
    for name, written in document.data.items():
        if name in _UNITS:
            places.append((name,))
        elif name == "latency":
            places.append(("latency", "within_zone"))
            places += [("latency", "between_zones", pair) for pair in written.get("between_zones", {})]
    return {name: _figure(document, at, unit_of(name)) for at in places for name in [".".join(map(str, at))]}


def _figure(document: Document, at: tuple[Field, ...], unit: str | None) -> Figure:
    written: Any = document.data
    for part in at:
        written = written[part]
    value = written["value"]
    if unit is not None and value is not None:
        try:
            value = quantity(value, unit)
        except QuantityError as wrong:
            fix = "Write it as in 100 Mbit/s, 0.966 ms or 1500 bytes; units are case-sensitive."
            raise document.error(*at, "value", rule=str(wrong), seen=f'"{value}"', fix=fix) from None
    return Figure(value, written["source"], written["confidence"])
