"""The doctor's checks, one by one."""

from pathlib import Path

import pytest

from overlaylab.image import checks as image_checks
from overlaylab.machine import checks
from overlaylab.machine.checks import OK, PROBLEM, WARNING, Check
from overlaylab.machine.userns import Trouble

STAT = """\
cpu  1000 20 300 8000 40 5 6 7 900 0
cpu0 500 10 150 4000 20 2 3 3 450 0
intr 1 2 3
"""


def test_stat_counts_waiting_as_idle_and_guests_once():
    assert checks.parse_stat(STAT) == (8040, 9378)


def test_stat_that_begins_with_something_else_is_an_error():
    with pytest.raises(ValueError, match="begins with 'intr'"):
        checks.parse_stat("intr 1 2 3\n")


def test_idle_share():
    assert checks.idle_share((100, 1000), (150, 1200)) == 0.25


def test_two_readings_of_one_tick_give_no_share():
    with pytest.raises(ValueError, match="same tick"):
        checks.idle_share((100, 1000), (100, 1000))


@pytest.mark.parametrize(
    ("cores", "readings", "state", "found"),
    [
        ({0, 1}, [(0, 0), (160, 200)], OK, "2 cores, 80% idle over 0 s"),
        ({0, 1}, [(0, 0), (158, 200)], WARNING, "2 cores, 79% idle over 0 s"),
        ({0}, [(0, 0), (100, 100)], WARNING, "1 core, 100% idle over 0 s"),
    ],
)
def test_cpu(monkeypatch, cores, readings, state, found):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: cores)
    monkeypatch.setattr(checks, "read_stat", iter(readings).__next__)
    check = checks.check_idle_cpu(0)
    assert (check.state, check.found) == (state, found)


@pytest.mark.parametrize(
    ("available", "domains", "state", "found"),
    [
        (2560, [], OK, "2560 MiB available"),
        (2559, [], PROBLEM, "2559 MiB available"),
        # The lab's own nodes may be what takes it.
        (2559, ["a", "b"], WARNING, "2559 MiB available beside 2 running VMs"),
    ],
)
def test_memory(monkeypatch, available, domains, state, found):
    monkeypatch.setattr(checks.ready, "available_memory_mib", lambda: available)
    monkeypatch.setattr(checks.services, "running_domains", lambda: domains)
    check = checks.check_memory()
    assert (check.state, check.found) == (state, found)


@pytest.mark.parametrize(
    ("free", "state"),
    [
        (20 * 10**9, OK),
        (20 * 10**9 - 1, WARNING),
        (8 * 2**30, WARNING),
        (8 * 2**30 - 1, PROBLEM),
    ],
)
def test_disk(monkeypatch, free, state):
    monkeypatch.setenv("OVERLAYLAB_CACHE", "/var/tmp/x")
    monkeypatch.setattr(checks.ready, "free_disk_bytes", lambda: free)
    assert checks.check_disk().state == state


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(checks.packages, "missing", lambda: ["tini", "packer"])
    assert checks.check_packages() == Check(
        "packages", PROBLEM, "missing: tini, packer", "type `./task setup`, which installs them"
    )


def test_missing_kvm_is_a_drawback_and_no_obstacle(monkeypatch):
    verdict = checks.kvm.Verdict("tcg", "/dev/kvm does not exist", "switch it on")
    monkeypatch.setattr(checks.kvm, "verdict", lambda: verdict)
    assert checks.check_accelerator() == Check(
        "KVM",
        WARNING,
        "/dev/kvm does not exist",
        "without KVM the lab runs in software emulation: slower, and ratios that the CPU bounds are not a "
        "cloud's; switch it on",
    )


def test_a_cache_below_a_closed_folder(monkeypatch):
    monkeypatch.setenv("OVERLAYLAB_CACHE", "/home/mona/cache")
    monkeypatch.setattr(checks.access, "unsearchable_folder", lambda folder: Path("/usr"))
    check = checks.check_cache()
    assert (check.state, check.found) == (
        PROBLEM,
        "/home/mona/cache: QEMU's user cannot pass /usr (mode 0755)",
    )


@pytest.mark.parametrize(
    ("trouble", "check"),
    [
        (None, Check("user namespaces", OK, "mmdebstrap may use a user namespace")),
        (
            Trouble("x is 0", "Set it"),
            Check("user namespaces", PROBLEM, "no user namespace for mmdebstrap: x is 0", "Set it"),
        ),
    ],
)
def test_user_namespaces_are_tried_as_the_image_will_use_them(monkeypatch, trouble, check):
    monkeypatch.setattr(checks, "is_root", lambda: False)
    monkeypatch.setattr(checks.packages, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(checks.userns, "mmdebstrap_trouble", lambda: trouble)
    assert checks.check_user_namespaces() == check


@pytest.mark.parametrize(
    ("missing", "built", "cached", "found"),
    [
        (
            ["tini"],
            False,
            False,
            "needed once, for packages and the image and the daemons of weave; not tried here",
        ),
        ([], True, False, "needed once, for the daemons of weave; not tried here"),
        ([], True, True, "not needed any more: packages, image and overlay daemons are there"),
    ],
)
def test_network_is_needed_for_what_is_not_there_yet(monkeypatch, missing, built, cached, found):
    monkeypatch.setattr(image_checks.packages, "uses_apt", lambda: True)
    monkeypatch.setattr(image_checks.packages, "missing", lambda: missing)
    monkeypatch.setattr(image_checks, "image_built", lambda: built)
    monkeypatch.setattr("overlaylab.image.daemons.names", lambda: ["weave"])
    monkeypatch.setattr("overlaylab.image.daemons.cached", lambda name: cached)
    assert image_checks.check_network() == Check("network", OK, found)
