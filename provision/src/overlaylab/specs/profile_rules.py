"""What a profile's schema cannot say: rules between its fields, and between it and a lab's zones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overlaylab.core.documents_limits import Field
from overlaylab.core.quantities import readable

if TYPE_CHECKING:
    from overlaylab.core.errors import UserError
    from overlaylab.specs.profile import Profile

# Key of ``latency.between_zones`` for every pair that has none of its own.
ANY_PAIR = "any"

# Bytes that Linux's queueing disciplines count on top of the MTU.
ETHERNET_HEADER = 14

# Rate, bit/s, of the HTB classes where a profile delays but does not cap: above any NIC used here.
UNCAPPED = 100_000_000_000

# bit/s; below it a full frame takes longer than a second.
LEAST_RATE = 8000

# Bytes per packet: a wire has 24, ATM's cells some 180 for a full frame; tc(8) takes 31 bits.
MOST_OVERHEAD = 200
# Seconds at the rate that a bucket holds: with more, no measurement here would meet the cap.
MOST_BURST = 1.0
# Seconds; the worst buffers of access networks hold some.
MOST_QUEUE = 10.0
# Bytes: bfifo's limit has 32 bits (tc-bfifo(8)).
MOST_QUEUED = 2**32 - 1
# Seconds: a geostationary satellite takes 0.6; ping and the handshakes of TCP give up beyond.
MOST_RTT = 10.0


def cross_check(profile: Profile) -> None:
    """Raise UserError for the first rule that the profile breaks."""
    _check_rates(profile)
    _check_frames(profile)
    _check_time(profile)
    if profile.loss and not profile.segmented:
        raise profile.source.error(
            "offloads",
            rule="must be segmented where packets are lost",
            seen=f'"{profile.offloads}"',
            fix="Write offloads: segmented; otherwise one loss takes up to 64 kB at once.",
        )
    if profile.overhead and not profile.segmented:
        raise _wrong(
            profile,
            "overhead",
            rule="needs offloads: segmented",
            fix="A super-packet of many frames would count it once; state a rate that has it taken off instead.",
        )
    for pair in profile.between_zones:
        if pair[0] == pair[1] and pair[0] != ANY_PAIR:
            raise _wrong(
                profile,
                "latency",
                "between_zones",
                "-".join(pair),
                rule="must name two zones",
                fix="The round-trip time within a zone is latency.within_zone.",
            )


def _check_rates(profile: Profile) -> None:
    for name in ("rate", "sustained"):
        if (
            name in profile.figures
            and getattr(profile, name) is not None
            and getattr(profile, name) < LEAST_RATE
        ):
            fix = "Write the cap, such as 100 Mbit/s; null stands for uncapped."
            raise _wrong(profile, name, rule="must be at least 8 kbit/s", fix=fix)
    for name in ("sustained", "bucket", "burst", "overhead"):
        if name in profile.figures and profile.rate is None:
            raise _wrong(profile, name, rule="needs a rate", fix="State rate, or remove this.")
    if (profile.sustained is None) != (profile.bucket is None):
        name, other = ("sustained", "bucket") if profile.bucket is None else ("bucket", "sustained")
        fix = f"State {other}: a bucket drains to a rate."
        raise _wrong(profile, name, rule=f"needs {other} beside it", fix=fix)
    if profile.rate is None:
        return  # what needs one was refused above
    if profile.burst is not None and profile.burst > profile.rate / 8 * MOST_BURST:
        held = readable(profile.rate / 8 * MOST_BURST, "bytes")
        fix = "Leave it out for the computed one; what a tier gives away above a lower rate is its bucket."
        raise _wrong(profile, "burst", rule=f"must be at most {held}, one second at the rate", fix=fix)
    if profile.sustained is not None and profile.sustained >= profile.rate:
        raise _wrong(
            profile,
            "sustained",
            rule=f"must be below rate, {profile.source.data['rate']['value']}",
            fix="The rate holds while the bucket lasts, sustained afterwards; are they swapped?",
        )


def _check_frames(profile: Profile) -> None:
    if profile.mtu is not None and not 576 <= profile.mtu <= 9001:
        raise _wrong(
            profile,
            "mtu",
            rule="must lie between 576 bytes and the 9001 of the lab's network",
            fix="IPv4 asks 576 of every host (RFC 791); clouds use 1500, 1460 or 9001.",
        )
    if profile.overhead > MOST_OVERHEAD:
        fix = "It counts once per packet: a wire's preamble, gap and checksum are 24 bytes."
        raise _wrong(profile, "overhead", rule=f"must be at most {MOST_OVERHEAD} bytes", fix=fix)
    frames = 2 * ((profile.mtu or 1500) + ETHERNET_HEADER)
    for name in ("burst", "bucket"):
        if getattr(profile, name) is not None and getattr(profile, name) < frames:
            fix = "A smaller one drops every full packet; leave burst out for the computed one."
            raise _wrong(profile, name, rule=f"must hold two full frames, {frames} bytes", fix=fix)


def _check_time(profile: Profile) -> None:
    if profile.queue <= 0:
        raise _wrong(profile, "queue", rule="must be more than 0 s", fix="20 ms suits most tiers.")
    if profile.queue > MOST_QUEUE:
        rule = f"must be at most {readable(MOST_QUEUE, 's')}: no buffer holds a packet longer"
        raise _wrong(profile, "queue", rule=rule, fix="20 ms suits most tiers.")
    longest = MOST_QUEUED * 8 / (profile.rate or UNCAPPED)
    if profile.queue > longest:
        rule = (
            f"must be at most {readable(longest, 's')}: at the rate that is 4 GB, which tc counts in 32 bits"
        )
        raise _wrong(profile, "queue", rule=rule, fix="20 ms suits most tiers.")
    targets = {
        name: figure.value
        for name, figure in profile.figures.items()
        if name.startswith("latency.") and isinstance(figure.value, int | float)
    }
    for name, target in targets.items():
        if target > MOST_RTT:
            rule = f"must be at most {readable(MOST_RTT, 's')}: connections that take longer are given up"
            fix = "Write a round-trip time as ping shows it; between continents it is 0.3 s."
            raise _wrong(profile, *name.split(".", 2), rule=rule, fix=fix)
    if not profile.jitter:
        return
    if not targets:
        fix = "State latency.within_zone: a delay varies by the jitter up and down, so there has to be one."
        raise _wrong(profile, "jitter", rule="needs a latency", fix=fix)
    shortest = min(targets, key=lambda name: targets[name])
    if profile.jitter > targets[shortest] / 2:
        raise _wrong(
            profile,
            "jitter",
            rule=f"must be at most {readable(targets[shortest] / 2, 's')}, half of {shortest}",
            fix="A one-way delay varies by the jitter up and down, and none can be below zero.",
        )


def _wrong(profile: Profile, *at: Field, rule: str, fix: str) -> UserError:
    node: Any = profile.source.data
    for part in at:
        node = node[part]
    return profile.source.error(*at, "value", rule=rule, seen=f'"{node["value"]}"', fix=fix)
