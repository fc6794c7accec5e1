"""Slow tests take turns: each is taken once in five commits, and tests of one measurement together."""

from __future__ import annotations

import importlib
from types import ModuleType, SimpleNamespace

import pytest

from overlaylab.core import paths


@pytest.fixture
def turns(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(paths.ROOT / "provision" / "tests" / "lab"))
    monkeypatch.delenv("OVERLAYLAB_TURNS", raising=False)
    return importlib.import_module("lab_turns")


class Item:
    """What `pass_over` looks at and does to a test."""

    def __init__(self, nodeid: str, *group: str, **how: bool) -> None:
        self.nodeid = nodeid
        self.mark = SimpleNamespace(args=group, kwargs=how) if group else None
        self.skipped = False

    def get_closest_marker(self, name: str) -> SimpleNamespace | None:
        return self.mark if name == "turn" else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.skipped = mark.name == "skip"


def taken(turns: ModuleType, monkeypatch, number: int, items: list[Item]) -> list[str]:
    for item in items:
        item.skipped = False
    monkeypatch.setattr(turns, "turn", lambda: number)
    turns.pass_over(items)
    return [item.nodeid for item in items if not item.skipped]


def test_each_is_taken_once_in_five_commits_and_others_always(turns, monkeypatch) -> None:
    items = [Item("a.py::always"), *(Item(f"b.py::{n}", "nodes") for n in range(7))]
    seen = [taken(turns, monkeypatch, number, items) for number in range(10, 15)]
    assert seen[0] == ["a.py::always", "b.py::0", "b.py::5"]
    assert seen[4] == ["a.py::always", "b.py::4"]
    assert sorted(name for names in seen for name in names if name != "a.py::always") == [
        f"b.py::{n}" for n in range(7)
    ]


def test_tests_of_one_measurement_are_taken_together(turns, monkeypatch) -> None:
    together = [Item(f"m.py::{n}", "nodes", together=True) for n in range(3)]
    items = [*together, *(Item(f"b.py::{n}", "nodes") for n in range(4))]
    seen = [taken(turns, monkeypatch, number, items) for number in range(5)]
    assert seen == [["m.py::0", "m.py::1", "m.py::2"], ["b.py::0"], ["b.py::1"], ["b.py::2"], ["b.py::3"]]


def test_of_what_is_rare_one_is_taken_after_each_commit(turns, monkeypatch) -> None:
    items = [Item(f"s.py::{n}", "suites", rare=True) for n in range(8)]
    assert [taken(turns, monkeypatch, number, items) for number in (6, 7, 8)] == [
        ["s.py::6"], ["s.py::7"], ["s.py::0"],
    ]  # fmt: skip


def test_all_are_taken_where_that_is_asked_for(turns, monkeypatch) -> None:
    monkeypatch.setenv("OVERLAYLAB_TURNS", "all")
    items = [Item(f"b.py::{n}", "nodes") for n in range(3)]
    assert taken(turns, monkeypatch, 0, items) == ["b.py::0", "b.py::1", "b.py::2"]
