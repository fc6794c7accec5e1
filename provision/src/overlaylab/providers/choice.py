"""Which provider a lab task takes: the one that was asked for, else the fastest that runs it all, said aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.machine import features as host_features
from overlaylab.machine import ready
from overlaylab.providers import named, requirements
from overlaylab.providers.requirements import Verdict, listed, titles
from overlaylab.specs.profile import Profile

Verdicts = Mapping[Variant, Verdict]


def choose(asked: str | None, variants: Sequence[Variant], profile: Profile | None) -> tuple[str, str]:
    """(provider, a sentence that says which and why) for what is to be measured.

    asked: PROVIDER, None or empty where it was not given. Then it is libvirt where KVM works; else system
    containers (lxc) where this machine's kernel has all that variants and profile declare, a latency included;
    else libvirt with emulated CPUs. Loads nothing and uses no sudo. Raises UserError for an unknown provider,
    and for one that cannot run what is asked.
    """
    if asked:
        named.check(asked)
        return asked, _as_asked(asked, variants, profile)
    if ready.accelerator() == "kvm":
        return "libvirt", "provider libvirt: KVM works here"
    verdicts = _verdicts(variants, profile, "lxc")
    emulated = "provider libvirt, emulated CPUs: no KVM here, and"
    if lacking := _lacking(verdicts, profile):
        return "libvirt", f"{emulated} {lacking}, which this kernel lacks"
    if untried := titles(name for verdict in verdicts.values() for name in verdict.untried):
        which = f"whether this kernel has {listed(untried)} cannot be told without root"
        return "libvirt", f"{emulated} {which} (PROVIDER=lxc tries)"
    return (
        "lxc",
        f"provider lxc: no KVM here, and this machine's kernel has all that is needed{_loads(verdicts)}",
    )


def _as_asked(name: str, variants: Sequence[Variant], profile: Profile | None) -> str:
    if name in requirements.SHARED_KERNEL:
        verdicts = _verdicts(variants, profile, name)
        _refuse(verdicts, profile)
        soft = dict.fromkeys(what for verdict in verdicts.values() for what in verdict.soft)
        absent = titles(name for verdict in verdicts.values() for name in verdict.soft_lacks)
        left_out = f"; {listed(soft)} is not applied, as this kernel lacks {listed(absent)}" if soft else ""
        return f"provider {name}, as asked{left_out}{_loads(verdicts)}"
    if not requirements.verdict(None, None, name).runs:
        raise UserError(
            f"PROVIDER={name}",
            "must be installed to be used",
            seen="no VBoxManage",
            fix="Install VirtualBox, or leave PROVIDER out for what fits this machine",
        )
    if name == "libvirt" and ready.accelerator() != "kvm":
        return f"provider {name}, as asked; emulated CPUs: no KVM here"
    return f"provider {name}, as asked"


def load(variants: Sequence[Variant], profile: Profile | None) -> tuple[str, ...]:
    """Have this machine's kernel load what nodes on it need; names of the modules that came, sorted.

    As root, with a word before; nothing is done where all of it is at work. Raises UserError where the kernel
    turns out not to have it.
    """
    wanted = [requirements.needed(variant, profile) for variant in variants]
    found, came = host_features.load([feature for one in wanted for feature in one.features])
    _refuse({v: requirements.judge(one, found) for v, one in zip(variants, wanted, strict=True)}, profile)
    return came


def _refuse(verdicts: Verdicts, profile: Profile | None) -> None:
    """UserError where the kernel was seen to lack what must be there; what was not tried yet is no reason."""
    if lacking := _lacking(verdicts, profile, soft=False):
        raise UserError(
            "PROVIDER=lxc",
            "this machine's kernel must have all that its nodes need",
            seen=f"{lacking}, which it lacks",
            fix="Leave PROVIDER out or take PROVIDER=libvirt, whose nodes have a kernel of their own; "
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
