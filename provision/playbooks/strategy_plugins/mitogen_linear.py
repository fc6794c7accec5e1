"""Mitogen's linear strategy, found through Python's own path: ansible.cfg cannot know where a wheel lies."""

from ansible_mitogen.plugins.strategy.mitogen_linear import StrategyModule

__all__ = ["StrategyModule"]
