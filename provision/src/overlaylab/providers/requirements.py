"""What a variant and a profile need of a kernel, and whether a provider's nodes have it.

VMs boot the image's own kernel, which has everything. Nodes that share this machine's kernel have what it has, so
there each declared feature counts (``host_features``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from overlaylab.core.documents import names_in
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.core.paths import PROFILES
from overlaylab.image import systems
from overlaylab.image.systems import System
from overlaylab.machine import features as host_features
from overlaylab.machine import packages
from overlaylab.machine.features import ABSENT, LOADABLE, UNTRIED, Found, title
from overlaylab.providers import registry
from overlaylab.specs import overlays
from overlaylab.specs.profile import Profile, load_profile

# What system containers themselves need: the way to their underlay, and a root of their own.
OF_CONTAINERS = ("link:bridge", "link:veth", "fs:overlay")

# What shaping always uses (``shaping.tc_batch``).
_QUEUES = ("qdisc:htb", "qdisc:bfifo", "filter:u32")
_DELAYS = "qdisc:netem"
# What shaping what comes in takes besides.
_METERS = ("link:ifb", "qdisc:ingress", "action:mirred")

# What only a host's own network card can have: the cards of nodes that the lab makes are virtual.
OF_CARDS = "nic:"


def check_system(provider: str, name: str) -> System:
    """The system of that name. Raises UserError where nodes of the provider cannot have it."""
    system = systems.load(name)
    if system.vms_only and registry.capabilities(provider).shares_kernel:
        raise UserError(
            f"PROVIDER={provider}, SYSTEM={name}",
            f"{system.title} must run in VMs",
            seen=system.vms_only,
            fix=f"Leave PROVIDER out or take PROVIDER={registry.fallback()}",
        )
    return system


@dataclass(frozen=True)
class Needed:
    """Features by what follows where one is absent.

    hard: it does not run; soft: {feature: what is then recorded as not applied}.
    """

    hard: tuple[str, ...] = ()
    soft: Mapping[str, str] = field(default_factory=dict)

    @property
    def features(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys([*self.hard, *self.soft]))


@dataclass(frozen=True)
class Verdict:
    """Whether a variant and a profile run on a provider.

    reason: why not, in a few words; None where they do.
    soft: what will be recorded as not applied, such as ``latency``.
    lacks: features without which it does not run and that the kernel was seen not to have; soft_lacks: those
    behind `soft`; untried: those of either kind that could not be told without root.
    loads: modules of this machine that come with it; installs: packages that the first lab task will install.
    """

    runs: bool
    reason: str | None = None
    soft: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    soft_lacks: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    installs: tuple[str, ...] = ()


def of_variant(variant: Variant) -> Needed:
    """What an overlay's role declares for one of its modes."""
    overlay = overlays.load(variant.overlay)
    return Needed(tuple(dict.fromkeys([*overlay.needs.features, *overlay.modes[variant.key].features])))


def of_profile(profile: Profile) -> Needed:
    """What a profile's numbers need: a cap, loss or jitter must be put in force; a latency may be left out."""
    hard: list[str] = []
    if profile.rate is not None:
        hard += _QUEUES
        if profile.ingress_metered:
            hard += _METERS
    if profile.jitter or profile.loss:
        hard += [*_QUEUES, _DELAYS]
    soft = (_DELAYS, *_QUEUES) if profile.within_zone or any(profile.between_zones.values()) else ()
    return Needed(tuple(dict.fromkeys(hard)), {feature: "latency" for feature in soft if feature not in hard})


def cards(variant: Variant) -> tuple[str, ...]:
    """What a variant needs of the underlay's network card, beyond what every card does."""
    return tuple(feature for feature in of_variant(variant).hard if feature.startswith(OF_CARDS))


def refuse_cards(variants: Iterable[Variant], profile: Profile, provider: str) -> None:
    """UserError for a variant that no node on this machine can carry, and for a profile that passes it by.

    The cards of nodes elsewhere are looked at when they are reached.
    """
    for variant in variants:
        if not (missing := cards(variant)):
            continue
        if registry.capabilities(provider).on_this_machine:
            raise UserError(
                variant.overlay,
                f"needs {listed(titles(missing))} in every node",
                seen="not on this machine: nodes that the lab makes have virtual cards without any",
                fix="Measure hosts that have it: INVENTORY=hosts.yml",
            )
        if of_profile(profile).features:
            raise UserError(
                f"PROFILE={profile.name}",
                f"cannot be put in force on {variant.overlay}",
                seen="its packets pass none of the node's queues: the card itself switches them",
                fix="Leave PROFILE out: it is none on hosts of an inventory",
            )


def needed(variant: Variant | None, profile: Profile | None) -> Needed:
    """What one variant under one profile needs on a kernel that nodes share with this machine."""
    of_mode = of_variant(variant) if variant else Needed()
    of_tier = of_profile(profile) if profile else Needed()
    return Needed((*OF_CONTAINERS, *of_mode.hard, *of_tier.hard), of_tier.soft)


def verdict(
    variant: Variant | None, profile: Profile | None, provider: str, found: Mapping[str, Found] | None = None
) -> Verdict:
    """Whether nodes of `provider` can carry the variant under the profile; None leaves either out.

    found: what is known of this machine's kernel, where it was asked already. Raises UserError for a role or
    profile that cannot be read.
    """
    can = registry.capabilities(provider)
    if can.on_this_machine and variant and (missing := cards(variant)):
        return Verdict(False, f"not on this machine: needs {listed(titles(missing))}", lacks=missing)
    if can.product and packages.find_program(can.product[1]) is None:
        return Verdict(False, "not installed")
    if not can.shares_kernel:
        return Verdict(True)
    wanted = needed(variant, profile)
    if found is None:
        found = host_features.look(wanted.features)
    return judge(wanted, found, absent_packages(can.needs.groups))


def not_applied(profile: Profile) -> tuple[str, ...]:
    """What of a profile is left out on nodes that share this machine's kernel, such as ``latency``."""
    wanted = needed(None, profile)
    return judge(wanted, host_features.look(wanted.features)).soft


def judge(wanted: Needed, found: Mapping[str, Found], installs: tuple[str, ...] = ()) -> Verdict:
    """The verdict on what is wanted, given what was found of it."""

    def are(state: str, features: Collection[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(feature for feature in features if found[feature].state == state))

    lacks, untried = are(ABSENT, wanted.hard), are(UNTRIED, wanted.hard)
    soft_lacks = are(ABSENT, wanted.soft)
    modules = [name for feature in are(LOADABLE, wanted.features) for name in found[feature].detail.split()]
    reason = None
    if lacks:
        reason = f"lacks {listed(titles(lacks))}"
    elif untried:
        reason = f"not known without root: {listed(titles(untried))}"
    return Verdict(
        runs=reason is None,
        reason=reason,
        soft=tuple(dict.fromkeys(wanted.soft[feature] for feature in soft_lacks)),
        lacks=lacks,
        soft_lacks=soft_lacks,
        untried=are(UNTRIED, wanted.features),
        loads=tuple(dict.fromkeys(modules)),
        installs=installs,
    )


@dataclass(frozen=True)
class Row:
    """One line of the doctor's table: a mode of an overlay, or a profile on its own.

    overlay, mode: None for a profile, mode also where the overlay has only one; profile: None for an overlay.
    verdicts: {provider: verdict}.
    """

    title: str
    overlay: str | None
    mode: str | None
    profile: str | None
    verdicts: Mapping[str, Verdict]


def survey() -> list[Row]:
    """Every mode of every overlay, then every profile, on every provider. Raises UserError as `verdict` does."""
    known = [overlays.load(name) for name in overlays.names()]
    variants = [overlay.variant(key) for overlay in known for key in overlay.modes]
    profiles = [load_profile(name) for name in names_in(PROFILES)]
    asked = [*((variant, None) for variant in variants), *((None, profile) for profile in profiles)]
    # One trial for all.
    found = host_features.look([feature for pair in asked for feature in needed(*pair).features])
    rows = []
    for variant, profile in asked:
        verdicts = {provider: verdict(variant, profile, provider, found) for provider in registry.names()}
        if variant:
            title_ = variant.overlay if variant.mode is None else f"{variant.overlay} {variant.key}"
            rows.append(Row(title_, variant.overlay, variant.key if variant.mode else None, None, verdicts))
        elif profile:
            rows.append(Row(f"profile {profile.name}", None, None, profile.name, verdicts))
    return rows


def absent_packages(groups: Sequence[str]) -> tuple[str, ...]:
    """The packages of these groups that are still to be installed."""
    try:
        missing = packages.missing(groups)
    except UserError:  # a system without apt: what it lacks is said by host.ensure
        return ()
    return tuple(name for group in groups for name in packages.OPTIONAL[group] if name in missing)


def titles(features: Iterable[str]) -> tuple[str, ...]:
    """Features as people call them, each once."""
    return tuple(dict.fromkeys(map(title, features)))


def listed(words: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
