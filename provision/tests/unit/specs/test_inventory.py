"""Inventories. Wrong ones: test_documents_golden.py."""

import getpass
import json
import os
import subprocess
from ipaddress import IPv4Interface
from pathlib import Path

import pytest
from lab_commands import refused

from overlaylab.core.errors import UserError
from overlaylab.nodes.ansible import run_playbook
from overlaylab.shaping.node_state import state_script
from overlaylab.specs.inventory import EXTERNAL, Inventory, InventoryNode, load_inventory, write_inventory

RIGHT = Path(__file__).parents[2] / "golden" / "right" / "inventory.yml"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEe0yGrOBoRwLkBL1MKMdJbsmjFcFsN0PRSF3iZwdjU1"


def node(number: int, **more) -> InventoryNode:
    values = {
        "name": f"node{number}",
        "ssh_host": "127.0.0.1",
        "ssh_port": 2200 + number,
        "ssh_user": "vagrant",
        "ssh_key": None,
        "host_key": None,
        "underlay_interface": "eth1",
        "underlay_address": IPv4Interface(f"192.168.77.1{number}/24"),
        "zone": "a",
    }
    return InventoryNode(**{**values, **more})


def test_what_is_written_reads_the_same(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.touch()
    nodes = (node(2, zone="b"), node(1, ssh_key=key, host_key=HOST_KEY))
    inventory = Inventory("pair", "libvirt", nodes)
    path = tmp_path / "new" / "inventory.yml"
    write_inventory(path, inventory)
    assert load_inventory(path) == inventory
    assert inventory.zones == ("a", "b")
    assert [p.name for p in path.parent.iterdir()] == ["inventory.yml"]


@pytest.mark.parametrize(("provider", "as_root"), [("libvirt", True), (EXTERNAL, False)])
def test_on_nodes_of_the_lab_ansible_starts_python_as_root(
    tmp_path: Path, provider: str, as_root: bool
) -> None:
    write_inventory(tmp_path / "inventory.yml", Inventory("pair", provider, (node(1), node(2))))
    text = (tmp_path / "inventory.yml").read_text()
    assert ("ansible_python_interpreter: sudo -n /opt/overlaylab/bin/python3" in text) is as_root
    assert ("ansible_become: false" in text) is as_root


def test_hosts_of_somebody_else() -> None:
    inventory = load_inventory(RIGHT)
    assert (inventory.name, inventory.provider) == ("inventory", EXTERNAL)
    alpha, beta = inventory.nodes
    assert (alpha.ssh_host, alpha.ssh_port, alpha.ssh_user) == ("alpha.example.net", 22, "engineer")
    assert (beta.underlay_interface, beta.zone) == ("eth1", "a")
    assert beta.underlay_address == IPv4Interface("10.5.0.12/24")


def test_a_hosts_own_value_wins_and_the_user_is_ansibles_default(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    text = RIGHT.read_text().replace("    ansible_user: engineer\n", "")
    path.write_text(text.replace("ansible_host: beta", "zone: b\n      ansible_host: beta"))
    inventory = load_inventory(path)
    assert [n.zone for n in inventory.nodes] == ["a", "b"]
    assert {n.ssh_user for n in inventory.nodes} == {getpass.getuser()}


@pytest.mark.parametrize("name", ["my hosts", "..", "x" * 64, "hosts;id"])
def test_a_file_whose_name_is_none_for_a_cluster(tmp_path: Path, name: str) -> None:
    """The name becomes a folder of the cache."""
    path = tmp_path / f"{name}.yml"
    path.write_text(RIGHT.read_text())
    with pytest.raises(UserError, match=r"overlaylab_cluster: is missing"):
        load_inventory(path)
    path.write_text(RIGHT.read_text().replace("zone: a", "zone: a\n    overlaylab_cluster: mine-1.x"))
    assert load_inventory(path).name == "mine-1.x"


@pytest.mark.parametrize("name", ["eth1", "enp0s31f6", "eth0.100", "bond0", "br-lan", "wlp2s0_1"])
def test_names_of_interfaces(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hosts.yml"
    path.write_text(RIGHT.read_text().replace("eth1", name))
    assert load_inventory(path).nodes[0].underlay_interface == name


def test_a_script_for_a_node_does_not_run_the_name_of_an_interface(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    script = state_script(f"$(touch {trace})")
    subprocess.run(["sh", "-c", script], capture_output=True, check=False)
    assert not trace.exists()


def test_ssh_over_the_underlay_is_noticed() -> None:
    assert node(1, ssh_host="192.168.77.11").management_on_underlay
    assert not node(1).management_on_underlay


@pytest.mark.skipif("OVERLAYLAB_TOOLS" not in os.environ, reason="needs the pinned toolchain")
@pytest.mark.parametrize("of", ["a template", "an option of ssh"])
def test_what_would_be_evaluated_leaves_no_trace(tmp_path: Path, own_cache: Path, of: str) -> None:
    """The same file given to Ansible, or the same name to ssh, leaves one: the trace would be there."""
    trace, path = tmp_path / "trace", tmp_path / "hosts.yml"
    if of == "a template":
        value = f"{{{{ lookup('pipe', 'touch {trace}') }}}}"
        argv = ["ansible", "-i", str(path), "alpha", "-c", "local", "-m", "debug", "-a", "var=ansible_host"]
    else:
        value = f"-oProxyCommand=touch${{IFS}}{trace}"
        argv = ["ssh", value, "alpha"]
    path.write_text(RIGHT.read_text().replace("alpha.example.net", json.dumps(value)))
    subprocess.run(argv, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert trace.exists()
    trace.unlink()
    tasks: dict[tuple[str, ...], dict[str, str]] = {
        ("measure", "host", "--dry-run"): {}, ("measure", "host"): {}, ("mtu",): {}, ("policy", "calico"): {},
        ("profile", "apply"): {"PROFILE": "azure-a1"}, ("profile", "clear"): {},
    }  # fmt: skip
    for task, more in tasks.items():
        wrong = refused(*task, INVENTORY=str(path), LAB_DB=str(tmp_path / "lab.sqlite"), **more)
        assert wrong.where.endswith("alpha.ansible_host"), task
    with pytest.raises(UserError, match=r"alpha\.ansible_host"):
        run_playbook(path, "host", "converge")
    assert not trace.exists()
