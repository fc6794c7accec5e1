"""Vagrant: its environment, its errors, and what it says of the nodes."""

import asyncio
import os
import stat
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import boxes, vagrant
from overlaylab.image.vagrant import Vagrant
from overlaylab.specs.inventory import InventoryNode

FIXTURES = Path(__file__).parents[2] / "fixtures" / "vagrant"


@pytest.fixture
def fake(tmp_path, monkeypatch, own_cache):
    """make(script): a `vagrant` in the path that is this shell script."""

    def make(script: str) -> Vagrant:
        path = tmp_path / "bin" / "vagrant"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
        return Vagrant("pair", box="overlaylab/debian-0123", accelerator="tcg", key=Path("/keys/lab"))

    return make


def test_ssh_config_as_vagrant_prints_it() -> None:
    found = vagrant._parse_ssh_config((FIXTURES / "ssh-config.out").read_text())
    assert list(found) == ["node1", "node2"]
    assert found["node2"] == {
        "HostName": "192.168.76.102",
        "User": "lab",
        "Port": "22",
        "UserKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "no",
        "PasswordAuthentication": "no",
        "IdentityFile": '"/var/tmp/overlay lab/ssh/id_ed25519"',
        "IdentitiesOnly": "yes",
        "LogLevel": "FATAL",
    }


async def test_nodes_come_from_vagrant_and_the_cluster_file(fake) -> None:
    lab = fake(f"cat '{FIXTURES}/ssh-config.out'")
    nodes = await lab.nodes({"node1": ("192.168.77.11/24", "a"), "node2": ("192.168.77.12/24", "b")})
    assert nodes[1] == InventoryNode(
        name="node2",
        ssh_host="192.168.76.102",
        ssh_port=22,
        ssh_user="lab",
        ssh_key=Path("/var/tmp/overlay lab/ssh/id_ed25519"),
        host_key=None,  # Vagrant does not know it
        underlay_interface="eth1",
        underlay_address=IPv4Interface("192.168.77.12/24"),
        zone="b",
    )
    assert nodes[0].ssh_host == "192.168.76.106"
    assert nodes[0].ssh_key == Path("/var/tmp/overlaylab-lab/ssh/id_ed25519")


async def test_vagrant_keeps_all_it_writes_in_the_cache(fake, own_cache) -> None:
    lab = fake('env; echo; echo "$*"; pwd; cat')
    text = await lab("up", "--no-destroy-on-error")
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert said["VAGRANT_CWD"] == str(paths.ROOT / "vagrant")
    assert said["VAGRANT_DOTFILE_PATH"] == f"{own_cache}/clusters/pair/vagrant"
    assert said["VAGRANT_HOME"] == f"{own_cache}/vagrant.d"
    assert (said["CLUSTER"], said["OVERLAYLAB_BOX"]) == ("pair", "overlaylab/debian-0123")
    assert (said["OVERLAYLAB_ACCELERATOR"], said["OVERLAYLAB_SSH_KEY"]) == ("tcg", "/keys/lab")
    assert (said["OVERLAYLAB_POOL"], said["OVERLAYLAB_POOL_PATH"]) == ("overlaylab-test", f"{own_cache}/pool")
    assert said["VAGRANT_DEFAULT_PROVIDER"] == "libvirt"
    assert "up --no-destroy-on-error" in text
    log = (own_cache / "clusters" / "pair" / "vagrant.log").read_text()
    assert log.startswith("$ vagrant up --no-destroy-on-error\n")


async def test_an_error_says_the_last_lines_and_where_the_rest_is(fake, own_cache) -> None:
    lab = fake("for n in 1 2 3 4 5 6 7 8; do echo line $n; done; echo; echo no space left >&2; exit 3")
    with pytest.raises(UserError) as wrong:
        await lab("up")
    assert wrong.value.where == "vagrant up"
    assert wrong.value.rule == "ended with 3: line 4 / line 5 / line 6 / line 7 / line 8 / no space left"
    assert f"{own_cache}/clusters/pair/vagrant.log" in wrong.value.fix
    assert "line 1\n" in (own_cache / "clusters" / "pair" / "vagrant.log").read_text()


async def test_an_error_says_its_message_rather_than_lines_of_vagrants_source(fake) -> None:
    lab = fake(f"cat '{FIXTURES}/up-unexpected.out'; exit 1")
    with pytest.raises(UserError) as wrong:
        await lab("up")
    failed = (
        "An unexpected error occurred when executing the action on the / '{}' machine. Please report this as a bug: / "
        "Call to virDomainCreateWithFlags failed: internal error: Process exited prior to exec: libvirt:  error : "
        "Unable to move /dev/kvm mount to /run/libvirt/qemu/{}-overlaylab-pair-node.kvm: No such file or directory"
    )
    assert wrong.value.rule == f"ended with 1: {failed.format('node1', 2)} / {failed.format('node2', 1)}"


async def test_interrupting_lets_vagrant_clean_up(fake, tmp_path) -> None:
    lab = fake(
        f"trap 'echo cleaned >{tmp_path}/cleaned; exit 1' INT; touch {tmp_path}/begun; while :; do sleep 0.05; done"
    )
    call = asyncio.create_task(lab("up"))
    for _ in range(6000):  # a busy machine may take seconds to begin
        if (tmp_path / "begun").exists():
            break
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"


async def test_interrupting_while_it_is_being_started_lets_it_clean_up_too(
    fake, tmp_path, monkeypatch
) -> None:
    begun, cleaned = tmp_path / "begun", tmp_path / "cleaned"
    lab = fake(f"trap 'echo cleaned >{cleaned}; exit 1' INT; touch {begun}; while :; do sleep 0.05; done")
    start, late = asyncio.create_subprocess_exec, asyncio.Event()

    async def start_late(*argv: str, **options: object) -> asyncio.subprocess.Process:
        """On a busy machine the program runs before its caller hears of it."""
        process = await start(*argv, **options)
        for _ in range(6000):
            if begun.exists():
                break
            await asyncio.sleep(0.01)
        late.set()
        await asyncio.sleep(0.1)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_late)
    call = asyncio.create_task(lab("up"))
    await late.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert cleaned.read_text() == "cleaned\n"


async def test_a_box_is_added_once(fake, own_cache, tmp_path) -> None:
    lab = fake("exit 1")
    boxes.write_box({"metadata.json": b"{}", "box.img": b"disk"}, tmp_path / "overlaylab.box")
    assert await lab.add_box(tmp_path / "overlaylab.box")
    added = own_cache / "vagrant.d" / "boxes" / "overlaylab-VAGRANTSLASH-debian-0123" / "0" / "libvirt"
    assert added == vagrant.box_folder("overlaylab/debian-0123", "libvirt")
    assert (added / "box.img").read_bytes() == b"disk"
    assert not await lab.add_box(tmp_path / "overlaylab.box")


def test_a_boxs_volume_is_called_as_vagrant_libvirt_calls_it(own_cache) -> None:
    """As its 0.11.2 named the one that it had made."""
    added = vagrant.box_folder("overlaylab/debian-1a5d704b5f28", "libvirt")
    added.mkdir(parents=True)
    (added / "box.img").touch()
    os.utime(added / "box.img", (1795599514.9, 1795599514.9))
    assert (
        vagrant.box_volume(added)
        == "overlaylab-VAGRANTSLASH-debian-1a5d704b5f28_vagrant_box_image_0_1795599514_box.img"
    )


def test_older_boxes_go_with_the_names_of_their_volumes(fake, own_cache) -> None:
    lab = fake("")
    boxes = own_cache / "vagrant.d" / "boxes"
    for name in (
        "overlaylab-VAGRANTSLASH-debian-0123",
        "overlaylab-VAGRANTSLASH-debian-4567",
        "somebody-else",
    ):
        (boxes / name / "0").mkdir(parents=True)
    assert lab.remove_other_boxes() == ["overlaylab-VAGRANTSLASH-debian-4567_vagrant_box_image"]
    assert sorted(path.name for path in boxes.iterdir()) == [
        "overlaylab-VAGRANTSLASH-debian-0123",
        "somebody-else",
    ]


def test_each_cache_folder_has_a_pool_of_its_own(monkeypatch) -> None:
    for folder, name in (("/var/tmp/overlaylab-jane", "overlaylab-jane"), ("/srv/cache", "overlaylab-cache")):
        monkeypatch.setenv("OVERLAYLAB_CACHE", folder)
        assert vagrant.pool() == name


@pytest.mark.parametrize(
    ("text", "found"), [('{"key": 1}', {"key": 1}), ("{", {}), ("", {}), ("[]", {}), ("null", {})]
)
def test_a_damaged_state_is_no_state(tmp_path, text, found) -> None:
    (tmp_path / "state.json").write_text(text)
    assert vagrant.read_json(tmp_path / "state.json") == found
    assert vagrant.read_json(tmp_path / "absent.json") == {}
