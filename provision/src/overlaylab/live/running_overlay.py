"""Which overlay runs on nodes that are up: asked of the nodes themselves, each of which may say something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.nodes.ssh import Nodes
from overlaylab.run import evidence
from overlaylab.specs import overlays


@dataclass(frozen=True)
class RunningOverlay:
    """The overlay and mode that all nodes observe; statuses: {node: the overlay's own word there}."""

    overlay: overlays.Overlay
    variant: Variant
    statuses: Mapping[str, JSON]

    @property
    def mode(self) -> overlays.Mode:
        return self.overlay.modes[self.variant.key]

    def endpoint(self, node: str) -> str | None:
        return self.statuses[node].get("endpoint_address")


async def find(nodes: Nodes) -> RunningOverlay | None:
    """What runs on the nodes; None where no node has an overlay.

    UserError where only some have one, or where they observe different things: then nothing holds for all of them.
    """
    asked = await nodes.sh(f"[ ! -x {evidence.STATUS} ] || {evidence.STATUS}", check=False)
    statuses: dict[str, JSON] = {}
    for name, done in asked.items():
        if done.exit_code == 0 and not done.stdout.strip():
            continue
        try:
            statuses[name] = evidence.read_status(done.stdout)
        except ValueError:
            told = (done.stderr or done.stdout).strip()[-200:]
            raise NodeError(f"{name}: the overlay's status cannot be read: {told!r}") from None
    if not statuses:
        return None
    without = [name for name in nodes if name not in statuses]
    if without:
        raise UserError(
            "overlay",
            "must run on all nodes of the cluster",
            seen=f"none on {', '.join(without)}",
            fix="Bring them all to one state: ./task lab:up cleans them, ./task lab:<overlay> converges",
        )
    seen = {
        name: Variant(s["overlay"], s.get("mode"), bool(s.get("encrypted"))) for name, s in statuses.items()
    }
    first, *others = seen.values()
    overlay = overlays.load(first.overlay)
    if any(other != first for other in others) or first.key not in overlay.modes:
        told = "; ".join(f"{name}: {v.overlay} {v.key}{_why(statuses[name])}" for name, v in seen.items())
        raise UserError(
            "overlay",
            "must be in one and the same mode on all nodes",
            seen=told,
            fix="A daemon that lost its peers reports no mode: see `journalctl` on the node, or converge again",
        )
    return RunningOverlay(overlay, first, statuses)


def _why(status: JSON) -> str:
    reason = status.get("reason")
    return f" ({reason})" if reason else ""
