"""What a task measures: the modes of one overlay, or every mode of every overlay that runs here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from overlaylab.core.documents import unknown
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.providers import registry, requirements
from overlaylab.specs import overlays
from overlaylab.specs.profile import Profile

# Stands for every overlay.
ALL = "all"
# As MODES of all overlays: those that each overlay's makers would start.
DEFAULT = "default"


@dataclass(frozen=True)
class Selection:
    """variants: in the order of the overlays' names; left_out: {variant that cannot run here: why}."""

    variants: tuple[Variant, ...]
    left_out: Mapping[Variant, str] = field(default_factory=dict)

    @property
    def overlays(self) -> tuple[str, ...]:
        """Names of the overlays, each once."""
        return tuple(dict.fromkeys(variant.overlay for variant in self.variants))


def select(
    overlay: str, modes: str | None, only: str | None, profile: Profile, provider: str | None
) -> Selection:
    """The variants that are meant by an overlay's name, or by ``all``.

    modes: MODES; of all overlays ``default``, those named as ``weave/sleeve,flannel/udp``, or None for every mode.
    only: OVERLAYS=a,b of all. provider: as typed.
    Of all overlays those are left out that nodes of the provider (the fallback where it was not typed) cannot carry;
    one that was named is kept, so that it is refused with its reason. Raises UserError.
    """
    if overlay != ALL:
        if only:
            raise UserError(
                "OVERLAYS", "picks among all overlays", seen=only, fix="Call ./task lab:all, or leave it out"
            )
        return Selection(tuple(overlays.select(overlay, modes)))
    if modes not in (None, DEFAULT):
        if only:
            raise UserError("OVERLAYS", "cannot be combined with MODES that name their overlays", seen=only,
                            fix="Leave one of the two out")  # fmt: skip
        return Selection(parse_modes(modes))
    found: list[Variant] = []
    left_out: dict[Variant, str] = {}
    for name in _names(only):
        known = overlays.load(name)
        for key in known.default_modes if modes else known.modes:
            if known.modes[key].only_by_name:
                continue
            variant = known.variant(key)
            verdict = requirements.verdict(variant, profile, provider or registry.fallback())
            if verdict.runs or only:
                found.append(variant)
            else:
                left_out[variant] = str(verdict.reason)
    return Selection(tuple(found), left_out)


def parse_modes(modes: str) -> tuple[Variant, ...]:
    """``weave/sleeve,flannel/udp`` as variants. Raises UserError."""
    found: list[Variant] = []
    for word in modes.split(","):
        name, slash, key = word.strip().partition("/")
        if not (slash and name and key):
            raise UserError(
                "MODES",
                f"must be {DEFAULT}, or modes with their overlays, where all overlays are meant",
                seen=f'"{modes}"',
                fix="Write MODES=weave/sleeve,host/host and the like; leave it out for every mode.",
            )
        variant = overlays.load(name).variant(key)
        if variant in found:
            raise UserError("MODES", "must name each mode once", seen=f'"{modes}"',
                            fix="To measure more often, raise BLOCKS.")  # fmt: skip
        found.append(variant)
    return tuple(found)


def _names(only: str | None) -> tuple[str, ...]:
    if not only:
        return overlays.names()
    names = tuple(name.strip() for name in only.split(","))
    for name in names:
        if name not in overlays.names():
            raise unknown("OVERLAYS", "must be names with single commas between them", name, overlays.names())
        if names.count(name) > 1:
            raise UserError("OVERLAYS", "must name each overlay once", seen=f'"{only}"',
                            fix="To measure more often, raise BLOCKS.")  # fmt: skip
    return names
