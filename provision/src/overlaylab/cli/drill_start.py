"""Which drill was meant, and the nodes that it is to be on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from overlaylab.cli.commands.measure import provider_for
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.core.progress import say
from overlaylab.drills import proofs, where
from overlaylab.drills.lifecycle import Asked
from overlaylab.providers import Provider, registry
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs import drill as drills
from overlaylab.specs.drill import Drill

# What DESTRUCTIVE= has to say.
AT_RISK = "yes"


def proven() -> list[Drill]:
    """Those that were proven somewhere, the easy ones first."""
    found = [drill for drill in map(drills.load, drills.names()) if proofs.read(drill)]
    return sorted(found, key=lambda drill: (drill.level, drill.minutes, drill.name))


def among(
    level: int | None, course: str | None, profile: str | None, provider_name: str | None
) -> list[Drill]:
    """Those of that level and course that run here, under that tier and with that provider. UserError where there is none."""
    every = [drill for drill in proven() if _runs(drill, profile, provider_name)]
    found = [one for one in every if level in (None, one.level) and (not course or course in one.courses)]
    if not found:
        courses = sorted({course for one in every for course in one.courses})
        raise UserError(
            "LEVEL, COURSE", "must leave a drill", seen=f"LEVEL={level or ''} COURSE={course or ''}",
            fix=f"Levels are 1 to 3, courses {', '.join(courses) or 'none'}; ./task drill:list shows which run where",
        )  # fmt: skip
    return found


def _runs(drill: Drill, profile: str | None, provider_name: str | None) -> bool:
    try:
        where.choose(drill, None, where.tier(drill, profile), provider_name or None)
    except UserError:
        return False
    return True


def pick(
    name: str | None,
    level: int | None,
    course: str | None,
    by_chance: bool,
    tried: Sequence[str],
    profile: str | None,
    provider_name: str | None,
) -> Drill:
    """The drill that was named; else one of those that were asked for: the first that was not tried, or any.

    tried: drills that were attempted before. profile, provider_name: as they were typed.
    """
    if name:
        if level or course or by_chance:
            raise UserError(
                "DRILL", "names one: not with LEVEL, COURSE or RANDOM", seen=name, fix="Leave the others out"
            )
        drill = drills.load(name)
        if not proofs.read(drill):
            say(f"{name} was not proven yet: what it says of probes, hints and repairs may be wrong")
        return drill
    if not (level or course or by_chance):
        raise UserError(
            "DRILL", "must name a drill, or LEVEL, COURSE or RANDOM=1 say which to take",
            fix="./task drill:list shows them",
        )  # fmt: skip
    found = among(level, course, profile, provider_name)
    if by_chance:
        return random.choice(found)
    return next((one for one in found if one.name not in tried), found[0])


def inventory_of(provider: Provider, typed: str | None) -> Path:
    return paths.typed(typed).resolve() if typed else provider.folder / "inventory.yml"


def nodes_for(
    drill: Drill,
    overlay: str | None,
    profile: str | None,
    cluster: str,
    asked: str | None,
    inventory: str | None,
) -> tuple[Variant, Provider, Asked]:
    """Variant, provider and what is asked for, all checked; nothing is started yet. Raises UserError."""
    tier = where.tier(drill, profile)
    if inventory:
        variant, name = where.variants(drill, overlay)[0], registry.of_inventory()
        sentence = f"{variant} on the hosts of {inventory}"
    else:
        variant, name = where.choose(drill, overlay, tier, asked or None)
        sentence = f"{variant} with provider {name}{'' if tier.is_none else f', under {tier.name}'}"
    options = Options(
        modes=variant.key, profile=tier.name, cluster=cluster,
        provider=None if inventory else name, inventory=inventory,
    )  # fmt: skip
    request = replace(experiment.request(variant.overlay, options), variants=(variant,))
    say(sentence)
    provider = provider_for(request)
    return variant, provider, Asked(drill, variant, tier, inventory_of(provider, inventory))


def refuse_hosts(inventory: str | None, destructive: str | None) -> None:
    """UserError for somebody's hosts, unless that is said."""
    if inventory and destructive != AT_RISK:
        raise UserError(
            "INVENTORY", "names somebody's hosts, and a drill breaks what it is given", seen=inventory,
            fix="Leave it out for nodes of the lab's own; with DESTRUCTIVE=yes it is done, under a timer that takes the overlay away",
        )  # fmt: skip
