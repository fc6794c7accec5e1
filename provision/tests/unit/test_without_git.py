"""A checkout without its repository, as a bundle leaves one: the tests on nodes are found there too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lab_bundle import manifest

from overlaylab.core.paths import ROOT
from overlaylab.machine import bundle_manifest

AWAY = shutil.ignore_patterns(".git", "node_modules", "bundle", "results", "__pycache__", "dist", "unit")


@pytest.mark.parametrize("bundled", [True, False])
def test_the_tests_on_nodes_are_collected_without_git_and_its_program(tmp_path, own_cache, bundled):
    top = tmp_path / "overlaylab"
    shutil.copytree(ROOT, top, ignore=AWAY)
    if bundled:
        (top / bundle_manifest.NAME).parent.mkdir()
        (top / bundle_manifest.NAME).write_text(bundle_manifest.to_json(manifest([], commit="0000000b" * 5)))
    programs = {path.name: path for name in os.get_exec_path()[::-1] for path in Path(name).glob("*")}
    (tmp_path / "bin").mkdir()
    for name in programs.keys() - {"git"}:
        (tmp_path / "bin" / name).symlink_to(programs[name])
    done = subprocess.run(
        [sys.executable, "-c", "import lab_turns, pytest; print(lab_turns.turn()); "
         "raise SystemExit(pytest.main(['--collect-only', '-q', '.']))"],
        cwd=top / "provision/tests/lab", text=True, capture_output=True, check=False,
        env={**os.environ, "PATH": str(tmp_path / "bin"), "PYTHONPATH": f"{top}/provision/src:."},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert told[0] == ("11" if bundled else "0")
    assert {line.partition("::")[0].rpartition("/")[2] for line in told if "::" in line} == {
        path.name for path in (ROOT / "provision/tests/lab").glob("test_*.py")
    }
