"""After one complete run, no package registry is needed any more."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from overlaylab.core import paths

PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PIP_INDEX_URL")
UNREACHABLE = {
    # The discard port, on which nothing listens.
    **dict.fromkeys(PROXIES, "http://127.0.0.1:9"),
    "GOPROXY": "off",
    "PIP_NO_INDEX": "1",
    "no_proxy": "",
    "NO_PROXY": "",
}


# A namespace without networks takes root; the task itself runs as whoever runs the tests.
AS_ROOT = [] if os.getuid() == 0 else ["sudo", "--non-interactive"]
AS_SELF = [] if os.getuid() == 0 else ["sudo", "--user", f"#{os.getuid()}", "--"]
CUT_OFF = [*AS_ROOT, "unshare", "--net", *AS_SELF, "env", f"OVERLAYLAB_CACHE={paths.cache()}"]
cut_off = pytest.mark.skipif(
    AS_ROOT != [] and subprocess.run([*AS_ROOT, "true"], capture_output=True).returncode != 0,
    reason="a network namespace without networks takes root, or sudo that asks no password",
)


@cut_off
@pytest.mark.parametrize("words", [["setup"], ["image:build"], ["--list"]], ids=lambda w: w[0])
def test_tasks_that_once_needed_the_network_do_not_any_more(words) -> None:
    done = subprocess.run(
        [*CUT_OFF, str(paths.ROOT / "task"), *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@cut_off
def test_the_viewer_needs_no_network_any_more() -> None:
    """By itself, on a machine that had never prepared the viewer, it failed."""
    prepare = [str(paths.PROVISION / "bin" / "lab"), "viewer", "prepare"]
    subprocess.run(prepare, stdin=subprocess.DEVNULL, timeout=600, check=True)
    done = subprocess.run(
        [*CUT_OFF, *prepare],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.access(f"{done.stdout.strip()}/electron", os.X_OK)


@pytest.mark.turn("nodes")
def test_the_lab_runs_with_every_registry_unreachable(lab_in, quickest) -> None:
    """What VMs take that no earlier run has brought, a bundle's walk shows (tests/bare)."""
    assert shutil.which("vagrant")
    lab = lab_in(BLOCKS="1", SCALE="0.4", MODES="sleeve", **quickest, **UNREACHABLE)
    lab.run("lab:weave")
    assert lab.query("SELECT DISTINCT status FROM trial") == [("ok",)]
