"""Judging what a profile does beyond `shaping.checks`: loss, buckets, jitter; measured against declared, pure.

Every function takes what was sent by one node and counted at the other and gives checks. Rates in bit/s count as
the tier's cap does: Ethernet frames, and `Cap.overhead` beyond them. Goodput counts application bytes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from overlaylab.core.model import ProfileCheck
from overlaylab.shaping.checks import BUSY, GOODPUT_TOLERANCE
from overlaylab.shaping.theory import ETHERNET_HEADER, goodput_theory
from overlaylab.stats.samples import proportion

# Bytes of an IPv4 header (RFC 791) and a UDP header (RFC 768).
UDP_HEADERS = 28
# Share of what it was asked to send by which a sender may fall short before its CPU is taken to be the limit.
OFFERED_TOLERANCE = 0.02
# Ratio of datagrams that may be missing where none should be.
TOLERATED_LOSS = 0.001
BURST_TOLERANCE = 0.05
# Seconds at the rate that an empty bucket gathers before it bursts again: how finely a refill can be told.
AGAIN = 0.1
# At which a declared loss is judged, so that one proof in a thousand fails by chance; what is shown is 95 %.
LOSS_CONFIDENCE = 0.999
JITTER_TOLERANCE = 0.1
# Median absolute deviations beyond which an RTT is the machine's: jitter's own reach 3.4 of them.
OUTLIER = 6.0
# Seconds after a change of rate in which TCP finds the new one.
SETTLING = 1.0
# Seconds of sustained rate at least, to tell it.
LEAST = 3.0


@dataclass(frozen=True)
class Cap:
    """What holds a node's traffic: rate in bit/s; burst, queue, MTU and overhead per frame in bytes."""

    rate: float
    burst: float
    queue: float
    mtu: int
    overhead: int = 0

    def frame(self, payload: int) -> int:
        """Bytes of a datagram's frame as the cap counts them."""
        return payload + UDP_HEADERS + ETHERNET_HEADER + self.overhead

    def goodput(self, rate: float | None = None) -> float:
        """TCP goodput that a rate (None: the cap's) carries."""
        frame = self.mtu + ETHERNET_HEADER
        return (
            goodput_theory(self.rate if rate is None else rate, self.mtu, 0) * frame / (frame + self.overhead)
        )


@dataclass(frozen=True)
class Udp:
    """What one UDP transfer gave: datagrams of `payload` bytes sent within `seconds`, received, overtaken."""

    sent: int
    received: int
    payload: int
    seconds: float
    overtaken: int = 0

    @property
    def loss(self) -> float:
        return 1 - self.received / self.sent


@dataclass(frozen=True)
class Second:
    """A stretch of time, s from the transfer's start, and the application bytes that arrived in it."""

    start: float
    end: float
    received: float

    @property
    def length(self) -> float:
        return self.end - self.start


# -- UDP against the rate ---------------------------------------------------------------------------


def judge_udp(client: str, server: str, share: float, cap: Cap, udp: Udp, idle_cpu: float) -> ProfileCheck:
    """Loss at `share` of the rate, against what exceeds it of what was really offered.

    Burst and queue carry a little more, once: no loss is expected of that, and as much is tolerated. Beyond
    it the rate is held to as goodput is. idle_cpu: share of the busier node's CPU that was idle meanwhile.
    """
    name = f"udp-loss {share:g}"
    offered = udp.sent * cap.frame(udp.payload) * 8 / udp.seconds
    asked = share * cap.rate
    if offered < (1 - OFFERED_TOLERANCE) * asked:
        reason = (
            f"not testable here: offered {offered / 1e6:.4g} of {asked / 1e6:.4g} Mbit/s, "
            f"{idle_cpu:.0%} of the busier node's CPU was idle"
        )
        expected = max(0.0, 1 - 1 / share)
        return ProfileCheck(name, client, server, expected, None, None, "ratio", "not-applicable", reason)
    allowed = (cap.burst + cap.queue) * 8 / (offered * udp.seconds)
    expected = max(0.0, 1 - cap.rate / offered - allowed)
    tolerance = TOLERATED_LOSS
    if share > 1:
        error = math.sqrt(expected * (1 - expected) / udp.sent)
        tolerance = max(3 * error + allowed, GOODPUT_TOLERANCE * (1 - expected))
    verdict, reason = "pass", f"offered {offered / 1e6:.4g} Mbit/s"
    if abs(udp.loss - expected) > tolerance:
        verdict = "fail"
        reason += f"; {idle_cpu:.0%} of the busier node's CPU was idle"
        if udp.loss > expected and idle_cpu < BUSY:
            verdict = "not-applicable"
            reason = f"not testable here: {reason}"
    low, high = proportion(max(0, udp.sent - udp.received), udp.sent)
    return ProfileCheck(
        name, client, server, expected, udp.loss, tolerance, "ratio", verdict, reason, low, high
    )


def judge_packets(client: str, server: str, udp: Udp, cap: Cap | None) -> ProfileCheck:
    """Small datagrams per second that arrive when as many as can be are sent: a fact, whatever it is."""
    reason = f"{udp.payload}-byte datagrams; sent {udp.sent / udp.seconds:.0f} a second"
    if cap is not None:
        used = udp.received * cap.frame(udp.payload) * 8 / udp.seconds / cap.rate
        reason += f", which is {used:.0%} of the rate"
    return ProfileCheck(
        "packets", client, server, None, udp.received / udp.seconds, None, "1/s", "pass", reason
    )


def judge_carried(client: str, server: str, goodput: float) -> ProfileCheck:
    """Goodput, bit/s, where nothing caps it: a fact about the nodes."""
    return ProfileCheck(
        "goodput", client, server, None, goodput, None, "bit/s", "pass", "carried; not capped"
    )


def judge_together(node: str, cap: Cap, goodput: float) -> ProfileCheck:
    """What one node sent to all others at once, bit/s of goodput: together they share the node's one cap."""
    bound = cap.goodput() * (1 + GOODPUT_TOLERANCE)
    verdict = "pass" if goodput <= bound else "fail"
    reason = f"{goodput / cap.goodput():.1%} of the cap, while all nodes send to all"
    return ProfileCheck("goodput-together", node, node, bound, goodput, 0.0, "bit/s", verdict, reason)


# -- two rates --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drained:
    """A bucket as a receiver saw it. burst: bytes above the sustained rate, as the cap counts them; carried,
    sustained: goodput in bit/s before and after the change; at: seconds from the start to the change."""

    burst: float
    carried: float
    sustained: float
    at: float


def drained(series: Sequence[Second], cap: Cap, sustained: float) -> Drained | None:
    """Where a series falls to another rate, and what went out above `sustained` (bit/s) until then.

    The change is where two means fit best. None where there is none, or too little after it to tell a rate.
    """
    rates = [one.received * 8 / one.length for one in series]
    splits = [k for k in range(1, len(series)) if series[-1].end - series[k].end >= SETTLING + LEAST]
    if not splits:
        return None
    at = min(splits, key=lambda k: _squares(rates[:k]) + _squares(rates[k:]))
    counted = cap.rate / cap.goodput()
    # The interval in which the change lies belongs to both: what it has above the sustained rate is the bucket's.
    used = 0.0
    for one in series[: at + 1]:
        used = max(0.0, used + one.received * counted - sustained / 8 * one.length)
    after = [one for one in series if one.start >= series[at].end + SETTLING]
    rest = sum(one.received for one in after) * 8 / sum(one.length for one in after)
    before = statistics.fmean(rates[:at])
    if before <= rest * 1.05:
        return None
    return Drained(used, before, rest, series[at].start)


def _squares(values: Sequence[float]) -> float:
    """Sum of squared distances from the mean."""
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)


def judge_bucket(
    client: str, server: str, bucket: float, sustained: float, cap: Cap, series: Sequence[Second]
) -> list[ProfileCheck]:
    """burst-bytes and sustained, of a transfer that began with a full bucket of `bucket` bytes."""
    found = drained(series, cap, sustained)
    theory = cap.goodput(sustained)
    burst = ProfileCheck(
        "burst-bytes", client, server, bucket, None, BURST_TOLERANCE * bucket, "bytes", "pass"
    )
    rest = ProfileCheck(
        "sustained", client, server, theory, None, GOODPUT_TOLERANCE * theory, "bit/s", "pass"
    )
    if found is None:
        mean = sum(one.received for one in series) * 8 / max(series[-1].end, 1e-9)
        reason = f"not testable here: carried {mean / 1e6:.4g} Mbit/s, which did not empty the bucket"
        return [replace(one, verdict="not-applicable", reason=reason) for one in (burst, rest)]
    told = f"carried {found.carried / 1e6:.4g} Mbit/s for {found.at:.1f} s"
    return [
        _judged(replace(burst, measured=found.burst, reason=told)),
        _judged(replace(rest, measured=found.sustained)),
    ]


def judge_refill(
    client: str,
    server: str,
    bucket: float,
    sustained: float,
    cap: Cap,
    pause: float,
    series: Sequence[Second],
) -> ProfileCheck:
    """What an empty bucket got back in `pause` s without traffic, against what then bursts."""
    expected = min(bucket, sustained / 8 * pause)
    found = drained(series, cap, sustained)
    tolerance = BURST_TOLERANCE * expected + cap.rate / 8 * AGAIN
    check = ProfileCheck("refill", client, server, expected, None, tolerance, "bytes", "pass")
    if found is None:
        return replace(check, verdict="fail", reason=f"nothing burst after {pause:.1f} s")
    return _judged(replace(check, measured=found.burst, reason=f"after {pause:.1f} s without traffic"))


def _judged(check: ProfileCheck) -> ProfileCheck:
    assert check.measured is not None and check.expected is not None and check.tolerance is not None
    off = abs(check.measured - check.expected) > check.tolerance
    return replace(check, verdict="fail") if off else check


# -- loss and jitter --------------------------------------------------------------------------------


def judge_loss(client: str, server: str, declared: float, udp: Udp) -> ProfileCheck:
    """Declared loss, ratio, against the exact interval of what was lost."""
    lost = max(0, udp.sent - udp.received)
    low, high = proportion(lost, udp.sent)
    widest = proportion(lost, udp.sent, LOSS_CONFIDENCE)
    verdict = "pass" if widest[0] <= declared <= widest[1] else "fail"
    reason = f"{lost} of {udp.sent}, 95 %: {low:.3%} to {high:.3%}"
    return ProfileCheck("loss", client, server, declared, udp.loss, None, "ratio", verdict, reason, low, high)


def judge_jitter(
    client: str, server: str, declared: float, without: Sequence[float], rtts: Sequence[float]
) -> ProfileCheck:
    """Spread that jitter of ±`declared` s adds on both ways to RTTs, in s: J·√(2/3), two uniform delays' sum.

    What the machine spreads by itself (`without`) is taken off in squares. Nothing is that sharp under 50 µs.
    """
    expected = declared * math.sqrt(2 / 3)
    spread, own = _spread(rtts), _spread(without)
    measured = math.sqrt(max(0.0, spread**2 - own**2))
    # Kurtosis of a triangular distribution is 2.4 (of a normal 3), hence 1.4.
    error = expected * math.sqrt(1.4 / (4 * len(rtts)))
    tolerance = max(JITTER_TOLERANCE * expected, 3 * error)
    reason = f"{len(rtts)} pings; without jitter they spread by {own * 1e6:.0f} µs"
    check = ProfileCheck("jitter", client, server, expected, measured, tolerance, "s", "pass", reason)
    if own > expected:
        return replace(check, verdict="not-applicable", reason=f"not testable here: {reason}")
    return _judged(check)


def _spread(values: Sequence[float]) -> float:
    """Standard deviation without what lies far outside: a machine's hiccup is no jitter."""
    centre = statistics.median(values)
    far = OUTLIER * statistics.median(abs(value - centre) for value in values)
    return statistics.pstdev([value for value in values if abs(value - centre) <= far])


def judge_overtaken(client: str, server: str, udp: Udp) -> ProfileCheck:
    """No datagram may overtake another under jitter."""
    verdict = "pass" if udp.overtaken == 0 else "fail"
    reason = f"of {udp.received} datagrams"
    return ProfileCheck("overtaken", client, server, 0.0, float(udp.overtaken), 0.0, "1", verdict, reason)
