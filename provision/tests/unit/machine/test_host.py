"""The host's description and the preflight of memory and disk."""

import threading

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import ready

MEMINFO = """\
MemTotal:       24612345 kB
MemFree:        10000000 kB
MemAvailable:   20971520 kB
HugePages_Total:       0
"""


def test_meminfo_is_in_bytes_and_leaves_counts_out():
    assert ready.parse_meminfo(MEMINFO) == {
        "MemTotal": 24612345 * 1024,
        "MemFree": 10000000 * 1024,
        "MemAvailable": 20971520 * 1024,
    }


@pytest.mark.parametrize(
    ("text", "model"),
    [
        (
            "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU   @ 2.80GHz\n",
            "Intel(R) Xeon(R) CPU @ 2.80GHz",
        ),
        ("processor\t: 0\nmodel name\t: \n", "unknown CPU"),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", "unknown CPU"),
    ],
)
def test_cpu_model(text, model):
    assert ready.parse_cpu_model(text) == model


@pytest.mark.parametrize(
    ("cores", "text"), [({0, 1}, "2 cores, AMD EPYC, 23 GB"), ({3}, "1 core, AMD EPYC, 23 GB")]
)
def test_machine_names_cores_cpu_and_memory(monkeypatch, cores, text):
    files = {"/proc/meminfo": MEMINFO, "/proc/cpuinfo": "model name\t: AMD EPYC\n"}
    monkeypatch.setattr(ready, "_read", files.__getitem__)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: cores)
    assert ready.machine() == text


@pytest.fixture
def small_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "not" / "yet"))
    monkeypatch.setattr(ready, "_read", lambda path: MEMINFO)
    monkeypatch.setattr(ready, "free_disk_bytes", lambda: 3_000_000_000)
    return tmp_path


def test_preflight_passes_with_exactly_what_is_there(small_machine):
    ready.preflight(20480, 3_000_000_000)


def test_preflight_names_the_memory_that_is_missing(small_machine):
    with pytest.raises(UserError) as error:
        ready.preflight(20481, 0)
    assert str(error.value) == (
        "memory of this machine: must have 20481 MiB available for the nodes (found: 20480 MiB). End other "
        "programs or VMs (`virsh -c qemu:///system list` shows those), or use a smaller CLUSTER"
    )


def test_preflight_names_the_disk_that_is_missing(small_machine):
    with pytest.raises(UserError) as error:
        ready.preflight(0, 3_100_000_000)
    assert str(error.value) == (
        f"disk below {small_machine}/not/yet: must have 3.1 GB free (found: 3.0 GB). Free some, or set "
        "OVERLAYLAB_CACHE to a folder on another disk (outside your home)"
    )


def test_free_disk_of_a_cache_folder_that_does_not_exist_yet(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "not" / "yet"))
    seen = []

    def usage(folder):
        seen.append(folder)
        return type("Usage", (), {"free": 7})()

    monkeypatch.setattr("shutil.disk_usage", usage)
    assert ready.free_disk_bytes() == 7
    assert seen == [tmp_path]


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """ensure() on a machine that is ready; the names of what was changed are recorded."""
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path))
    done = []
    for module, name, answer in (
        (ready.access, "prepare_cache", tmp_path),
        (ready.packages, "missing", []),
        (ready.access, "missing_memberships", []),
        (ready.access, "kvm_is_untouched", False),
        (ready.services, "libvirt_error", None),
    ):
        monkeypatch.setattr(module, name, lambda *_, answer=answer, **__: answer)
    monkeypatch.setattr(ready.packages, "install", lambda packages: done.append(("install", *packages)))
    monkeypatch.setattr(ready.access, "open_kvm", lambda: done.append(("open",)))
    monkeypatch.setattr(ready.access, "join_groups", lambda: done.append(("join",)))
    monkeypatch.setattr(ready.access, "enter_groups", lambda: done.append(("enter",)))
    monkeypatch.setattr(ready.services, "ensure_running", lambda: done.append(("start",)))
    return done


def test_ensure_changes_nothing_where_all_is_in_place(steps):
    ready.ensure()
    assert steps == [("enter",)]


def test_ensure_works_from_packages_to_libvirt(steps, monkeypatch):
    monkeypatch.setattr(ready.packages, "missing", lambda *_, **__: ["tini"])
    monkeypatch.setattr(ready.services, "libvirt_error", lambda: "no socket")
    monkeypatch.setattr(ready.access, "kvm_is_untouched", lambda: True)
    ready.ensure()
    # Groups exist only after the packages, the group kvm matters only once it may open the device, and
    # libvirt's socket is closed to who is not in the group.
    assert steps == [("install", "tini"), ("open",), ("join",), ("enter",), ("start",)]


def test_what_needs_no_package_is_brought_beside_them_and_waited_for(steps, monkeypatch):
    """The next step may be to start the program again."""
    installing = threading.Event()
    monkeypatch.setattr(ready.packages, "missing", lambda *_, **__: ["tini"])
    monkeypatch.setattr(ready.packages, "install", lambda packages: installing.set())

    def bring():
        assert installing.wait(5)
        steps.append(("brought",))
        raise UserError("bundle", "must be whole", fix="")  # whoever needs it says so

    ready.ensure(meanwhile=bring)
    assert steps == [("brought",), ("join",), ("enter",)]


def test_nothing_is_brought_where_nothing_is_installed(steps):
    ready.ensure(meanwhile=lambda: steps.append(("brought",)))
    assert steps == [("enter",)]


def test_libvirt_is_started_only_where_nodes_need_it(steps, monkeypatch):
    monkeypatch.setattr(ready.services, "libvirt_error", lambda: "no socket")
    ready.ensure(ready.Needs())
    assert steps == [("enter",)]
    ready.ensure()
    assert steps == [("enter",), ("enter",), ("start",)]


@pytest.fixture
def asked_for(steps, monkeypatch):
    """The groups of packages that were asked for, and whether alone; all of them are there."""
    asked = []

    def missing(groups=(), *, alone=False):
        asked.append((tuple(groups), alone))
        return []

    monkeypatch.setattr(ready.packages, "missing", missing)
    return asked


def test_containers_and_further_groups_come_with_all_the_rest(asked_for):
    ready.ensure(ready.Needs(groups=("system containers",)), groups=("the viewer",))
    assert asked_for == [(("system containers", "the viewer"), False)]


def test_nodes_elsewhere_need_no_hypervisor_and_no_group(asked_for, steps):
    ready.ensure(ready.Needs(groups=("reaching the nodes",), alone=True), groups=("the viewer",))
    assert asked_for == [(("reaching the nodes", "the viewer"), True)]
    assert steps == []


@pytest.mark.parametrize(
    ("missing", "systemd", "ended"),
    [(["tini", "lxc"], True, True), (["vagrant-lxc"], True, False), (["lxc", "vagrant-lxc"], False, False)],
)
def test_the_bridge_that_lxc_brings_is_switched_off_where_lxc_is_new(
    steps, monkeypatch, missing, systemd, ended
):
    monkeypatch.setattr(ready.packages, "missing", lambda *_, **__: missing)
    monkeypatch.setattr(ready.services, "has_systemd", lambda: systemd)
    monkeypatch.setattr(ready.services, "run_as_root", lambda argv, why: steps.append(argv))
    ready.ensure(ready.Needs())
    told = ["systemctl", "disable", "--quiet", "--now", "lxc-net.service"]
    assert [step for step in steps if step[0] == "systemctl"] == ([told] if ended else [])


def test_accelerator_reason_ends_with_what_would_change_it(monkeypatch):
    verdict = ready.kvm.Verdict("tcg", "/dev/kvm does not exist", "switch on virtualisation")
    monkeypatch.setattr(ready.kvm, "verdict", lambda: verdict)
    assert ready.accelerator() == "tcg"
    assert ready.accelerator_reason() == "/dev/kvm does not exist; switch on virtualisation"
