"""A profile on a provider's nodes."""

from __future__ import annotations

from overlaylab.machine import checks
from overlaylab.providers import Provider, registry
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs.inventory import EXTERNAL
from overlaylab.specs.profile import Profile


def on_nodes(provider: Provider, profile: Profile) -> Shaper:
    """The profile on a provider's nodes; what this machine's CPUs do counts where they run here."""
    made_by = provider.inventory.provider  # of an inventory too, that names nodes which the lab made
    here = made_by != EXTERNAL and registry.capabilities(made_by).on_this_machine
    return Shaper(provider.nodes, profile, provider.cpu, machine=checks.read_stat if here else None)
