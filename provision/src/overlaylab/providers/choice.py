"""Which provider a lab task takes: the one that was asked for, else the fastest that runs it all, said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.image import systems
from overlaylab.machine import features as host_features
from overlaylab.machine import ready
from overlaylab.providers import lxc_host, registry, requirements
from overlaylab.providers.requirements import Verdict, listed, titles
from overlaylab.specs.profile import Profile

Verdicts = Mapping[Variant, Verdict]


def choose(
    name: str | None, variants: Sequence[Variant], profile: Profile | None, system: str = systems.DEFAULT
) -> tuple[str, str]:
    """(provider, a sentence that says which and why) for what is to be measured.

    name: PROVIDER, None or empty where it was not given. Then it is the fallback where KVM works; else system
    containers where the system runs in them and this machine's kernel has all that variants and profile declare, a
    latency included; else the fallback with emulated CPUs. Loads nothing and uses no sudo. Raises UserError for an unknown provider,
    and for one that cannot run what is asked.
    """
    if name:
        registry.check(name)
        requirements.check_system(name, system)
        return name, _as_asked(name, variants, profile)
    fallback, other = registry.fallback(), registry.before_emulation()
    if not ACCELERATORS[ready.accelerator()].is_emulated:
        return fallback, f"provider {fallback}: KVM works here"
    emulated = f"provider {fallback}, emulated CPUs: no KVM here, and"
    chosen = systems.load(system)
    if chosen.vms_only:
        return fallback, f"{emulated} {chosen.title} runs in VMs alone: {chosen.vms_only}"
    verdicts = _verdicts(variants, profile, other)
    if lacking := _lacking(verdicts, profile):
        return fallback, f"{emulated} {lacking}, which this kernel lacks"
    if untried := titles(name for verdict in verdicts.values() for name in verdict.untried):
        which = f"whether this kernel has {listed(untried)} cannot be told without root"
        return fallback, f"{emulated} {which} (PROVIDER={other} tries)"
    return (
        other,
        f"provider {other}: no KVM here, and this machine's kernel has all that is needed{_loads(verdicts)}",
    )


def _as_asked(name: str, variants: Sequence[Variant], profile: Profile | None) -> str:
    can = registry.capabilities(name)
    if can.shares_kernel:
        verdicts = _verdicts(variants, profile, name)
        _refuse(name, verdicts, profile)
        soft = dict.fromkeys(what for verdict in verdicts.values() for what in verdict.soft)
        absent = titles(name for verdict in verdicts.values() for name in verdict.soft_lacks)
        left_out = f"; {listed(soft)} is not applied, as this kernel lacks {listed(absent)}" if soft else ""
        return f"provider {name}, as asked{left_out}{_loads(verdicts)}"
    if can.product and not requirements.verdict(None, None, name).runs:
        product, program = can.product
        raise UserError(
            f"PROVIDER={name}",
            "must be installed to be used",
            seen=f"no {program}",
            fix=f"Install {product}, or leave PROVIDER out for what fits this machine",
        )
    if can.accelerator is None and ACCELERATORS[ready.accelerator()].is_emulated:
        return f"provider {name}, as asked; emulated CPUs: no KVM here"
    return f"provider {name}, as asked"


def load(name: str, variants: Sequence[Variant], profile: Profile | None) -> None:
    """Have this machine's kernel load what nodes on it need, and note it; nothing where they have their own.

    As root, with a word before; nothing is done where all of it is at work. Raises UserError where the kernel
    turns out not to have it.
    """
    if not registry.capabilities(name).shares_kernel:
        return
    wanted = [requirements.needed(variant, profile) for variant in variants]
    found, came = host_features.load([feature for one in wanted for feature in one.features])
    _refuse(
        name, {v: requirements.judge(one, found) for v, one in zip(variants, wanted, strict=True)}, profile
    )
    lxc_host.remember_modules(came)


def loaded() -> list[str]:
    """Modules that this machine's kernel was made to load for nodes in this boot and that are still there."""
    return lxc_host.loaded_modules()


def _refuse(provider: str, verdicts: Verdicts, profile: Profile | None) -> None:
    """UserError where the kernel was seen to lack what must be there; what was not tried yet is no reason."""
    if lacking := _lacking(verdicts, profile, soft=False):
        raise UserError(
            f"PROVIDER={provider}",
            "this machine's kernel must have all that its nodes need",
            seen=f"{lacking}, which it lacks",
            fix=f"Leave PROVIDER out or take PROVIDER={registry.fallback()}, whose nodes have a kernel of their own; "
            "./task doctor shows what runs where",
        )


def _verdicts(variants: Sequence[Variant], profile: Profile | None, provider: str) -> Verdicts:
    return {variant: requirements.verdict(variant, profile, provider) for variant in variants}


def _lacking(verdicts: Verdicts, profile: Profile | None, *, soft: bool = True) -> str:
    """``weave needs dummy, and the latency of azure-a1 needs netem``; empty where nothing lacks."""
    overlays: dict[str, list[str]] = {}
    tiers: dict[str, list[str]] = {}
    for variant, verdict in verdicts.items():
        of_overlay = requirements.of_variant(variant).hard
        for feature in verdict.lacks:
            if feature in requirements.OF_CONTAINERS:
                overlays.setdefault("every system container", []).append(feature)
            elif feature in of_overlay or profile is None:
                overlays.setdefault(variant.overlay, []).append(feature)
            else:
                tiers.setdefault(f"profile {profile.name}", []).append(feature)
        if soft and profile and verdict.soft:
            name = f"the {listed(verdict.soft)} of profile {profile.name}"
            tiers.setdefault(name, []).extend(verdict.soft_lacks)
    who = overlays | tiers
    return ", and ".join(f"{name} needs {listed(titles(features))}" for name, features in who.items())


def _loads(verdicts: Verdicts) -> str:
    modules = dict.fromkeys(name for verdict in verdicts.values() for name in verdict.loads)
    return f"; it loads {listed(modules)}" if modules else ""
