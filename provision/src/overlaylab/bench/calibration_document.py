"""What was measured between two hosts, as a profile's YAML: each number with how it came about."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from io import StringIO

from overlaylab.bench import calibration
from overlaylab.bench.calibration import Carried
from overlaylab.bench.calibration_nodes import UDP_SECONDS, Datagrams, Measured, Transfer
from overlaylab.core.model import JSON
from overlaylab.core.quantities import UNITS

# Significant digits that are written: more than any of these is known to.
DIGITS = 4


@dataclass(frozen=True)
class Label:
    """What the profile is called. day: of the measurement, ``2026-11-20``. where: ``cluster pair``, ``hosts.yml``."""

    name: str
    day: str
    where: str
    cloud: str | None = None
    instance: str | None = None


def written(value: float, unit: str, spelling: str | None = None) -> str:
    """A quantity as profiles have it: ``100 Mbit/s``. spelling: else the largest that leaves one or more."""
    factors = UNITS[unit]
    if spelling is None:
        fit = [s for s, factor in factors.items() if factor <= value and "i" not in s.removesuffix("bit/s")]
        spelling = max(fit, key=lambda s: factors[s], default=next(iter(factors)))
    return f"{_digits(value / float(factors[spelling]))} {spelling}"


def _digits(value: float, rounding: str | None = None) -> str:
    """Four significant digits without an exponent and without zeros that say nothing."""
    if value == 0:
        return "0"
    exact = Decimal(repr(value))
    last = Decimal(1).scaleb(exact.adjusted() - DIGITS + 1)
    return f"{exact.quantize(last, rounding=rounding).normalize():f}"


def document(measured: Measured, label: Label) -> JSON:
    """The profile as plain data, in the order in which it is written."""
    source = _Sources(measured, label)
    rates = calibration.slower([t.carried for t in measured.transfers], measured.mtu)
    found: dict[str, object] = {
        "description": f"{_subject(label)}, as measured between two hosts",
        "stands_for": {"cloud": label.cloud, "instance": label.instance} if label.cloud else None,
        "rate": source.figure(written(rates.rate, "bit/s"), source.rate()),
    }
    if rates.sustained is not None and rates.bucket is not None:
        found["sustained"] = source.figure(
            written(rates.sustained, "bit/s"), "the level after the drop that the source of rate tells of"
        )
        found["bucket"] = source.figure(
            written(rates.bucket, "bytes"),
            "bytes above the sustained rate until that drop: what was in the bucket when measuring began",
        )
    found["latency"] = source.latency()
    found["jitter"] = source.jitter()
    found["loss"] = source.loss()
    found["mtu"] = source.figure(f"{measured.mtu} bytes", source.mtu())
    found["vcpus"] = source.figure(min(measured.cpus.values()), source.cpus())
    found["offloads"] = "segmented"
    found["ingress_metered"] = {
        "value": False,
        "source": "not measured: traffic between two hosts does not show whose side holds it back",
        "confidence": "estimate",
    }
    return found


COMMENTS = {
    "offloads": "Not measured. Segmented: what the lab's nodes send is cut into packets before it is counted.",
    "jitter": "An upper bound: pings also wait for the hosts themselves.",
}


def text(measured: Measured, label: Label) -> str:
    """The profile's file."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.width = 100
    parts = []
    for key, value in document(measured, label).items():
        part = StringIO()
        # By itself, so that a blank line stands between two numbers, as in the other profiles.
        yaml.dump({key: value}, part)
        line = part.getvalue() if value is not None else f"{key}: null\n"
        parts.append((f"# {COMMENTS[key]}\n" if key in COMMENTS else "") + line)
    head = f"# Written by ./task profile:calibrate on {label.day}. Left out, as it was not measured: queue, quota.\n"
    return head + "\n".join(parts)


class _Sources:
    """How each number came about, in words."""

    def __init__(self, measured: Measured, label: Label) -> None:
        self.measured, self.label = measured, label
        self.between = f"between {' and '.join(measured.pair)} of {label.where}"

    def figure(self, value: object, source: str, confidence: str = "measured") -> JSON:
        told = f"measured on {self.label.day} by profile:calibrate {self.between}: {source}"
        if self.measured.shaped:
            told += f"; with a profile of the lab in force on {' and '.join(self.measured.shaped)}"
        return {"value": value, "source": told, "confidence": confidence}

    def rate(self) -> str:
        mtu = self.measured.mtu
        whole = round(self.measured.transfers[0].carried.seconds)
        told = [
            f"iperf3, one TCP stream, {whole} s each way, goodput × {mtu + 14}/{mtu - 52} for the L2 rate"
        ]
        told += [describe(transfer, mtu) for transfer in self.measured.transfers]
        told.append("the smaller counts, as in a typical second; that it is a cap is not shown")
        if any(transfer.bound for transfer in self.measured.transfers):
            told.append("CPU-bound, the NIC may carry more")
        return "; ".join(told)

    def latency(self) -> JSON:
        measured = self.measured
        found, half = calibration.rtt(measured.rtts)
        value = written(found.median, "s", "ms")
        told = f"median of {len(measured.rtts)} pings 2 ms apart on an idle path, ± {_ms(half)} (95 %)"
        one, other = measured.zones
        if one == other:
            return {"within_zone": self.figure(value, told)}
        guess = f"not measured, the hosts are in zones {one} and {other}: what lies between these, {told}"
        return {
            "within_zone": self.figure(value, guess, "estimate"),
            "between_zones": {f"{min(one, other)}-{max(one, other)}": self.figure(value, told)},
        }

    def jitter(self) -> JSON:
        rtts = self.measured.rtts
        found, half = calibration.jitter(rtts), calibration.rtt(rtts)[0].median / 2
        told = (
            f"interquartile range of {len(rtts)} RTTs / 1.172, as if each way strayed evenly; it holds what the hosts "
            f"themselves stray; the standard deviation of the RTTs is {_ms(statistics.stdev(rtts))}"
        )
        if found > half:
            told += f"; that gave {_ms(found)}, and more than half of the RTT cannot be"
        # Down, so that it is never above half of the RTT as that is written.
        value = _digits(min(found, half * (1 - 10.0 ** (1 - DIGITS))) * 1e3, ROUND_FLOOR)
        return self.figure(f"{value} ms", told)

    def loss(self) -> JSON:
        each = self.measured.datagrams
        whole = calibration.loss(sum(d.loss.sent for d in each), sum(d.loss.lost for d in each))
        size = self.measured.mtu
        told = [
            f"UDP at half of the rate for {UDP_SECONDS} s each way, datagrams that fill the MTU of {size} bytes"
        ]
        told += [_lost(one) for one in each]
        if whole.lost:
            told.append(f"both: {whole.lost} of {whole.sent}, {whole.low:.2g} to {whole.high:.2g} at 95 %")
        else:
            told.append(f"none of {whole.sent} lost; below {whole.high:.2g} at 95 %")
        return self.figure(_number(whole.ratio), "; ".join(told))

    def mtu(self) -> str:
        links = self.measured.links
        told = ", ".join(f"{link} on {node}" for node, link in links.items())
        return f"the largest ping with DF that passes both ways; the interfaces have {told}"

    def cpus(self) -> str:
        told = ", ".join(f"{count} on {node}" for node, count in self.measured.cpus.items())
        return f"nproc: {told}"


def describe(transfer: Transfer, mtu: int) -> str:
    """One direction of TCP in words, L2."""
    carried = transfer.carried
    factor = calibration.l2_factor(mtu)

    def rate(value: float) -> str:
        return written(value * factor, "bit/s")

    told = f"{transfer.sender}→{transfer.receiver} {rate(carried.rate)}"
    told += f" ({rate(carried.lowest)} to {rate(carried.highest)} each second)"
    told += _drop(carried, factor)
    if carried.head > 0.1 * carried.rate / 8:
        told += f", and {written(carried.head * factor, 'bytes')} more at the beginning"
    return told + (f" ({transfer.bound})" if transfer.bound else "")


def _drop(carried: Carried, factor: float) -> str:
    if carried.sustained is not None and carried.bucket is not None:
        low, bucket = (
            written(carried.sustained * factor, "bit/s"),
            written(carried.bucket * factor, "bytes"),
        )
        return f", after {bucket} above it {low}"
    if carried.late is not None:
        low = written(carried.late * factor, "bit/s")
        return f", and {low} at the very end: DURATION was too short to tell what that is"
    return f", no drop seen in {carried.seconds:.0f} s and {written(carried.amount * factor, 'bytes')}"


def _ms(seconds: float) -> str:
    """What is said beside a number needs two digits."""
    return f"{float(f'{seconds * 1e3:.2g}'):g} ms"


def _lost(one: Datagrams) -> str:
    told = (
        f"{one.sender}→{one.receiver} {one.loss.lost} of {one.loss.sent} at {written(one.offered, 'bit/s')}"
    )
    return told + (f", and {one.unread} arrived that the receiver did not read in time" if one.unread else "")


def _number(value: float) -> float | int:
    """Four significant digits; a whole 0 where nothing was lost."""
    return 0 if value == 0 else round(value, DIGITS - 1 - math.floor(math.log10(value)))


def _subject(label: Label) -> str:
    return " ".join(filter(None, (label.cloud, label.instance))) or label.name
