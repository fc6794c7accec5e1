"""A profile on a provider's nodes."""

from __future__ import annotations

from overlaylab.machine import checks
from overlaylab.providers import Provider
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs.profile import Profile


def on_nodes(provider: Provider, profile: Profile) -> Shaper:
    """The profile on a provider's nodes; what this machine's CPUs do counts where they run here."""
    machine = checks.read_stat if provider.capabilities.on_this_machine else None
    return Shaper(provider.nodes, profile, provider.cpu, machine=machine)
