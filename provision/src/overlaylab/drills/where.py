"""On which nodes a drill runs: overlay and mode, provider, tier."""

from __future__ import annotations

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.machine import features, ready
from overlaylab.providers import registry, requirements
from overlaylab.providers.requirements import listed, titles
from overlaylab.specs.drill import Drill
from overlaylab.specs.profile import Profile, load_profile

NO_TIER = "none"


def tier(drill: Drill, typed: str | None) -> Profile:
    """The profile that is in force in the drill. UserError where it needs another one than was typed."""
    needed = drill.needs.profile
    if needed and typed and typed != needed:
        raise UserError(
            "PROFILE", f"must be {needed} for the drill {drill.name}", seen=typed, fix="Leave it out"
        )
    return load_profile(needed or typed or NO_TIER)


def variants(drill: Drill, typed: str | None) -> tuple[Variant, ...]:
    """Those that were asked for. typed: OVERLAY, ``flannel`` or ``flannel/vxlan``; None: all, the default first."""
    found = tuple(
        one for one in drill.variants if typed in (None, "", one.overlay, f"{one.overlay}/{one.key}")
    )
    if not found:
        known = ", ".join(f"{one.overlay}/{one.key}" for one in drill.variants)
        raise UserError(
            "OVERLAY", f"must be one that {drill.name} applies to", seen=typed, fix=f"Known: {known}"
        )
    return found


def reason(
    drill: Drill, variant: Variant, profile: Profile, provider: str, *, tries: bool = False
) -> str | None:
    """Why it does not run on this machine with that provider; None where it does.

    tries: what cannot be told without root is no reason, as it is tried before the nodes are made.
    """
    can = registry.capabilities(provider)
    if drill.needs.own_kernel and can.shares_kernel:
        return "needs nodes with a kernel of their own"
    verdict = requirements.verdict(variant, profile, provider)
    if not verdict.runs and not (tries and verdict.untried and not verdict.lacks):
        return verdict.reason
    if can.shares_kernel and drill.needs.features:
        found = features.look(drill.needs.features)
        if absent := [name for name in drill.needs.features if found[name].state == features.ABSENT]:
            return f"lacks {listed(titles(absent))}"
    return None


def choose(drill: Drill, overlay: str | None, profile: Profile, asked: str | None) -> tuple[Variant, str]:
    """Variant and provider. asked: PROVIDER; None: what fits this machine, and is not emulated where that can be had.

    Raises UserError where it runs nowhere.
    """
    wanted = variants(drill, overlay)
    for name in (asked,) if asked else _preferred():
        registry.check(name)
        for variant in wanted:
            if reason(drill, variant, profile, name, tries=asked is not None) is None:
                return variant, name
    name = asked or registry.fallback()
    raise UserError(
        drill.name, f"does not run here with PROVIDER={name}", seen=f"{wanted[0]} {reason(drill, wanted[0], profile, name)}",
        fix="./task drill:list shows which do",
    )  # fmt: skip


def _preferred() -> tuple[str, ...]:
    """Providers in the order in which they are tried where nobody says which."""
    fallback, other = registry.fallback(), registry.before_emulation()
    return (other, fallback) if ACCELERATORS[ready.accelerator()].is_emulated else (fallback, other)
