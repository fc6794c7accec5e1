"""VBoxManage: which will do, what it prints, and its locks."""

import pytest
from lab_virtualbox import NODES, Hypervisor, install

from overlaylab.core.errors import NodeError, UserError
from overlaylab.providers import vboxmanage


@pytest.fixture
def hypervisor(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    return install(monkeypatch)


@pytest.mark.parametrize(
    "text",
    ["6.1.38r153438\n", "6.1.50_Debianr161033\n", "7.0.20_Ubuntur163906\n", "7.1.6r167084\n", "10.0.2r1\n"],
)
async def test_versions_that_will_do(hypervisor, text) -> None:
    hypervisor.version = (0, text, "")
    await vboxmanage.refuse_unusable()


WARNING = (
    "WARNING: The vboxdrv kernel module is not loaded. Either there is no module\n"
    "         available for the current kernel (6.1.0-18-amd64) or it failed to\n"
    "         load. Please recompile the kernel module and install it by\n\n"
    "           sudo /sbin/vboxconfig\n\n"
    "         You will not be able to start VMs until this problem is fixed.\n"
)


@pytest.mark.parametrize(
    ("version", "rule", "seen"),
    [
        ((0, "6.0.24r139119\n", ""), "needs VirtualBox 6.1 or later", "6.0.24r139119"),
        ((0, "5.2.44\n", ""), "needs VirtualBox 6.1 or later", "5.2.44"),
        ((0, f"{WARNING}7.0.20r163906\n", ""), "needs VirtualBox's kernel modules", "sudo /sbin/vboxconfig"),
        ((0, "7.0.20r163906\n", WARNING), "needs VirtualBox's kernel modules", "vboxdrv kernel module"),
    ],
)
async def test_a_virtualbox_that_cannot_run_the_nodes_is_refused(hypervisor, version, rule, seen) -> None:
    hypervisor.version = version
    with pytest.raises(UserError) as wrong:
        await vboxmanage.refuse_unusable()
    assert (wrong.value.where, wrong.value.rule) == ("PROVIDER=virtualbox", rule)
    assert seen in wrong.value.seen
    assert "libvirt needs nothing of it" in wrong.value.fix


async def test_without_virtualbox_it_is_said_what_to_install(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for ask in (vboxmanage.refuse_unusable, vboxmanage.states):
        with pytest.raises(
            UserError, match=r"needs the program VBoxManage .*Install VirtualBox.*libvirt needs nothing"
        ):
            await ask()


# What VBoxManage 7.0 prints (VBoxManageList.cpp, VBoxManageInfo.cpp, VBoxManageSnapshot.cpp); no recording of a run.
STAND_IN = r"""#!/bin/sh
echo "$LC_ALL $*" >>"$0.log"
case "$*" in
--version) echo 7.0.20_Ubuntur163906 ;;
"list vms")
    echo '"overlaylab-pair-node1" {0f3a1c5e-8d1f-4d43-9a7e-2c2b8a3f6d10}'
    echo '"Windows 10 \"test\"" {5c1f2a77-3f0a-4f42-8a1f-6f2f4be0a111}'
    echo '"<inaccessible>" {6c1f2a77-3f0a-4f42-8a1f-6f2f4be0a112}' ;;
"showvminfo overlaylab-pair-node1 --machinereadable")
    echo 'name="overlaylab-pair-node1"'
    echo 'VMState="saved"'
    echo 'VMStateChangeTime="2026-11-20T16:30:12.000000000"' ;;
"snapshot bare list --machinereadable") echo "This machine does not have any snapshots"; exit 1 ;;
"snapshot absent list --machinereadable")
    echo "VBoxManage: error: Could not find a registered machine named 'absent'" >&2; exit 1 ;;
"snapshot overlaylab-pair-node1 list --machinereadable")
    echo 'SnapshotName="clean-0123456789ab"'
    echo 'SnapshotUUID="085cbbec-70cd-4864-9208-5d938dcabb71"'
    echo 'SnapshotName-1="host-0-host-1"'
    echo 'SnapshotUUID-1="11111111-2222-3333-4444-555555555555"'
    echo 'CurrentSnapshotName="host-0-host-1"'
    echo 'CurrentSnapshotUUID="11111111-2222-3333-4444-555555555555"'
    echo 'CurrentSnapshotNode="SnapshotName-1"'
    echo 'SnapshotName-1-1="weave 2"'
    echo 'SnapshotUUID-1-1="66666666-7777-8888-9999-aaaaaaaaaaaa"' ;;
*)
    if mkdir "$0.busy" 2>/dev/null; then
        echo "VBoxManage: error: The machine 'a' is already locked for a session (or being unlocked)" >&2
        exit 1
    fi
    echo "0%...10%...100%" >&2
    echo done ;;
esac
"""


async def test_a_program_in_the_path_is_asked_by_argument_and_read(tmp_path, monkeypatch) -> None:
    program = tmp_path / "VBoxManage"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setattr(vboxmanage, "LOCK_POLL", 0.0)
    await vboxmanage.refuse_unusable()
    assert await vboxmanage.states() == {"overlaylab-pair-node1": "saved"}
    assert await vboxmanage.snapshots("bare") == []
    assert [
        (s.place, s.name, s.uuid[:4], s.parent) for s in await vboxmanage.snapshots("overlaylab-pair-node1")
    ] == [
        ("", "clean-0123456789ab", "085c", None),
        ("-1", "host-0-host-1", "1111", ""),
        ("-1-1", "weave 2", "6666", "-1"),
    ]
    with pytest.raises(NodeError, match=r"VBoxManage snapshot absent list .*Could not find"):
        await vboxmanage.snapshots("absent")
    # Locked once, then free.
    assert await vboxmanage.vboxmanage("controlvm", "a b", "poweroff") == "done\n"
    log = program.with_name("VBoxManage.log").read_text().splitlines()
    assert log[-2:] == ["C controlvm a b poweroff"] * 2


async def test_a_lock_that_stays_is_an_error(hypervisor, monkeypatch) -> None:
    monkeypatch.setattr(vboxmanage, "LOCK_PATIENCE", 0.01)
    hypervisor.machines[NODES[0]].locked = 10**9
    with pytest.raises(NodeError, match=r"controlvm overlaylab-pair-node1 pause: .*already locked"):
        await vboxmanage.vboxmanage("controlvm", NODES[0], "pause")


async def test_a_snapshot_with_two_children_that_count_stays(hypervisor) -> None:
    name = NODES[0]
    hypervisor.machines[name].state = "poweroff"
    hypervisor.add(name, "clean")
    hypervisor.add(name, "old")
    for child in ("a", "b", "older"):
        hypervisor.add(name, child, parent="old")
    hypervisor.add(name, "c", parent="older")
    await vboxmanage.delete_snapshots(name, ["old", "older"])
    assert sorted(hypervisor.snapshots(name).values()) == ["a", "b", "c", "clean", "old"]
