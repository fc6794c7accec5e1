"""Slow tests take turns: of each group, others are taken after each commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TypeVar

import pytest

from overlaylab.core import paths
from overlaylab.machine import bundle_source

# No test of a group is passed over for more commits in a row; what is rare says how often it is taken.
EVERY = 5

T = TypeVar("T")


def turn() -> int:
    """Counts up with every commit; out of a bundle, a number that its commit gives, and 0 outside a repository."""
    if bundle_source.version():
        return int(bundle_source.manifest().commit[:8], 16)
    argv = ["git", "-C", str(paths.ROOT), "rev-list", "--count", "HEAD"]
    try:
        return int(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return 0


# What the end of a run says of tests that were not even collected.
PASSED_OVER: list[str] = []


def share(group: Sequence[T], every: int = EVERY) -> Sequence[T]:
    """Those of a group whose turn it is: each is taken once in so many commits."""
    return group[turn() % every :: every]


def pass_over(items: list[pytest.Item]) -> None:
    """Skip those marked ``turn(group)`` whose turn it is not. Where they were asked for by name, there is no other one.

    ``turn(group, rare=True)``: one of them after each commit, however many there are. ``turn(group, together=True)``: all
    such tests of a file count as one, as they look at the same measurement.
    """
    if os.environ.get("OVERLAYLAB_TURNS") == "all":
        return
    # {group: {what is taken or passed over as one: its tests}}
    groups: dict[str, dict[str, list[pytest.Item]]] = {}
    rare = set()
    for item in items:
        if mark := item.get_closest_marker("turn"):
            (name,) = mark.args
            one = item.nodeid.partition("::")[0] if mark.kwargs.get("together") else item.nodeid
            groups.setdefault(name, {}).setdefault(one, []).append(item)
            if mark.kwargs.get("rare"):
                rare.add(name)
    for name, group in groups.items():
        every = len(group) if name in rare else EVERY
        taken = set(share(list(group), every))
        for one, tests in group.items():
            if one in taken:
                continue
            for item in tests:
                reason = f"another commit's turn, one in {every}; TURNS=all takes all"
                item.add_marker(pytest.mark.skip(reason=reason))
