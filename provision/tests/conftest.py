"""``pytest --update-golden`` rewrites the expected texts; review the difference before committing it."""

import difflib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")


def pytest_configure() -> None:
    """Ctrl-C counts again: a shell starts what it puts into the background with it ignored, and tests that
    interrupt a command would then wait for ever."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("OVERLAYLAB_CALLER", None)  # where somebody typed ./task test:unit is nothing to a test


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.geteuid() != 0 and item.get_closest_marker("root"):
        pytest.skip("takes root: sudo ./task --with-tools pytest -m root")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """golden(file, text): the text must be the file's, or becomes it with --update-golden."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
            return
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), path.name, "now", lineterm=""
            )
            pytest.fail("\n".join([*lines, "pytest --update-golden accepts this."]), pytrace=False)

    return check
