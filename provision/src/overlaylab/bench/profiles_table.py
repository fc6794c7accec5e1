"""What a person reads of `bench:profiles`: a table per cluster, what did not pass and why, and the targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from overlaylab.core.model import ProfileCheck
from overlaylab.report import checks as results_checks
from overlaylab.report.checks import MISSING, value
from overlaylab.shaping.checks import GOODPUT_TOLERANCE
from overlaylab.specs.profile import Profile

# bit/s up to which goodput is promised to be exact with traffic segmented.
EXACT_UP_TO = 400e6


@dataclass(frozen=True)
class Proved:
    """One profile on one cluster, and all checks of it. state: of its run."""

    cluster: str
    profile: Profile
    run_id: str
    state: str
    checks: tuple[ProfileCheck, ...]


@dataclass(frozen=True)
class Target:
    """A promise and how far it was kept; worst: the largest deviation in words."""

    text: str
    met: int
    missed: int
    not_here: int
    worst: str | None

    def line(self) -> str:
        if not self.met + self.missed:
            verdict = "not measured"
        else:
            verdict = "met" if not self.missed else "MISSED"
            verdict += f", {self.met} of {self.met + self.missed}"
        worst = f"; farthest: {self.worst}" if self.worst else ""
        not_here = f"; {self.not_here} not testable here" if self.not_here else ""
        return f"{self.text}: {verdict}{not_here}{worst}"


def show(proved: Sequence[Proved], console: Console) -> None:
    """Print all of it; nothing where nothing was proved."""
    for cluster in dict.fromkeys(one.cluster for one in proved):
        console.print()
        console.print(Text(f"profiles on {cluster}", "bold"))
        console.print(_grid([one for one in proved if one.cluster == cluster]))
    remarks = list(_remarks(proved))
    if remarks:
        console.print()
        console.print(Text("What did not pass:", "bold"))
        for text in remarks:
            console.print(Text(text), soft_wrap=True)
    if proved:
        console.print()
        console.print(Text("Targets, on an idle machine:", "bold"))
        for target in targets(proved):
            console.print(Text(f"   {target.line()}"), soft_wrap=True)


HEADINGS = {
    "profile": "left", "MTU": "right", "nodes": "left", "goodput →, %": "right", "←, %": "right",
    "RTT, of": "right", "loaded": "right", "lost at .95, 1.2": "right", "packets": "right",
    "declared": "left", "verdict": "left",
}  # fmt: skip


def _grid(proved: Sequence[Proved]) -> Grid:
    rows = [cells for one in proved for cells in _rows(one)]
    # A column in which nobody has anything to say is left out.
    shown = [n for n in range(len(HEADINGS)) if any(cells[n] not in (MISSING, "") for cells in rows)]
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for n, (heading, justify) in enumerate(HEADINGS.items()):
        if n in shown:
            grid.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for cells in rows:
        grid.add_row(*(cells[n] for n in shown))
    return grid


def _rows(one: Proved) -> Iterable[list[str]]:
    """A row for each pair of nodes; what is not of a pair stands in the first."""
    pairs = (
        list(
            dict.fromkeys(
                (c.client_node, c.server_node) for c in one.checks if c.name in ("rtt-baseline", "rtt-idle")
            )
        )
        or list(dict.fromkeys((c.client_node, c.server_node) for c in one.checks))[:1]
    )
    for number, (client, server) in enumerate(pairs or [(MISSING, MISSING)]):
        first = number == 0
        baseline = _find(one, "rtt-idle", client, server) or _find(one, "rtt-baseline", client, server)
        loaded = _find(one, "rtt-loaded", client, server)
        packets = _find(one, "packets")
        yield [
            one.profile.name if first else "",
            str(one.profile.mtu or MISSING) if first else "",
            f"{client} {server}",
            _share(_find(one, "goodput", client, server)),
            _share(_find(one, "goodput", server, client)),
            _of(baseline),
            MISSING if loaded is None else value(loaded.measured, loaded.unit),
            _losses(one) if first else "",
            MISSING if packets is None or not first else f"{packets.measured:.0f}/s",
            _declared(one) if first else "",
            _verdict(one) if first else "",
        ]


def _find(
    one: Proved, name: str, client: str | None = None, server: str | None = None
) -> ProfileCheck | None:
    """The newest of that name, between those nodes where they are named."""
    found = None
    for check in one.checks:
        if check.name == name and (
            client is None or (check.client_node, check.server_node) == (client, server)
        ):
            found = check
    return found


def _share(check: ProfileCheck | None) -> str:
    if check is None:
        return MISSING
    told = value(check.measured, check.unit)
    return f"{told} {check.measured / check.expected:.1%}" if check.expected and check.measured else told


def _of(check: ProfileCheck | None) -> str:
    if check is None:
        return MISSING
    told = value(check.measured, check.unit)
    return told if check.expected is None else f"{told} of {value(check.expected, check.unit)}"


def _losses(one: Proved) -> str:
    found = [c for c in one.checks if c.name.startswith("udp-loss")]
    if not found:
        return MISSING
    return ", ".join(MISSING if c.measured is None else f"{c.measured:.2%}" for c in found)


def _declared(one: Proved) -> str:
    """What was declared and came out: bytes of the bucket, loss, jitter, the sum of all flows."""
    told = []
    for name in ("burst-bytes", "sustained", "refill", "loss", "jitter"):
        check = _find(one, name)
        if check is None or check.measured is None:
            continue
        measured = value(check.measured, check.unit)
        if name in ("loss", "jitter"):
            told.append(f"{name} {measured} of {value(check.expected, check.unit)}")
        elif check.expected:
            told.append(f"{name} {measured} {check.measured / check.expected:.1%}")
    together = [
        c.measured / c.expected
        for c in one.checks
        if c.name == "goodput-together" and c.measured and c.expected
    ]
    if together:
        highest = max(together) * (1 + GOODPUT_TOLERANCE)
        told.append(f"to all at once {highest:.1%} of the cap")
    return "\n".join(told) or MISSING


def _verdict(one: Proved) -> str:
    failed = sum(check.verdict == "fail" for check in one.checks)
    not_here = sum(check.verdict == "not-applicable" for check in one.checks)
    said = f"FAILED {failed}" if failed else "pass"
    if not one.checks:
        return "nothing measured"
    if one.state != "done":
        said = f"unfinished, {said}"
    return f"{said}, {not_here} not here" if not_here else said


def _remarks(proved: Sequence[Proved]) -> Iterable[str]:
    for one in proved:
        for check in one.checks:
            if check.verdict != "pass":
                where = f"{one.profile.name} on {one.cluster}"
                yield f"   {where}: {results_checks.line(asdict(check))}"


# -- targets ----------------------------------------------------------------------------------------


def targets(proved: Sequence[Proved]) -> list[Target]:
    """What bench:profiles promises, over everything that was proved."""
    every = [(one, check) for one in proved for check in one.checks]
    goodput = [
        (one, c)
        for one, c in every
        if c.name == "goodput"
        and c.expected
        and one.profile.segmented
        and one.profile.rate
        and one.profile.rate <= EXACT_UP_TO
    ]
    faster = [(one, c) for one, c in every if c.name == "goodput" and c.expected and (one, c) not in goodput]
    rtt = [(one, c) for one, c in every if c.name == "rtt-idle"]
    burst = [(one, c) for one, c in every if c.name == "burst-bytes"]
    return [
        _target("goodput within 1 % of theory up to 400 Mbit/s, segmented", goodput),
        _target("goodput within 1 % of theory, the others", faster),
        _target("idle RTT within 5 % or 50 µs", rtt),
        _target("burst bytes within 5 %", burst),
    ]


def _target(text: str, of: Sequence[tuple[Proved, ProfileCheck]]) -> Target:
    by = {v: [(o, c) for o, c in of if c.verdict == v] for v in ("pass", "fail", "not-applicable")}
    off = [
        (abs(c.measured / c.expected - 1), o, c)
        for o, c in [*by["pass"], *by["fail"]]
        if c.measured is not None and c.expected
    ]
    worst = None
    if off:
        far, one, check = max(off, key=lambda found: found[0])
        worst = f"{far:.2%}, {one.profile.name} {check.client_node} to {check.server_node}"
    return Target(text, len(by["pass"]), len(by["fail"]), len(by["not-applicable"]), worst)
