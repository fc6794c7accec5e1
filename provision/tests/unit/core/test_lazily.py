"""Modules that are imported once something of them is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overlaylab.core.lazily import lazily


def test_a_module_is_run_at_its_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slow_one.py").write_text("print('runs')\nVALUE = 7\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    module = lazily("slow_one")
    assert capsys.readouterr().out == ""
    assert (module.VALUE, lazily("slow_one").VALUE) == (7, 7)
    assert capsys.readouterr().out == "runs\n"
    sys.modules.pop("slow_one")


def test_a_module_that_is_not_there_is_missed_at_once() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'slow_none'"):
        lazily("slow_none")


def test_the_command_line_starts_without_ssh() -> None:
    """It takes a quarter of the time of a command that connects to no node."""
    what = "import sys, overlaylab.cli.commands.cluster; print('asyncssh.connection' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", what], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
