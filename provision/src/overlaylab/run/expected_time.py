"""How long trials will take on this path: a tool that counts transactions takes as long as they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.model import PlannedTrial
from overlaylab.providers import requirements
from overlaylab.run.plan import LOCAL
from overlaylab.specs.profile import Profile
from overlaylab.tools import base as tools

# (round trip in s, bit/s) between two emulated nodes and within one: some 5000 transactions of deitcher-2016 each.
EMULATED, EMULATED_LOCAL = (0.0015, 1e8), (0.0005, 5e8)
# Between system containers and within one.
SHARED_KERNEL = (0.00005, 1e10)
OTHERWISE = (0.0003, 1e9)


def of_trials(
    trials: Sequence[PlannedTrial], profile: Profile, zones: Mapping[str, str], accelerator: str
) -> float:
    """Seconds in all trials together. zones: {node: its zone}."""
    seconds, paths = 0.0, {}
    for trial in trials:
        tool = tools.load(trial.tool)
        over = getattr(tool, "over", None)
        if over is None:
            seconds += tool.duration(trial.parameters)
            continue
        key = trial.placement, zones[trial.client_node], zones[trial.server_node]
        if key not in paths:
            paths[key] = path(*key, profile, accelerator)
        seconds += over(trial.parameters, *paths[key])
    return seconds


def path(placement: str, zone: str, other: str, profile: Profile, accelerator: str) -> tuple[float, float]:
    """(round trip in s, bit/s) of the host network: the slower of what the profile asks for and what is there."""
    nodes = ACCELERATORS[accelerator]
    own = EMULATED if nodes.is_emulated else OTHERWISE if nodes.has_own_kernel else SHARED_KERNEL
    if placement == LOCAL:
        return EMULATED_LOCAL if nodes.is_emulated else own
    asked = profile.rtt(zone, other) or 0.0
    if asked and not nodes.has_own_kernel and requirements.not_applied(profile):
        asked = 0.0  # this kernel delays nothing
    return max(own[0], asked), min(own[1], profile.rate or own[1])
