"""The same measurement on plain SSH hosts: no call to what makes nodes, reset instead of revert, no trace left."""

from __future__ import annotations

import json
import re

import pytest

from overlaylab.nodes import netstate
from overlaylab.specs.inventory import Inventory, load_inventory, write_inventory


@pytest.mark.turn("nodes")
def test_weave_on_ssh_hosts(request, quickest, lab_in, tmp_path) -> None:
    """The lab's own nodes stand in: containers, which answer sooner than VMs, where this machine has them."""
    in_containers = quickest["PROVIDER"] == "lxc"
    nodes = request.getfixturevalue("containers" if in_containers else "nodes")
    nodes.clean()
    units = nodes.sh("systemctl list-units --all --no-legend 'overlaylab-*'")
    before = {n: netstate.normalise(json.loads(t)) for n, t in nodes.sh(netstate.COLLECT).items()}
    hosts = tmp_path / "hosts.yml"
    write_inventory(hosts, Inventory("hosts", "external", load_inventory(nodes.inventory).nodes))
    # As somebody else's: one without the kit, one with another.
    nodes.sh("[ $(hostname) = node1 ] && rm -rf /opt/overlaylab || echo another >/opt/overlaylab/kit.digest")
    # Whoever calls what makes nodes now fails.
    shadow = tmp_path / "bin"
    shadow.mkdir()
    for name in ("virsh", "vagrant", "qemu-system-x86_64", "lxc-info", "lxc-start", "lxc-attach"):
        (shadow / name).write_text(f"#!/bin/sh\necho {name} was called >&2\nexit 99\n")
        (shadow / name).chmod(0o755)
    # A tier without vCPUs: nobody takes those from containers of others.
    lab = lab_in(INVENTORY=str(hosts), MODES="sleeve", BLOCKS="1", PROFILE="digitalocean")
    lab.environment["PATH"] = f"{shadow}:{lab.environment['PATH']}"
    output = lab.run("lab:weave")
    assert "was called" not in output
    assert "node1, node2" in re.search(r"sending the node kit to (.*),", output).group(1)
    assert "the node kit goes to /opt/overlaylab" in output

    assert lab.query("SELECT provider, accelerator FROM run") == [
        ("hosts", "shared-kernel" if in_containers else "tcg")
    ]
    trials = lab.query("SELECT overlay, status, reason FROM trial ORDER BY trial_id")
    assert sorted(trials) == [("host", "ok", None)] * 2 + [("weave", "ok", None)] * 2
    after = {n: netstate.normalise(json.loads(t)) for n, t in nodes.sh(netstate.COLLECT).items()}
    assert {n: netstate.difference(before[n], after[n]) for n in before} == {"node1": [], "node2": []}
    assert nodes.sh("systemctl list-units --all --no-legend 'overlaylab-*'") == units
    assert re.findall(r"^node.*", lab.run("hosts:clean"), re.MULTILINE) == [
        "node1: /opt/overlaylab removed",
        "node2: /opt/overlaylab removed",
    ]
    assert set(nodes.sh("ls -a /opt").values()) == {".\n..\n"}
    nodes.clean()
