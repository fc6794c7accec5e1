"""What the lab has of each published pair, and what it would have to measure: from the database and the checkout.

No overlay and no tier is named here: pairs come from the published rows, tiers from the profiles that stand for
them, overlays and modes from the roles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overlaylab.core import paths
from overlaylab.core.documents import names_in
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.results import results
from overlaylab.results.fidelity import NOT_MEASURED, Lab, Verdict, judge
from overlaylab.results.fidelity_run import METRICS, as_printed, lab_of, of_one_zone
from overlaylab.results.precision import flaws_of, published_interval
from overlaylab.results.published import Pair, pairs
from overlaylab.shaping.theory import ratio_theory
from overlaylab.specs import overlays
from overlaylab.specs.profile import Profile, load_profile
from overlaylab.stats.inference import MEDIAN_TAKES, Interval
from overlaylab.store.store import Store

# (cloud, instance), as in the published rows.
Tier = tuple[str, str | None]


@dataclass(frozen=True)
class LabRun:
    """One run of the lab. arguments: of the overlay's role, as ARGUMENTS takes them."""

    profile: str
    overlay: str
    arguments: str | None
    pairs: tuple[Pair, ...]

    @property
    def modes(self) -> str:
        """As MODES takes them."""
        return ",".join(dict.fromkeys(str(pair.mode) for pair in self.pairs))


@dataclass(frozen=True)
class Measured:
    """A pair in one run. current: the profile is still what it was then. as_printed: with the MTU that the
    publication says, or the overlay's own where it says none."""

    run_id: str
    lab: Lab
    current: bool
    as_printed: bool

    def suffices(self, blocks: int) -> bool:
        """Nothing has to be measured again. blocks: how many are asked for; more than an interval takes need not be."""
        return self.current and self.as_printed and self.lab.n >= min(blocks, MEDIAN_TAKES)


@dataclass(frozen=True)
class Line:
    """One pair on one accelerator; measured is None where the lab has none."""

    pair: Pair
    profile: str
    interval: Interval | None
    flaws: tuple[str, ...]
    headers: float | None
    measured: Measured | None
    verdict: Verdict


def tiers() -> dict[Tier, list[Profile]]:
    """Every profile that stands for something. Raises UserError where one is wrong."""
    found: dict[Tier, list[Profile]] = {}
    for name in names_in(paths.PROFILES):
        profile = load_profile(name)
        if profile.stands_for:
            tier = (profile.stands_for["cloud"], profile.stands_for.get("instance"))
            found.setdefault(tier, []).append(profile)
    return found


def tier_of(pair: Pair) -> Tier:
    return (pair.cloud, pair.instance)


def published_pairs(store: Store) -> tuple[Pair, ...]:
    """The pairs that are judged: TCP goodput and one-way TCP latency."""
    return tuple(p for p in pairs(store, "protocol = 'tcp'") if p.metric in METRICS)


def in_the_lab(pair: Pair) -> bool:
    """The overlay has a role that knows the mode."""
    return pair.overlay in overlays.names() and pair.mode in overlays.load(pair.overlay).modes


def mtu_argument(pair: Pair) -> str | None:
    """What sets the published overlay MTU, None where none was printed. UserError where the role has no such argument."""
    if pair.mtu is None:
        return None
    written = f"{overlays.role(pair.overlay).name}_mtu={pair.mtu}"
    overlays.role_arguments(pair.overlay, written)
    return written


def runs_needed(found: Sequence[Pair], known: Mapping[Tier, Sequence[Profile]]) -> tuple[LabRun, ...]:
    """The runs that give all pairs, one for each profile, overlay and MTU."""
    groups: dict[tuple[str, str, str | None], list[Pair]] = {}
    for pair in found:
        profiles = known.get(tier_of(pair))
        if profiles and in_the_lab(pair):
            groups.setdefault((profiles[0].name, pair.overlay, mtu_argument(pair)), []).append(pair)
    return tuple(
        LabRun(profile, overlay, arguments, tuple(its))
        for (profile, overlay, arguments), its in groups.items()
    )


class Runs:
    """Reads runs once, however many pairs ask for them."""

    def __init__(self, store: Store, headers: results.HeaderBytes = results.header_bytes) -> None:
        self.store, self.headers = store, headers
        self._reports: dict[str, results.Report] = {}

    def of(self, pair: Pair, profiles: Sequence[Profile]) -> dict[str, Measured]:
        """{accelerator: the run that counts}.

        The newest finished one; but one with the profile as it is now before one with an earlier, one with
        the published MTU before another, and one with an interval before one without: a later look at one
        block does not hide what six have shown. Only nodes of one zone: nothing was published between two.
        """
        digests = {profile.name: profile.digest for profile in profiles}
        best: dict[str, tuple[tuple[bool, bool, bool], Measured]] = {}
        rows = self.store.db.execute(
            "SELECT run_id, accelerator, profile, profile_digest FROM run"
            " WHERE state = 'done' AND origin = 'measured' AND cloud = ? AND instance IS ? ORDER BY created_at DESC, run_id DESC",
            tier_of(pair),
        ).fetchall()
        for row in rows:
            if row["profile"] not in digests:
                continue  # a variation of the tier, or a profile that is no longer here
            lab, as_printed = self._lab(row["run_id"], pair)
            if lab is None:
                continue
            one = Measured(row["run_id"], lab, digests[row["profile"]] == row["profile_digest"], as_printed)
            rank = (one.current, one.as_printed, lab.interval is not None)
            if row["accelerator"] not in best or rank > best[row["accelerator"]][0]:
                best[row["accelerator"]] = (rank, one)
        return {accelerator: one for accelerator, (_, one) in best.items()}

    def _lab(self, run_id: str, pair: Pair) -> tuple[Lab | None, bool]:
        if run_id not in self._reports:
            self._reports[run_id] = results.report(self.store, run_id, self.headers)
        report = self._reports[run_id]
        if not of_one_zone(report):
            return None, False
        candidates = [
            (table, row)
            for table in report.tables
            for row in table.rows
            if row.ratio and any(p.comparable and p.pair == pair for p in row.published)
        ]
        # The publication's own tool where a run has it among several.
        candidates.sort(key=lambda found: not any(tool.startswith(pair.tool) for tool in found[0].tools))
        if not candidates:
            return None, False
        return lab_of(self.store, report, *candidates[0]), as_printed(report, pair)


def lines(
    store: Store,
    found: Sequence[Pair],
    known: Mapping[Tier, Sequence[Profile]],
    headers: results.HeaderBytes = results.header_bytes,
) -> tuple[Line, ...]:
    """Every pair whose overlay and tier the lab has, once per accelerator that it was measured on."""
    runs, made = Runs(store, headers), []
    for pair in found:
        profiles = known.get(tier_of(pair))
        if not profiles or not in_the_lab(pair):
            continue
        interval, flaws = published_interval(pair), flaws_of(pair)
        by_accelerator = runs.of(pair, profiles)
        for accelerator in sorted(by_accelerator):
            one = by_accelerator[accelerator]
            verdict = judge(one.lab, pair.metric, interval)
            made.append(Line(pair, profiles[0].name, interval, flaws, one.lab.headers, one, verdict))
        if not by_accelerator:
            theory = headers_only(pair, profiles[0], headers)
            made.append(Line(pair, profiles[0].name, interval, flaws, theory, None, Verdict(NOT_MEASURED)))
    return tuple(made)


def headers_only(pair: Pair, profile: Profile, headers: results.HeaderBytes) -> float | None:
    """The goodput ratio if only headers cost, for a pair that was not measured; None where it cannot be told."""
    added = headers(Variant(pair.overlay, pair.mode))
    if pair.metric != "goodput" or added is None or profile.mtu is None:
        return None
    try:
        return ratio_theory(profile.mtu, added, pair.mtu)
    except ValueError:
        return None


def left_out(found: Sequence[Pair], known: Mapping[Tier, Sequence[Profile]]) -> dict[str, list[str]]:
    """Why pairs are not judged -> which they are, each named once."""
    why: dict[str, dict[str, None]] = {}
    for pair in found:
        tier = " ".join(filter(None, tier_of(pair)))
        overlay = " ".join(filter(None, (pair.overlay, pair.mode)))
        if not in_the_lab(pair):
            why.setdefault("overlay not in the lab yet", {})[f"{overlay} on {tier}"] = None
        elif tier_of(pair) not in known:
            why.setdefault("no profile stands for the tier", {})[f"{tier}"] = None
    return {reason: list(names) for reason, names in why.items()}


def chosen(typed: str | None, found: Sequence[Pair], known: Mapping[Tier, list[Profile]]) -> tuple[Pair, ...]:
    """The pairs of the tiers that PROFILES names, comma-separated; all where it names none. Raises UserError."""
    if not typed:
        return tuple(found)
    names = [name.strip() for name in typed.split(",")]
    judged = {
        profile.name: tier
        for tier, profiles in known.items()
        for profile in profiles
        if any(tier_of(pair) == tier for pair in found)
    }
    for name in names:
        load_profile(name)
        if name not in judged:
            raise UserError(
                "PROFILES",
                "must be profiles of tiers that something was published for",
                seen=f'"{name}"',
                fix=f"Known: {', '.join(judged)}.",
            )
    return tuple(pair for pair in found if tier_of(pair) in {judged[name] for name in names})
