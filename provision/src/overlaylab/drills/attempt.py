"""The drill at hand of a cluster: what its commands have to know of each other, in one file of the cache folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import lock, paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.drills import scripts
from overlaylab.drills.guards import Healthy
from overlaylab.drills.judge import Window
from overlaylab.drills.probing import Seen
from overlaylab.drills.stage import Stage
from overlaylab.machine import services
from overlaylab.nodes.netstate import State
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import Provider, Say, registry
from overlaylab.run.plan import endpoints
from overlaylab.specs import drill as drills
from overlaylab.specs.inventory import load_inventory
from overlaylab.specs.profile import load_profile
from overlaylab.store import attempts
from overlaylab.store.attempts import AttemptCycle
from overlaylab.store.store import Store

# Phases of an attempt, as its cycles have them.
HEALTHY, BROKEN, RUNNING, CHECK = "healthy", "broken", "running", "check"


@dataclass(frozen=True)
class AtHand:
    """One attempt, from its ticket to its end."""

    attempt_id: str
    database: Path
    drill: str
    # Of the drill when it was begun.
    digest: str
    cluster: str
    provider: str
    inventory: Path
    profile: str
    variant: Variant
    # {node: its endpoint's address}.
    endpoints: Mapping[str, str]
    # When its ticket was given: s on this machine's monotonic clock, which begins anew with each boot.
    ticket: float
    boot: str
    baseline: Mapping[str, Window]
    # When the symptom was felt first, as its windows were then.
    broken: Mapping[str, Window]
    healthy: Healthy
    # The places in the drill's list of the hints that were given.
    hints: tuple[int, ...] = ()
    # Guards that refuse because of the fault itself: no repair has done that damage.
    by_fault: tuple[str, ...] = ()
    # Other guards that have refused a repair.
    refused: tuple[str, ...] = ()
    # The process that writes what is felt; None before it was started.
    watcher: int | None = None
    # {node: its network before the drill}, of hosts that no snapshot puts back.
    before: Mapping[str, State] | None = None

    @property
    def since(self) -> float:
        """Seconds from the ticket to now."""
        return time.monotonic() - self.ticket

    @property
    def lives(self) -> bool:
        """Whether its watcher is at work."""
        return (
            self.boot == services.boot_id()
            and self.watcher is not None
            and lock.holder(self.cluster) == self.watcher
        )

    def stage(self, nodes: Nodes) -> Stage:
        """The drill on its nodes. UserError where its files have changed since."""
        drill = drills.load(self.drill)
        if drill.digest != self.digest:
            raise UserError(
                f"provision/drills/{self.drill}", "must be as it was when the drill was begun",
                fix="./task drill:stop ends it; then begin it again",
            )  # fmt: skip
        places = scripts.places(nodes.inventory, self.endpoints)
        return Stage(nodes, places, drill, self.variant, self.baseline, self.healthy)

    def nodes(self) -> Nodes:
        return Nodes(load_inventory(self.inventory))

    def made_by(self, say: Say) -> Provider:
        """The provider of its nodes, made for the same tier."""
        if not registry.capabilities(self.provider).makes_nodes:
            return registry.hosts(self.inventory, say)
        tier = load_profile(self.profile)
        return registry.make(
            self.provider, self.cluster, say, underlay_mtu=tier.mtu, vcpus=tier.vcpus, quota=tier.quota
        )


def path(cluster: str) -> Path:
    return paths.cache() / "clusters" / cluster / "drill.json"


def write(hand: AtHand) -> None:
    """Keep it, for its owner alone: it names the drill, and so the folder with the cause."""
    new = path(hand.cluster).with_suffix(".new")
    new.parent.mkdir(parents=True, exist_ok=True)
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(_as_json(hand), file, indent=1)
    new.replace(path(hand.cluster))


def read(cluster: str) -> AtHand | None:
    """None where no drill is at hand, or what is there is of another version."""
    try:
        return _from_json(json.loads(path(cluster).read_text()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def forget(cluster: str) -> None:
    path(cluster).unlink(missing_ok=True)


def settle(cluster: str, say: Say) -> AtHand | None:
    """The attempt at hand. One whose watcher is dead is stored as abandoned, said, and there is none then."""
    hand = read(cluster)
    if hand is None or hand.lives:
        return hand
    abandon(hand)
    say(
        f"the drill {hand.drill} was cut off, and is stored as abandoned; its nodes are put right by ./task lab:up"
    )
    return None


def abandon(hand: AtHand) -> None:
    """Store its end, where it has none yet, and forget it."""
    if hand.database.exists():
        with Store.open(hand.database) as store:
            # After a reboot the clock has begun anew, and nobody knows.
            t = max(hand.since, 0.0) if hand.boot == services.boot_id() else 0.0
            attempts.end_attempt(store, hand.attempt_id, attempts.ABANDONED, t, {})
    forget(hand.cluster)


def add_cycles(store: Store, hand: AtHand, phase: str, seen: Sequence[Seen]) -> None:
    """Store what was felt at its ends."""
    client, server = endpoints(load_inventory(hand.inventory))[0]
    node = {scripts.CLIENT: client, scripts.SERVER: server}
    attempts.add_cycles(
        store,
        hand.attempt_id,
        [
            AttemptCycle(
                one.at - hand.ticket, node[one.role], one.role, phase, one.cycle.values, one.cycle.reasons
            )
            for one in seen
        ],
    )


def clusters() -> list[str]:
    """Those that have a drill at hand."""
    return sorted(found.parent.name for found in (paths.cache() / "clusters").glob("*/drill.json"))


def _as_json(hand: AtHand) -> dict[str, Any]:
    told: dict[str, Any] = dict(vars(hand))
    told |= {name: str(told[name]) for name in ("database", "inventory")}
    told["variant"] = [hand.variant.overlay, hand.variant.mode, hand.variant.encrypted]
    for name in ("baseline", "broken"):
        told[name] = {role: window.as_json() for role, window in getattr(hand, name).items()}
    told["healthy"] = hand.healthy.as_json()
    return told


def _from_json(data: dict[str, Any]) -> AtHand:
    told = dict(data)
    told |= {name: Path(data[name]) for name in ("database", "inventory")}
    told["variant"] = Variant(*data["variant"])
    for name in ("baseline", "broken"):
        told[name] = {role: Window.from_json(window) for role, window in data[name].items()}
    told["healthy"] = Healthy(**data["healthy"])
    told |= {name: tuple(data[name]) for name in ("hints", "by_fault", "refused")}
    return AtHand(**told)
