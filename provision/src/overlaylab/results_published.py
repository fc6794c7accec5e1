"""Ratios that were published for the same tier, overlay and mode, with what is wrong about them."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass

from overlaylab.model import JSON, Variant
from overlaylab.store import Store

STEP_IN_NOTE = re.compile(r"one step is ([0-9.]+) ")
"""The tool's step, in the row's unit, as the notes of published.csv state it."""
ROUNDING = 1.05
"""Published values are rounded: two that are one step apart may differ by a little more."""


@dataclass(frozen=True)
class Published:
    """One published comparison. ratio: mean of the overlay's rows over the mean of the host's.

    same: the two differ by no more than the tool's step. comparable: its overlay MTU is ours or unstated.
    notes: what published.csv remarks on the rows, ``host: …`` where it concerns the baseline.
    """

    publication: str
    source: str
    """Overlay version, MTU and tool, as far as they were printed."""
    ratio: float
    same: bool
    comparable: bool
    overlay_value: float
    host_value: float
    notes: tuple[str, ...]


def published_ratio(
    store: Store,
    stands_for: JSON | None,
    variant: Variant,
    metric: str,
    protocol: str,
    overlay_mtu: int | None,
) -> tuple[Published, ...]:
    """What was published for a variant on the tier that the profile stands for; empty where nothing was.

    Baseline and overlay must come from one publication, tool and set of parameters. The publications
    measured without encryption, so an encrypted variant has none.
    """
    if stands_for is None or variant.encrypted or variant.mode is None:
        return ()
    rows = store.db.execute(
        "SELECT * FROM published WHERE cloud = ? AND instance IS ? AND metric = ? AND protocol = ?",
        (stands_for["cloud"], stands_for.get("instance"), metric, protocol),
    ).fetchall()
    found = []
    groups = dict.fromkeys(
        (r["publication"], r["tool"], r["parameters"], r["overlay_version"], r["overlay_mtu_bytes"])
        for r in rows
        if (r["overlay"], r["mode"]) == (variant.overlay, variant.mode)
    )
    for publication, tool, parameters, version, mtu in groups:
        same_test = [
            r
            for r in rows
            if (r["publication"], r["tool"], r["parameters"]) == (publication, tool, parameters)
        ]
        own = [
            r
            for r in same_test
            if (r["overlay"], r["mode"], r["overlay_version"], r["overlay_mtu_bytes"])
            == (variant.overlay, variant.mode, version, mtu)
        ]
        host = [r for r in same_test if r["overlay"] == "host"]
        if not host:
            continue
        overlay_value, host_value = (statistics.fmean(r["value"] for r in side) for side in (own, host))
        source = [f"{variant.overlay} {version}" if version else None, f"MTU {mtu}" if mtu else None]
        found.append(
            Published(
                publication=publication,
                source=", ".join(filter(None, [*source, " ".join(filter(None, (tool, parameters)))])),
                ratio=overlay_value / host_value,
                same=0 < abs(overlay_value - host_value) <= _step([*own, *host]) * ROUNDING,
                comparable=mtu is None or mtu == overlay_mtu,
                overlay_value=overlay_value,
                host_value=host_value,
                notes=_notes(own, "") + _notes(host, "host: "),
            )
        )
    return tuple(found)


def _step(rows: list) -> float:
    stated = [STEP_IN_NOTE.search(r["note"] or "") for r in rows]
    return max((float(m.group(1)) for m in stated if m), default=0.0)


def _notes(rows: list, whose: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(whose + r["note"] for r in rows if r["note"]))
