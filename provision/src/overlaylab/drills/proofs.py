"""What was proven of a drill, in its folder, and whether that still holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from overlaylab.core.model import Variant
from overlaylab.specs import overlays
from overlaylab.specs.drill import Drill
from overlaylab.specs.drill_checks import PROOF

NONE, STALE, HOLDS = "none", "stale", "holds"


@dataclass(frozen=True)
class Proof:
    """One proof: on a provider's nodes, of one image, over one variant. Digests are SHA-256 in hex."""

    drill: str
    role: str
    image: str | None
    provider: str
    accelerator: str
    overlay: str
    mode: str
    # UTC, ISO 8601.
    at: str
    # {measure from the role: {"healthy": …, "broken": …, "ratio": …}}, of each probe; None where nothing was measured.
    values: Mapping[str, Mapping[str, float | None]]
    # {wrong fix: why it was refused}.
    wrong: Mapping[str, str]
    # {solution: ``passes``}.
    solutions: Mapping[str, str]

    @property
    def where(self) -> tuple[str, str, str]:
        return self.provider, self.overlay, self.mode


def read(drill: Drill) -> tuple[Proof, ...]:
    """All proofs of the drill; none where there is no such file, or it cannot be read."""
    try:
        data = json.loads((drill.folder / PROOF).read_text(encoding="utf-8"))
        return tuple(Proof(**one) for one in data["proofs"])
    except (OSError, ValueError, KeyError, TypeError):
        return ()


def keep(drill: Drill, proof: Proof) -> None:
    """Write it beside the others, in place of an older one of the same provider and variant."""
    others = [one for one in read(drill) if one.where != proof.where]
    told = [asdict(one) for one in sorted((*others, proof), key=lambda one: one.where)]
    new = drill.folder / f".{PROOF}.new"
    new.write_text(json.dumps({"proofs": told}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(drill.folder / PROOF)


def state(drill: Drill, image: str | None = None) -> str:
    """`HOLDS` where a proof is of the drill and the role as they are now, and of that image where one is given;
    `STALE` where there are others alone."""
    found = read(drill)
    if not found:
        return NONE
    for proof in found:
        same_image = image is None or proof.image is None or proof.image == image
        if proof.drill == drill.digest and same_image and proof.role == overlays.role_digest(proof.overlay):
            return HOLDS
    return STALE


def key(drill: Drill, variant: Variant, provider: str, image: str | None) -> dict[str, Any]:
    """What a proof, or what was found of it so far, is of."""
    return {
        "drill": drill.digest,
        "role": overlays.role_digest(variant.overlay),
        "image": image,
        "provider": provider,
        "overlay": variant.overlay,
        "mode": variant.key,
    }
