"""Profiles (profiles/): what a node's network and CPU are held to, each number with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overlaylab.cluster import ClusterSpec
from overlaylab.documents import Document, Field, load_document, named
from overlaylab.inventory import Inventory
from overlaylab.model import JSON
from overlaylab.paths import PROFILES
from overlaylab.quantities import QuantityError, quantity

ETHERNET_HEADER = 14
"""Bytes that Linux's queueing disciplines count on top of the MTU."""

QUEUE = 0.02
"""Seconds, where a profile does not say: TCP fills the rate with it, and loaded latency stays bounded."""

ANY_PAIR = "any"

_UNITS: Mapping[str, str] = {
    "rate": "bit/s",
    "sustained": "bit/s",
    "burst": "bytes",
    "bucket": "bytes",
    "overhead": "bytes",
    "mtu": "bytes",
    "queue": "s",
    "jitter": "s",
}


@dataclass(frozen=True)
class Figure:
    """One number and where it comes from. value: in base units, None for uncapped.

    confidence: ``published``, ``documented``, ``measured``, ``derived`` or ``estimate``.
    """

    value: float | bool | None
    source: str
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
    jitter: s, of the one-way delay; loss: ratio of packets; quota: share of the vCPUs' time, in (0, 1].
    offloads: ``segmented`` (cut into packets before they are counted) or ``default``.
    figures: provenance of each number under its dotted name, ``latency.within_zone``.
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
    figures: Mapping[str, Figure]
    digest: str
    source: Document = field(repr=False, compare=False)

    @property
    def is_none(self) -> bool:
        """It holds nothing back: applying it means removing every trace of another one."""
        held = (self.rate, self.within_zone, self.mtu, self.quota)
        return held == (None,) * 4 and not (self.between_zones or self.jitter or self.loss or self.segmented)

    @property
    def segmented(self) -> bool:
        """Traffic is cut into packets before it is counted."""
        return self.offloads == "segmented"

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
            if name.startswith("latency.between_zones.")
        },
        jitter=value("jitter", 0.0),
        loss=value("loss", 0.0),
        mtu=None if mtu is None else int(mtu),
        vcpus=value("vcpus"),
        quota=value("quota"),
        offloads=data["offloads"],
        ingress_metered=value("ingress_metered"),
        figures=figures,
        digest=document.digest,
        source=document,
    )
    _cross_check(profile)
    return profile


def check_zones(profile: Profile, lab: ClusterSpec | Inventory) -> None:
    """Refuse a profile whose zones are not the lab's, or that leaves a pair of them open. Raises UserError.

    A lab of one zone has no pairs, so nothing is said between zones there.
    """
    if len(lab.zones) < 2:
        return
    known = ", ".join(lab.zones)
    for pair in profile.between_zones:
        for zone in pair:
            if zone not in (*lab.zones, ANY_PAIR):
                raise profile.source.error(
                    "latency",
                    "between_zones",
                    "-".join(pair),
                    rule=f"must name zones of {lab.name}: {known}",
                    seen=f'"{zone}"',
                    fix=f"Correct the zone, take another cluster, or write {ANY_PAIR} for every pair.",
                )
    if profile.within_zone is None and not profile.between_zones:
        return
    for index, zone in enumerate(lab.zones):
        for other in lab.zones[index + 1 :]:
            if profile.rtt(zone, other) is None:
                raise profile.source.error(
                    "latency",
                    "between_zones",
                    f"{zone}-{other}",
                    rule=f"is missing: {lab.name} has the zones {known}",
                    fix=f"Add the round-trip time between them, or {ANY_PAIR} for every pair.",
                )


def _pair(text: str) -> tuple[str, str]:
    if text == ANY_PAIR:
        return (ANY_PAIR, ANY_PAIR)
    zone, other = sorted(text.split("-"))
    return (zone, other)


def _figures(document: Document) -> dict[str, Figure]:
    """Every number of the document under its dotted name, in base units."""
    data = document.data
    latency = data.get("latency") or {}
    places: list[tuple[tuple[Field, ...], Mapping[str, Any], str | None]] = [
        *(((name,), data[name], unit) for name, unit in _UNITS.items() if name in data),
        *(((n,), data[n], None) for n in ("loss", "vcpus", "quota", "ingress_metered") if n in data),
        *((("latency", n), latency[n], "s") for n in ("within_zone",) if n in latency),
        *((("latency", "between_zones", n), f, "s") for n, f in latency.get("between_zones", {}).items()),
    ]
    return {".".join(map(str, at)): _figure(document, at, written, unit) for at, written, unit in places}


def _figure(document: Document, at: tuple[Field, ...], written: JSON, unit: str | None) -> Figure:
    value = written["value"]
    if unit is not None and value is not None:
        try:
            value = quantity(value, unit)
        except QuantityError as wrong:
            fix = "Write it as in 100 Mbit/s, 0.966 ms or 1500 bytes; units are case-sensitive."
            raise document.error(*at, "value", rule=str(wrong), seen=f'"{value}"', fix=fix) from None
    return Figure(value, written["source"], written["confidence"])


def _cross_check(profile: Profile) -> None:
    def wrong(*at: Field, rule: str, fix: str) -> Exception:
        node: Any = profile.source.data
        for part in at:
            node = node[part]
        return profile.source.error(*at, "value", rule=rule, seen=f'"{node["value"]}"', fix=fix)

    for name in ("rate", "sustained"):
        if name in profile.figures and getattr(profile, name) is not None and getattr(profile, name) < 8000:
            fix = "Write the cap, such as 100 Mbit/s; null stands for uncapped."
            raise wrong(name, rule="must be at least 8 kbit/s", fix=fix)
    for name in ("sustained", "bucket", "burst", "overhead"):
        if name in profile.figures and profile.rate is None:
            raise wrong(name, rule="needs a rate", fix="State rate, or remove this.")
    if (profile.sustained is None) != (profile.bucket is None):
        name, other = ("sustained", "bucket") if profile.bucket is None else ("bucket", "sustained")
        raise wrong(name, rule=f"needs {other} beside it", fix=f"State {other}: a bucket drains to a rate.")
    if profile.sustained is not None and profile.sustained >= profile.rate:
        raise wrong(
            "sustained",
            rule=f"must be below rate, {profile.source.data['rate']['value']}",
            fix="The rate holds while the bucket lasts, sustained afterwards; are they swapped?",
        )
    if profile.mtu is not None and not 576 <= profile.mtu <= 9001:
        raise wrong(
            "mtu",
            rule="must lie between 576 bytes and the 9001 of the lab's network",
            fix="IPv4 asks 576 of every host (RFC 791); clouds use 1500, 1460 or 9001.",
        )
    frames = 2 * ((profile.mtu or 1500) + ETHERNET_HEADER)
    for name in ("burst", "bucket"):
        if getattr(profile, name) is not None and getattr(profile, name) < frames:
            fix = "A smaller one drops every full packet; leave burst out for the computed one."
            raise wrong(name, rule=f"must hold two full frames, {frames} bytes", fix=fix)
    if profile.queue <= 0:
        raise wrong("queue", rule="must be more than 0 s", fix="20 ms suits most tiers.")
    if profile.loss and not profile.segmented:
        raise profile.source.error(
            "offloads",
            rule="must be segmented where packets are lost",
            seen=f'"{profile.offloads}"',
            fix="Unsegmented, a loss would take up to 64 kB at once.",
        )
    for name in profile.between_zones:
        if name[0] == name[1] and name[0] != ANY_PAIR:
            raise wrong(
                "latency",
                "between_zones",
                "-".join(name),
                rule="must name two zones",
                fix="The round-trip time within a zone is latency.within_zone.",
            )
