"""Slow tests take turns: of each group, another one is taken after each commit."""

from __future__ import annotations

import os
import subprocess

import pytest

from overlaylab import bundle_source, paths


def turn() -> int:
    """Counts up with every commit; out of a bundle, a number that its commit gives, and 0 outside a repository."""
    if bundle_source.version():
        return int(bundle_source.manifest().commit[:8], 16)
    argv = ["git", "-C", str(paths.ROOT), "rev-list", "--count", "HEAD"]
    try:
        return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return 0


def pass_over(items: list[pytest.Item]) -> None:
    """Skip those marked ``turn(group)`` whose turn it is not. Where they were asked for by name, there is no other one."""
    if os.environ.get("OVERLAYLAB_TURNS") == "all":
        return
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker("turn"):
            groups.setdefault(mark.args[0], []).append(item)
    for group in groups.values():
        taken = group[turn() % len(group)]
        for item in group:
            if item is not taken:
                item.add_marker(pytest.mark.skip(reason="another commit's turn; TURNS=all takes all"))
