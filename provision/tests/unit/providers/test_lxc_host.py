"""What containers need of this machine, as far as it can be known without root and without containers."""

import json
import subprocess
from ipaddress import IPv4Network
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image.vagrant import Vagrant
from overlaylab.machine import packages, services
from overlaylab.machine import root as host_root
from overlaylab.machine.modules import Modules
from overlaylab.providers import lxc_host

NAMES = ("overlaylab-pair-node1", "overlaylab-pair-node2")


@pytest.fixture
def root(monkeypatch, own_cache):
    """Records what would run as root; root.answers maps a verb (or a program) to what it prints."""
    root = SimpleNamespace(calls=[], answers={}, code=0)

    def run(argv, why, *, capture=False, **options):
        words = list(argv[2:]) if str(argv[1]).endswith("lxc_host.sh") else list(argv)
        root.calls.append(words)
        answer = root.answers.get(words[0], "")
        return subprocess.CompletedProcess(argv, root.code, answer if capture else None)

    monkeypatch.setattr(lxc_host, "run_as_root", run)
    monkeypatch.setattr(host_root, "run_as_root", run)
    return root


# -- packages -----------------------------------------------------------------------------------------


def test_only_who_asks_for_containers_needs_their_packages(monkeypatch) -> None:
    assert set(packages.names()) & {"lxc", "vagrant-lxc"} == set()
    assert packages.names([packages.CONTAINERS])[-2:] == ("lxc", "vagrant-lxc")
    listing = "\n".join(f"{name} installed" for name in (*packages.names(), "lxc"))
    monkeypatch.setattr(packages, "uses_apt", lambda: True)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=listing))
    assert packages.missing() == []
    assert packages.missing([packages.CONTAINERS]) == ["vagrant-lxc"]
    assert (
        packages.describe(["vagrant-lxc", "tini"]) == "virtual machines: tini; system containers: vagrant-lxc"
    )


def test_a_system_without_apt_needs_lxcs_programs_only_for_containers(monkeypatch) -> None:
    monkeypatch.setattr(packages, "uses_apt", lambda: False)
    monkeypatch.setattr(
        packages, "find_program", lambda name: None if name == "lxc-start" else f"/bin/{name}"
    )
    assert packages.missing() == []
    with pytest.raises(UserError) as wrong:
        packages.missing([packages.CONTAINERS])
    assert wrong.value.seen == "missing lxc-start"


def test_boxes_of_other_providers_stay(own_cache) -> None:
    boxes = own_cache / "vagrant.d" / "boxes"
    for name, provider in (
        ("lxc-old", "lxc"),
        ("lxc-new", "lxc"),
        ("debian-0123", "libvirt"),
        ("cut-off", ""),
    ):
        (boxes / f"overlaylab-VAGRANTSLASH-{name}" / "0" / provider).mkdir(parents=True)
    lab = Vagrant(
        "pair", box="overlaylab/lxc-new", accelerator="shared-kernel", key=Path("/key"), provider="lxc",
        folder=own_cache / "clusters" / "pair" / "lxc",
    )  # fmt: skip
    assert lab.environment["VAGRANT_DOTFILE_PATH"] == f"{own_cache}/clusters/pair/lxc/vagrant"
    lab.remove_other_boxes()
    assert sorted(path.name for path in boxes.iterdir()) == [
        "overlaylab-VAGRANTSLASH-debian-0123",
        "overlaylab-VAGRANTSLASH-lxc-new",
    ]


# -- networks -----------------------------------------------------------------------------------------


def test_addresses_are_the_lowest_that_are_free(monkeypatch) -> None:
    assert lxc_host.free_addresses(2, {"192.168.79.11", "192.168.79.13"}) == [
        "192.168.79.12",
        "192.168.79.14",
    ]
    taken = {f"192.168.79.{number}" for number in range(11, 254)}
    assert lxc_host.free_addresses(1, taken) == ["192.168.79.254"]
    with pytest.raises(UserError) as wrong:
        lxc_host.free_addresses(2, taken)
    assert (wrong.value.rule, wrong.value.seen) == ("must have 2 free addresses", 1)


@pytest.mark.parametrize(("device", "refused"), [("tun0", True), (lxc_host.MANAGEMENT, False)])
def test_a_management_network_that_is_in_use_is_refused(monkeypatch, device, refused) -> None:
    routes = json.dumps([{"dst": "default", "dev": "eth0"}, {"dst": "192.168.0.0/17", "dev": device}])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=routes))
    assert IPv4Network("192.168.0.0/17").supernet_of(lxc_host.MANAGEMENT_NETWORK)
    if not refused:
        lxc_host.check_routes()
        return
    with pytest.raises(
        UserError, match=r"192\.168\.79\.0/24: must not be .* a route to 192\.168\.0\.0/17 \(dev tun0\)"
    ):
        lxc_host.check_routes()


def test_bridges_are_made_with_what_is_known_of_their_neighbours(root) -> None:
    lxc_host.make_bridges("ovlab-u-pair", {"192.168.79.11": "00:16:3e:00:00:01"})
    assert root.calls == [
        [
            "bridges",
            "ovlab-mgmt",
            "192.168.79.1/24",
            "ovlab-u-pair",
            "9001",
            "192.168.79.11",
            "00:16:3e:00:00:01",
        ]
    ]


def test_what_fails_as_root_is_an_error(root) -> None:
    root.code = 1
    with pytest.raises(UserError) as wrong:
        lxc_host.start(NAMES)
    assert wrong.value.where == "containers: starting overlaylab-pair-node1, overlaylab-pair-node2 anew"
    assert wrong.value.seen == "exit code 1, its output is above"


# -- containers ---------------------------------------------------------------------------------------


def test_a_container_runs_while_its_monitor_listens() -> None:
    # As /proc/net/unix shows it: an abstract socket begins with @.
    sockets = """\
Num       RefCount Protocol Flags    Type St Inode Path
00000000c0a7e7c4: 00000002 00000000 00010000 0001 01 210432 @/var/lib/lxc/overlaylab-pair-node1/command
000000005f9ec0f0: 00000002 00000000 00010000 0001 01 210433 @/var/lib/lxc/overlaylab-pair-node22/command
000000005f9ec0f1: 00000002 00000000 00010000 0001 01 210434 /run/dbus/system_bus_socket
"""
    assert lxc_host.running(NAMES, sockets) == {"overlaylab-pair-node1"}


def test_a_survey_tells_whose_a_container_is(own_cache) -> None:
    own = f"{own_cache}/vagrant.d/boxes/a/0/lxc/rootfs.tar.gz"
    there = lxc_host.parse_survey(
        f"overlaylab-pair-node1 192.168.79.11 {own}\n"
        "overlaylab-pair-node2 - -\n"
        "overlaylab-big-node1 192.168.79.13 /home/jane doe/cache/vagrant.d/boxes/a/0/lxc/rootfs.tar.gz\n"
    )
    assert [(one.name, one.address, one.is_foreign) for one in there] == [
        ("overlaylab-pair-node1", "192.168.79.11", False),
        ("overlaylab-pair-node2", None, False),
        ("overlaylab-big-node1", "192.168.79.13", True),
    ]
    lxc_host.refuse_foreign(NAMES, there)
    with pytest.raises(UserError) as wrong:
        lxc_host.refuse_foreign(["overlaylab-big-node1"], there)
    assert wrong.value.where == "container overlaylab-big-node1"
    assert wrong.value.seen == Path("/home/jane doe/cache/vagrant.d/boxes/a/0/lxc/rootfs.tar.gz")


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ"


def test_freezing_tells_each_nodes_own_host_key(root) -> None:
    root.answers["freeze"] = f"host-key {NAMES[0]} {KEY}\nsomething else\nhost-key {NAMES[1]} {KEY}X root@a\n"
    assert lxc_host.freeze(NAMES) == {NAMES[0]: KEY, NAMES[1]: f"{KEY}X"}
    assert root.calls == [["freeze", *NAMES]]


def test_a_node_without_a_host_key_is_named(root) -> None:
    root.answers["freeze"] = f"host-key {NAMES[0]} {KEY}\n"
    with pytest.raises(UserError, match=f"container {NAMES[1]}: must have made its SSH host key"):
        lxc_host.freeze(NAMES)


def test_host_keys_are_read_from_what_is_frozen_and_through_no_link(tmp_path, monkeypatch) -> None:
    """lxc_host.sh itself, on stand-ins for LXC's commands."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, does in (("lxc-config", f"echo {tmp_path}"), ("lxc-stop", ":"), ("lxc-start", ":")):
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name in ("tried-node1", "tried-node2"):
        (tmp_path / name / "provisioned").mkdir(parents=True)
        (tmp_path / name / "upper" / "etc" / "ssh").mkdir(parents=True)
    shown = tmp_path / "tried-node1" / "upper" / "etc" / "ssh" / "ssh_host_ed25519_key.pub"
    shown.write_text(f"{KEY}\n")
    (tmp_path / "secret").write_text("of the host\n")
    (tmp_path / "tried-node2/upper/etc/ssh/ssh_host_ed25519_key.pub").symlink_to(tmp_path / "secret")
    for _ in range(2):  # may be repeated
        done = subprocess.run(
            ["sh", str(lxc_host.SCRIPT), "freeze", "tried-node1", "tried-node2"],
            check=True,
            text=True,
            capture_output=True,
        )
        assert done.stdout == f"host-key tried-node1 {KEY}\n"
    assert (tmp_path / "tried-node1" / "frozen").exists()
    assert list((tmp_path / "tried-node1" / "upper").iterdir()) == []


def test_nothing_is_removed_where_a_container_is_somebody_elses(root, monkeypatch) -> None:
    monkeypatch.setattr(lxc_host, "processes", dict)
    root.answers["survey"] = (
        "overlaylab-pair-node2 192.168.79.12 /srv/other/vagrant.d/boxes/a/0/lxc/rootfs.tar.gz\n"
    )
    with pytest.raises(UserError, match="overlaylab-pair-node2"):
        lxc_host.remove(NAMES, "ovlab-u-pair")
    assert [call[0] for call in root.calls] == ["survey"]


def test_makers_that_outlived_vagrant_are_ended_before_their_containers(root, monkeypatch, own_cache) -> None:
    boxes = f"{own_cache}/vagrant.d/boxes/overlaylab-x/0/lxc"
    running = {
        1: ["/sbin/init"],
        10: ["/usr/bin/sudo", "/usr/bin/env", "lxc-create", "-B", "dir", "--name", "overlaylab-pair-node1"],
        11: [
            "lxc-create",
            "-B",
            "dir",
            "--name",
            "overlaylab-pair-node1",
            "--",
            "--tarball",
            f"{boxes}/r.tar.gz",
        ],
        12: ["/bin/sh", f"{boxes}/lxc-template", "--path=/var/lib/lxc/x", "--name=overlaylab-pair-node1"],
        13: ["tar", "--extract", "--gzip", "--file", f"{boxes}/rootfs.tar.gz"],
        20: ["lxc-create", "--name", "overlaylab-pair-node11"],
        21: ["virsh", "start", "overlaylab-pair-node1"],
        22: ["tar", "--extract", "--file", "/home/jane/vagrant.d/boxes/a/rootfs.tar.gz"],
        23: ["vi", f"{boxes}/lxc-template"],
        24: [""],
    }
    assert lxc_host.stale_processes(NAMES, running) == [10, 11, 12, 13]
    monkeypatch.setattr(lxc_host, "processes", lambda: running)
    lxc_host.remove(NAMES, "ovlab-u-pair")
    assert root.calls == [
        ["survey"],
        ["sh", "-c", 'kill -s "$@"', "kill", "KILL", "10", "11", "12", "13"],
        ["remove", "ovlab-mgmt", "ovlab-u-pair", *NAMES],
    ]


def test_processes_are_seen_with_their_arguments() -> None:
    import os
    import sys

    own = lxc_host.processes()[os.getpid()]
    assert Path(own[0]).name.startswith("python") or own[0] == sys.executable


# -- kernel modules -----------------------------------------------------------------------------------


@pytest.fixture
def kernel(monkeypatch, root):
    """kernel(on_disk…, loaded=…): modules on disk, and what is in memory; modprobe is there."""

    def have(*on_disk: str, loaded: set[str]) -> set[str]:
        monkeypatch.setattr(
            lxc_host, "read_modules", lambda: Modules(frozenset(on_disk), loaded=frozenset(loaded))
        )
        monkeypatch.setattr(lxc_host, "is_loaded", loaded.__contains__)
        monkeypatch.setattr(packages, "find_program", lambda name: f"/sbin/{name}")
        return loaded

    return have


def test_only_what_is_on_disk_and_not_loaded_is_loaded_and_remembered(kernel, root) -> None:
    loaded = kernel("vxlan", "udp_tunnel", "dummy", "bridge", loaded={"bridge"})
    root.answers["modules"] = (
        "udp_tunnel\nvxlan\nfailed dummy modprobe: ERROR: could not insert 'dummy': Exec format error\n"
    )
    failed = lxc_host.load_modules(["vxlan", "bridge", "dummy", "built_in"])
    assert root.calls == [["modules", "vxlan", "dummy"]]
    assert failed == {"dummy": "modprobe: ERROR: could not insert 'dummy': Exec format error"}
    loaded |= {"udp_tunnel", "vxlan"}
    assert lxc_host.loaded_modules() == ["udp_tunnel", "vxlan"]


def test_what_was_loaded_is_unloaded_in_the_opposite_order_and_forgotten(kernel, root, own_cache) -> None:
    loaded = kernel("vxlan", "udp_tunnel", loaded=set())
    root.answers["modules"] = "udp_tunnel\nvxlan\n"
    lxc_host.load_modules(["vxlan"])
    loaded |= {"udp_tunnel", "vxlan"}
    assert lxc_host.unload_modules() == ["udp_tunnel", "vxlan"]  # somebody uses them
    assert root.calls[-1] == ["unload", "vxlan", "udp_tunnel"]
    loaded.clear()
    assert lxc_host.unload_modules() == []
    assert not (own_cache / "lxc-modules.json").exists()


def test_modules_that_a_link_type_brought_are_unloaded_whatever_their_order(
    kernel, root, monkeypatch
) -> None:
    loaded = kernel("vxlan", "udp_tunnel", loaded={"bridge", "udp_tunnel", "vxlan"})
    lxc_host.remember_modules(["udp_tunnel", "vxlan"])
    calls = []

    def unload(verb, *names, why, capture):
        calls.append((verb, *names))
        # The kernel refuses what another one uses, as rmmod(8) says.
        for name in ("vxlan",) if "vxlan" in loaded else ("udp_tunnel",):
            loaded.discard(name)
        return ""

    monkeypatch.setattr(lxc_host, "_root", unload)
    assert lxc_host.unload_modules() == []
    assert calls == [("unload", "vxlan", "udp_tunnel"), ("unload", "udp_tunnel")]
    assert loaded == {"bridge"}


def test_modules_of_an_earlier_boot_are_not_ours(kernel, root, monkeypatch) -> None:
    loaded = kernel("vxlan", loaded=set())
    root.answers["modules"] = "vxlan\n"
    lxc_host.load_modules(["vxlan"])
    loaded.add("vxlan")
    monkeypatch.setattr(services, "boot_id", lambda: "another boot")
    assert lxc_host.loaded_modules() == []


def test_nothing_is_asked_of_root_where_nothing_can_be_loaded(kernel, root, monkeypatch) -> None:
    kernel(loaded=set())
    assert lxc_host.load_modules(["vxlan", "openvswitch"]) == {}
    kernel("vxlan", loaded=set())
    monkeypatch.setattr(packages, "find_program", lambda name: None)
    assert lxc_host.load_modules(["vxlan"]) == {"vxlan": "this machine has no modprobe (package kmod)"}
    assert lxc_host.unload_modules() == []
    assert root.calls == []
