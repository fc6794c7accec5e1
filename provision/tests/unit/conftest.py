"""Fixtures of the tests of the core."""

from pathlib import Path

import pytest

from overlaylab.store import Store


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that is this test's own."""
    folder = tmp_path / "overlaylab-test"
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(folder))
    return folder


@pytest.fixture
def lab_store(tmp_path: Path, own_cache: Path):
    """An empty results database; estimates go to a cache of this test's own."""
    with Store.open(tmp_path / "lab.sqlite") as opened:
        yield opened
