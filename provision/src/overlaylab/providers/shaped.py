"""A profile on a provider's nodes."""

from __future__ import annotations

from overlaylab import host_checks
from overlaylab.inventory import EXTERNAL
from overlaylab.profile import Profile
from overlaylab.providers import Provider
from overlaylab.shaper import Shaper


def on_nodes(provider: Provider, profile: Profile) -> Shaper:
    """The profile on a provider's nodes, which run on this machine unless they are somebody else's."""
    elsewhere = provider.inventory.provider == EXTERNAL
    return Shaper(provider.nodes, profile, provider.cpu, machine=None if elsewhere else host_checks.read_stat)
