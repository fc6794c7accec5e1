"""Attempts at a drill for tests of what is stored and shown: one that stays alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from overlaylab.core.measures import OF_CYCLE
from overlaylab.core.model import Variant
from overlaylab.store import attempts
from overlaylab.store.attempts import AttemptCycle, AttemptRecord
from overlaylab.store.store import Store

RECORD = AttemptRecord(
    drill="large-downloads-hang",
    drill_digest="d" * 64,
    title="Pages answer, downloads hang",
    level=1,
    minutes=15,
    machine="2 cores, Intel Xeon",
    provider="lxc",
    accelerator="shared-kernel",
    image="debian-12",
    cluster="pair",
    profile="none",
    profile_digest="e" * 64,
    variant=Variant("flannel", "vxlan"),
    role_digest="f" * 64,
    lab_version="0.1.0+a9ab47058231",
)
HEALTHY = {
    "answered": 1.0, "rtt": 0.0004, "connected": 1.0, "connect": 0.0005, "page": 1.0, "fetched": 1.0,
    "goodput": 8e8, "resolved": 1.0, "resolve": 0.002,
}  # fmt: skip
BROKEN = HEALTHY | {"fetched": 0.0, "goodput": 0.0}
STOPPED = {"fetched": "timed out after 3 s with 0 bytes"}


def cycle(
    t: float, phase: str, values: Mapping[str, float | None] = HEALTHY, role: str = "client"
) -> AttemptCycle:
    node = {"client": "node1", "server": "node2"}[role]
    reasons = STOPPED if values["fetched"] == 0 else {}
    return AttemptCycle(t, node, role, phase, {name: values[name] for name in OF_CYCLE}, reasons)


def begin(store: Store, **changed: object) -> str:
    """One that runs: its symptom shown, its ticket given. Returns its id."""
    attempt_id = attempts.begin_attempt(store, replace(RECORD, **changed))
    attempts.add_event(store, attempt_id, "baseline", -30.0, {}, at="2026-01-01T10:00:00.000Z")
    attempts.add_event(store, attempt_id, "injected", -12.0, {}, at="2026-01-01T10:00:18.000Z")
    attempts.add_event(store, attempt_id, "shown", -3.0, {}, at="2026-01-01T10:00:27.000Z")
    attempts.add_event(
        store, attempt_id, "ticket", 0.0, {"ticket": "Downloads hang.", "may_touch": "Both nodes."}
    )
    both = ("client", "server")
    attempts.add_cycles(store, attempt_id, [cycle(-25.0 + i, "healthy", role=both[i % 2]) for i in range(4)])
    attempts.add_cycles(store, attempt_id, [cycle(-10.0 + i, "broken", BROKEN) for i in range(3)])
    attempts.add_cycles(store, attempt_id, [cycle(1.0 + i, "running", BROKEN) for i in range(5)])
    return attempt_id


def repaired(store: Store, **changed: object) -> str:
    """One that was repaired after a hint and a failed check. Returns its id."""
    attempt_id = begin(store, **changed)
    attempts.add_event(store, attempt_id, "hint", 60.0, {"cost": 5, "text": "Look at sizes."})
    attempts.add_event(store, attempt_id, "check", 90.0, {"passes": False, "findings": [], "refusals": []})
    attempts.add_event(store, attempt_id, "check", 240.0, {"passes": True, "findings": [], "refusals": []})
    attempts.add_cycles(store, attempt_id, [cycle(235.0 + i, "check") for i in range(3)])
    detail = {"debrief": "A route was narrow.", "topics": ["path MTU discovery"]}
    attempts.end_attempt(store, attempt_id, "repaired", 240.0, detail, score=90, cause="MTU too small")
    return attempt_id
