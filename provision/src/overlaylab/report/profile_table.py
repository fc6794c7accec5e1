"""Profiles as people read them: one table of all tiers, one of a tier's numbers. Values with their units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from overlaylab.core.quantities import readable
from overlaylab.specs.profile import Figure, Profile, unit_of

NOTHING = "–"
OFFLOADS = {"segmented": "off", "no-tunnel-offload": "no tunnels", "default": "as is"}
SPARSE = (
    "An RTT is that of dense traffic, packets 2 ms apart. An emulated CPU falls asleep when they are rarer: ping, which"
    " sends one each second, shows up to 1 ms more."
)
LEGEND = (
    "rate: L2 bytes, then the sustained rate once the bucket is empty. RTT: targets, within a zone and between two.",
    "offloads: off: all is cut into packets before it is counted; no tunnels: what is in a tunnel is; as is: nothing.",
    SPARSE,
    "estimates: how many of all its numbers have no source. ./task profile:show PROFILE=… names each one's.",
)


def listing(profiles: Iterable[Profile]) -> Table:
    """One row per profile; made for 80 columns and more."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("profile\nstands for, in the cloud's words", overflow="fold", min_width=22)
    for heading in ("rate\nMbit/s", "RTT\nms", "zones\nms", "MTU\n", "vCPU\n"):
        table.add_column(heading, justify="right", no_wrap=heading.startswith(("rate", "MTU")))
    table.add_column("offloads\n", no_wrap=True)
    table.add_column("esti-\nmates", justify="right", no_wrap=True)
    for tier in profiles:
        table.add_row(
            Text.assemble((tier.name, "bold"), *_stands_for(tier)),
            _rates(tier),
            NOTHING if tier.within_zone is None else f"{tier.within_zone * 1e3:.3f}",
            _between(tier),
            str(tier.mtu or NOTHING),
            _cpus(tier),
            OFFLOADS[tier.offloads],
            f"{len(estimates(tier))}/{len(tier.figures)}",
        )
    return table


def details(tier: Profile) -> Table:
    """Every number of a profile, with how far to trust it and where it comes from."""
    title = f"{tier.name}: {tier.description}"
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for heading in ("number", "value", "confidence"):
        table.add_column(heading, no_wrap=True)
    table.add_column("source", overflow="fold")
    for name, figure in tier.figures.items():
        table.add_row(name, in_words(name, figure), figure.confidence, figure.source)
    return table


def remarks(tier: Profile) -> Iterator[str]:
    """What a profile says beside its numbers, a line each."""
    if tier.stands_for:
        yield f"stands for: {' '.join(filter(None, tier.stands_for.values()))}"
    if tier.wording:
        yield f'the cloud\'s words: "{tier.wording.value}" ({tier.wording.confidence}: {tier.wording.source})'
    if tier.price:
        yield "price: {value} {currency} per {per}, {date} ({source})".format(**tier.price)
    yield f"offloads: {tier.offloads}"
    if has_latency(tier):
        yield SPARSE


def has_latency(tier: Profile) -> bool:
    """Whether it asks for an RTT, within a zone or between two."""
    return bool(tier.within_zone or tier.between_zones)


def estimates(tier: Profile) -> tuple[str, ...]:
    """Names of the numbers that no source stands behind."""
    return tuple(name for name, figure in tier.figures.items() if figure.confidence == "estimate")


def in_words(name: str, figure: Figure) -> str:
    """A figure's value with its unit: ``972 Mbit/s``, ``0.966 ms``, ``20 %``, ``uncapped``."""
    value = figure.value
    if value is None:
        return "uncapped"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in ("loss", "quota"):
        return f"{float(value) * 100:g} %"
    unit = unit_of(name)
    return readable(float(value), unit) if unit else str(value)


def _stands_for(tier: Profile) -> Iterator[str]:
    if tier.stands_for:
        yield f"\n{' '.join(filter(None, tier.stands_for.values()))}"
        if tier.wording:
            yield f", “{tier.wording.value}”"


def _rates(tier: Profile) -> str:
    if tier.rate is None:
        return "uncapped"
    held = f"{tier.rate / 1e6:g}"
    return held if tier.sustained is None else f"{held}, {tier.sustained / 1e6:g}"


def _between(tier: Profile) -> str:
    stated = sorted({round(rtt * 1e3, 3) for rtt in tier.between_zones.values()})
    ends = stated[:1] + stated[1:][-1:]
    return "–".join(f"{rtt:g}" for rtt in ends) or NOTHING


def _cpus(tier: Profile) -> str:
    cpus = str(tier.vcpus or NOTHING)
    return cpus if tier.quota is None else f"{cpus}\n{tier.quota * 100:g} %"
