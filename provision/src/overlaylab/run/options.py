"""What is typed for a run: every option once.

click's options, a run's stored arguments, the printed command line, the Taskfiles and docs/tasks.md follow from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import click

from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.run.design import PERCENT


@dataclass(frozen=True)
class Limits:
    """What a number has to lie between, and what to do where it does not."""

    least: int
    most: int
    fix: str
    # Where the number is not how one writes it.
    most_as_written: str = ""

    def check(self, variable: str, value: int) -> None:
        """Raises UserError."""
        if not self.least <= value <= self.most:
            rule = f"must lie between {self.least} and {self.most_as_written or self.most}"
            raise UserError(variable, rule, seen=value, fix=self.fix)


@dataclass(frozen=True)
class Variable:
    """What is said and asked of an option beside its name, type and default."""

    # For --help.
    help: str
    # For the table in docs/tasks.md, in Markdown.
    default: str
    meaning: str
    # How it is read, where its type does not say it.
    kind: click.ParamType[Any] | None = None
    limits: Limits | None = None
    # What a stored run calls it: "" like the field, None where it is not of one run.
    key: str | None = ""


@dataclass(frozen=True)
class Options:
    """As typed; None for what was left out. A field `fresh` is typed FRESH=5, or --fresh 5 behind `overlaylab measure`."""

    profiles: Annotated[
        str | None,
        Variable(
            help="Several tiers, comma-separated: a run each, and a table of all.",
            default="none",
            meaning="several tiers, with commas, instead of `PROFILE`: [a run each](measuring.md#several-tiers)",
            key=None,
        ),
    ] = None
    modes: Annotated[
        str | None,
        Variable(
            help="Modes, comma-separated; default: the overlay's own choice.",
            default="the overlay's own choice",
            meaning="modes, with commas: `fastdp`, `fastdp-encrypted`, `sleeve`, `sleeve-encrypted`; with `lab:all` every mode, "
            "`default`, or `weave/sleeve,flannel/udp`",
        ),
    ] = None
    arguments: Annotated[
        str | None,
        Variable(
            help="Arguments of the overlay's role: overlay_weave_mtu=1410.",
            default="none",
            meaning="further arguments of the overlay's role, `name=value`",
        ),
    ] = None
    cluster: Annotated[
        str | None,
        Variable(
            help="Cluster of VMs (default: the suite's, else pair).",
            default="`pair`, or the suite's; with `lab:resume` any",
            meaning="nodes, a file in `vagrant/clusters/`",
        ),
    ] = None
    provider: Annotated[
        str | None,
        Variable(
            help="What the nodes are: libvirt or virtualbox (VMs), lxc (system containers); default: what fits here.",
            default="what fits this machine",
            meaning="what the nodes are: `libvirt` or `virtualbox` (VMs), `lxc` (system containers); "
            "[docs/providers.md](providers.md)",
        ),
    ] = None
    system: Annotated[
        str | None,
        Variable(
            help="What the nodes' system is, one of packer/systems (default debian).",
            default="`debian`",
            meaning="the nodes' system, a folder in `packer/systems/`: [docs/systems.md](systems.md)",
        ),
    ] = None
    inventory: Annotated[
        str | None,
        Variable(
            help="Measure on these SSH hosts instead of VMs.",
            default="none",
            meaning="measure on these [SSH hosts](ssh-hosts.md) instead of VMs",
        ),
    ] = None
    profile: Annotated[
        str | None,
        Variable(
            help="Tier to emulate (default azure-a1; none on SSH hosts).",
            default="`azure-a1`; `none` with `INVENTORY`",
            meaning="tier to emulate, a file in `profiles/`",
        ),
    ] = None
    suite: Annotated[
        str,
        Variable(
            help="What is measured.",
            default="`quick`",
            meaning="what is measured: `full`, `noise`, or as in a publication, [docs/suites.md](suites.md)",
        ),
    ] = "quick"
    blocks: Annotated[
        int | None,
        Variable(
            help="Repetitions of the whole (default: the suite's).",
            default="the suite's, or as many as its verdicts take",
            meaning="repetitions of the whole",
            limits=Limits(1, 1000, fix="Leave it out for the suite's own"),
        ),
    ] = None
    fresh: Annotated[
        int | None,
        Variable(
            help="Boot the nodes for every so many-th block, 0 for none (default: the suite's).",
            default="the suite's, else 0",
            meaning="every so many-th block is measured on nodes that were booted for it, 0: none",
            limits=Limits(
                0,
                1000,
                fix="FRESH=5 boots the nodes for every fifth block; leave it out for the suite's own",
            ),
        ),
    ] = None
    scale: Annotated[
        float, Variable(help="Stretch durations.", default="1", meaning="stretches the suite's durations")
    ] = 1.0
    seed: Annotated[
        int | None,
        Variable(
            help="Seed of the random order (default: a new one).",
            default="a new one",
            meaning="where the random order comes from",
            limits=Limits(0, 2**63 - 1, fix="Leave it out for a new one", most_as_written="2^63 - 1"),
        ),
    ] = None
    margin: Annotated[
        float | None,
        Variable(
            help="What counts as the same, such as 2% (the default); settled before the run.",
            default="2%",
            meaning="what counts as the same in [verdicts](statistics.md); settled before the run",
            kind=PERCENT,
        ),
    ] = None
    precision: Annotated[
        float | None,
        Variable(
            help="Measure until every ratio is known to ± this much, such as 2%, or BLOCKS are done.",
            default="none",
            meaning="measure until every ratio is known to ± this much, `2%` for example, or `BLOCKS` are done",
            kind=PERCENT,
        ),
    ] = None
    overlays: Annotated[
        str | None,
        Variable(
            help="With `all`: these overlays, comma-separated.",
            default="all",
            meaning="which overlays `lab:all` takes, with commas",
            key="only",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        Variable(
            help="Print the plan and what it takes; start nothing.",
            default="no",
            meaning="print the plan and what it takes",
            key=None,
        ),
    ] = False

    def check(self) -> None:
        """Whether numbers lie within their limits. Raises UserError."""
        for name, option in declared().items():
            value = getattr(self, name)
            if option.about.limits and value is not None:
                option.about.limits.check(option.variable, value)

    def stored(self) -> dict[str, object]:
        """What `read` makes the same options of."""
        return {option.key: getattr(self, name) for name, option in declared().items() if option.key}

    def words(self) -> list[str]:
        """The variables to type for it, for a shell."""
        told = [(option, getattr(self, name)) for name, option in declared().items()]
        return [
            f"{option.variable}={shlex.quote(option.typed(value))}"
            for option, value in told
            if value is not None and value is not False
        ]


@dataclass(frozen=True)
class Declared:
    """A field of `Options`. kind: the type of its values."""

    name: str
    kind: type
    default: object
    about: Variable

    @property
    def variable(self) -> str:
        return self.name.upper()

    @property
    def key(self) -> str | None:
        return self.name if self.about.key == "" else self.about.key

    def typed(self, value: Any) -> str:
        """A value as one types it."""
        if self.about.kind is PERCENT:
            return f"{value * 100:g}%"
        return "1" if value is True else str(value)


@cache
def declared() -> Mapping[str, Declared]:
    """Every field of `Options` by its name, in their order."""
    found = {}
    usual = Options()
    for name, hint in get_type_hints(Options, include_extras=True).items():
        kinds, about = get_args(hint)
        kind = next((one for one in get_args(kinds) if one is not NoneType), kinds)
        found[name] = Declared(name, kind, getattr(usual, name), about)
    return found


def read(arguments: JSON) -> Options:
    """Those of a stored run. One of an older lab may lack some: they have their defaults."""
    options = declared().items()
    return Options(**{name: arguments[one.key] for name, one in options if one.key and one.key in arguments})
