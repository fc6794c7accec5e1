"""A profile on a provider's nodes."""

from __future__ import annotations

from overlaylab.machine import checks
from overlaylab.providers import Provider
from overlaylab.shaping.shaper import Shaper
from overlaylab.specs.inventory import EXTERNAL
from overlaylab.specs.profile import Profile


def on_nodes(provider: Provider, profile: Profile) -> Shaper:
    """The profile on a provider's nodes, which run on this machine unless they are somebody else's."""
    elsewhere = provider.inventory.provider == EXTERNAL
    return Shaper(provider.nodes, profile, provider.cpu, machine=None if elsewhere else checks.read_stat)
