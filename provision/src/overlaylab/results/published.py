"""Ratios that were published for the same tier, overlay and mode, with what is wrong about them."""

from __future__ import annotations

import shlex
import sqlite3
import statistics
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from overlaylab.core.model import JSON, Variant
from overlaylab.results import precision
from overlaylab.specs import overlays
from overlaylab.store.store import Store

# Published values are rounded: two that are one step apart may differ by a little more.
ROUNDING = 1.05


@dataclass(frozen=True)
class Pair:
    """Host and overlay of one publication, on one tier, with one tool and set of parameters.

    mtu: the overlay's, bytes, None where it was not printed. Values are in the metric's base unit, one per
    printed figure. notes: what published.csv remarks on the rows, ``host: …`` where it concerns the baseline.
    """

    publication: str
    cloud: str
    instance: str | None
    overlay: str
    mode: str | None
    version: str | None
    mtu: int | None
    tool: str
    protocol: str
    metric: str
    parameters: str | None
    host_values: tuple[float, ...]
    overlay_values: tuple[float, ...]
    notes: tuple[str, ...]

    @property
    def host_value(self) -> float:
        return statistics.fmean(self.host_values)

    @property
    def overlay_value(self) -> float:
        return statistics.fmean(self.overlay_values)

    @property
    def ratio(self) -> float:
        """Mean of the overlay's figures over the mean of the host's."""
        return self.overlay_value / self.host_value

    @property
    def same(self) -> bool:
        """The two differ by no more than the tool's step."""
        apart = abs(self.overlay_value - self.host_value)
        return 0 < apart <= precision.step_of(self) * ROUNDING

    @property
    def source(self) -> str:
        """Overlay version, MTU and tool, as far as they were printed."""
        overlay = [
            f"{self.overlay} {self.version}" if self.version else None,
            f"MTU {self.mtu}" if self.mtu else None,
        ]
        return ", ".join(filter(None, [*overlay, " ".join(filter(None, (self.tool, self.parameters)))]))


@dataclass(frozen=True)
class Published:
    """A pair beside something measured here. comparable: its overlay MTU is one of ours or unstated."""

    pair: Pair
    comparable: bool

    @property
    def publication(self) -> str:
        return self.pair.publication

    @property
    def source(self) -> str:
        return self.pair.source

    @property
    def ratio(self) -> float:
        return self.pair.ratio

    @property
    def same(self) -> bool:
        return self.pair.same

    @property
    def overlay_value(self) -> float:
        return self.pair.overlay_value

    @property
    def host_value(self) -> float:
        return self.pair.host_value

    @property
    def notes(self) -> tuple[str, ...]:
        return self.pair.notes


def pairs(store: Store, where: str = "TRUE", values: Iterable[object] = ()) -> tuple[Pair, ...]:
    """Every pair among the published rows that the SQL condition selects, in the order of published.csv.

    Baseline and overlay must come from one publication, tier, tool and set of parameters.
    """
    query = f"SELECT * FROM published WHERE tool IS NOT NULL AND ({where})"
    rows = store.db.execute(query, tuple(values)).fetchall()
    test = ("publication", "cloud", "instance", "tool", "protocol", "metric", "parameters")
    about = (*test, "overlay", "mode", "overlay_version", "overlay_mtu_bytes")
    found = []
    for key in dict.fromkeys(tuple(row[name] for name in about) for row in rows):
        named = dict(zip(about, key, strict=True))
        same_test = [row for row in rows if all(row[name] == named[name] for name in test)]
        host = [row for row in same_test if row["overlay"] == "host"]
        own = [row for row in same_test if all(row[name] == named[name] for name in about)]
        if named["overlay"] == "host" or not host:
            continue
        found.append(
            Pair(
                **{name: named[name] for name in (*test, "overlay", "mode")},
                version=named["overlay_version"],
                mtu=named["overlay_mtu_bytes"],
                host_values=tuple(row["value"] for row in host),
                overlay_values=tuple(row["value"] for row in own),
                notes=_notes(own, "") + _notes(host, "host: "),
            )
        )
    return tuple(found)


def published_ratio(
    store: Store,
    stands_for: JSON | None,
    variant: Variant,
    metric: str,
    protocol: str,
    mtus: Collection[int | None],
) -> tuple[Published, ...]:
    """What was published for a variant on the tier that the profile stands for; empty where nothing was.

    mtus: bytes, of the overlay's packets: what passes, and what its role was told. A publication prints the latter,
    which its headers may leave no room for: Weave's sleeve that is told 8950 passes 8939 at 9001.
    The publications measured without encryption, so an encrypted variant has none.
    """
    if stands_for is None or variant.encrypted or variant.mode is None:
        return ()
    tier = "cloud = ? AND instance IS ? AND metric = ? AND protocol = ?"
    found = pairs(store, tier, (stands_for["cloud"], stands_for.get("instance"), metric, protocol))
    return tuple(
        Published(pair, comparable=pair.mtu is None or pair.mtu in mtus)
        for pair in found
        if (pair.overlay, pair.mode) == (variant.overlay, variant.mode)
    )


def mtu_typed(arguments: str | None, overlay: str) -> int | None:
    """The MTU, bytes, in what was typed as ARGUMENTS=overlay_weave_mtu=8950; None where none was."""
    for word in shlex.split(arguments or ""):
        option, _, value = word.partition("=")
        if option == f"{overlays.role(overlay).name}_mtu":
            return int(value)
    return None


def _notes(rows: list[sqlite3.Row], whose: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(whose + row["note"] for row in rows if row["note"]))
