"""What proving every profile consists of: the steps, what they vary, and how long they take."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from overlaylab.core import progress
from overlaylab.specs.profile import Profile, varied

# The cluster on which everything is checked; on others goodput, RTTs, and all nodes sending at once.
PAIR = "pair"
# Seconds at the rate in which the bucket of a variation empties; a tier's own takes minutes.
EMPTY_AFTER = 10.0
LOSSES = (0.01, 0.001)
JITTER = 0.0003
# Seconds: the mean delay has to leave room for what jitter takes off.
JITTER_RTT = 0.002
# The tier that is varied where none declares anything: loss and jitter, and an MTU that it does not have.
IMPAIRED = "azure-a1"
# What a step takes where none was timed here yet.
SECONDS = {"tier": 75.0, "tier on more": 110.0, "mtu": 75.0, "two-rates": 110.0, "loss": 35.0, "jitter": 35.0}


# Kinds of steps.
KINDS = {
    "tier": "the profile as its file has it",
    "mtu": "the same at the other of 1500 and 9001 bytes",
    "two-rates": "burst and sustained rate, with a bucket of a declared part of its size",
    "loss": "a declared loss of single packets",
    "jitter": "a declared jitter",
}


@dataclass(frozen=True)
class Step:
    """kind: ``tier``, ``mtu``, ``two-rates``, ``loss`` or ``jitter``. tier: as its file has it; profile: varied."""

    cluster: str
    tier: Profile
    profile: Profile
    kind: str

    @property
    def timed_as(self) -> str:
        return "tier on more" if self.kind == "tier" and self.cluster != PAIR else self.kind

    def seconds(self) -> float:
        return progress.estimate(f"bench-profiles-{self.timed_as}", SECONDS[self.timed_as]) or 0.0


def plan(
    tiers: Sequence[Profile], clusters: Sequence[str], kinds: Collection[str] = tuple(KINDS)
) -> list[Step]:
    """Cluster by cluster, tier by tier, the tier itself before its variations; steps of these kinds only."""
    steps = []
    for cluster in clusters:
        for tier in tiers:
            steps.append(Step(cluster, tier, tier, "tier"))
            if cluster == PAIR:
                steps += [Step(cluster, tier, profile, kind) for kind, profile in _variations(tier)]
    return [step for step in steps if step.kind in kinds]


def _variations(tier: Profile) -> Iterable[tuple[str, Profile]]:
    if tier.rate:
        other = 1500 if tier.mtu == 9001 else 9001
        yield "mtu", varied(tier, f"mtu={other}", mtu=other)
    if tier.rate and tier.sustained and tier.bucket:
        yield "two-rates", with_bucket(tier, tier.rate)
    if tier.name == IMPAIRED:
        for loss in LOSSES:
            yield "loss", varied(tier, f"loss={loss * 100:g}%", loss=loss)
        what = f"jitter={JITTER * 1e3:g}ms rtt={JITTER_RTT * 1e3:g}ms"
        yield "jitter", varied(tier, what, jitter=JITTER, within_zone=JITTER_RTT)


def with_bucket(tier: Profile, carried: float) -> Profile:
    """The two-rate tier at a scale at which its bucket empties in EMPTY_AFTER s at `carried` bit/s."""
    assert tier.sustained and tier.bucket
    wanted = (carried - tier.sustained) / 8 * EMPTY_AFTER
    scale = max(1, round(tier.bucket / wanted))
    return varied(tier, f"bucket/{scale}", bucket=tier.bucket / scale)
