"""Shells on nodes: where they go, by which key, and what is said first."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from lab_builders import inventory, node
from lab_commands import lab, refused

from overlaylab.cli.commands import cluster
from overlaylab.drills import attempt

pytestmark = pytest.mark.usefixtures("machine")


def test_ssh_takes_one_host_key_and_one_identity(tmp_path) -> None:
    one = replace(node(1), ssh_key=Path("/keys/lab"), host_key="ssh-ed25519 AAAA")
    assert cluster.ssh_argv(one, tmp_path) == [
        *("ssh", "-p", "22", "-i", "/keys/lab", "-o", "IdentitiesOnly=yes"),
        *("-o", f"UserKnownHostsFile={tmp_path}/known_hosts", "-o", "StrictHostKeyChecking=yes"),
        "lab@192.168.121.11",
    ]
    assert (tmp_path / "known_hosts").read_text() == "192.168.121.11 ssh-ed25519 AAAA\n"
    assert "StrictHostKeyChecking=accept-new" in cluster.ssh_argv(replace(one, host_key=None), tmp_path)


def test_ssh_goes_to_nodes_that_exist(monkeypatch, tmp_path) -> None:
    found = SimpleNamespace(folder=tmp_path, inventory=inventory("a", "a"))
    monkeypatch.setattr(cluster, "provider_of", lambda *_: pytest.fail("nothing may be set up for it"))
    assert refused("cluster", "ssh", "node1").rule == "has no nodes yet"
    monkeypatch.setattr(cluster, "provider_of", lambda *_: found)
    monkeypatch.setattr(cluster, "has_nodes", lambda *_: True)
    assert refused("cluster", "ssh", "node1").rule == "has half made nodes"
    (tmp_path / "inventory.yml").touch()
    wrong = refused("cluster", "ssh", "node9")
    assert (wrong.seen, wrong.fix) == ("node9", "Known: node1, node2")
    called: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda file, argv: called.append([file, *argv]))
    lab("cluster", "ssh", "node2", "--", "ip", "-br", "link")
    # As it is typed after `./task lab:ssh --`: the options are the command's, not ours.
    lab("cluster", "ssh", "node2", "ip", "-br", "link")
    assert [argv[-4:] for argv in called] == [["lab@192.168.121.12", "ip", "-br", "link"]] * 2


def test_a_shell_says_where_the_drill_is_if_not_there(monkeypatch, tmp_path) -> None:
    """A second terminal without CLUSTER= led to another cluster's node1 without a word."""
    found = SimpleNamespace(folder=tmp_path, inventory=inventory("a", "a"))
    (tmp_path / "inventory.yml").touch()
    monkeypatch.setattr(cluster, "provider_of", lambda *_: found)
    monkeypatch.setattr(cluster, "has_nodes", lambda *_: True)
    monkeypatch.setattr(os, "execvp", lambda file, argv: None)
    said = {}
    for at_hand in ([], ["three-zones"], ["pair", "three-zones"]):
        monkeypatch.setattr(attempt, "clusters", lambda at_hand=at_hand: [*at_hand, "of-before-a-reboot"])
        monkeypatch.setattr(attempt, "read", lambda name: SimpleNamespace(lives=name != "of-before-a-reboot"))
        said[len(at_hand)] = lab("cluster", "ssh", "node1").stderr
    words = "this is node1 of cluster pair; a drill is at hand on CLUSTER=three-zones"
    assert (said[0], words in said[1], said[2]) == ("", True, "")


def test_a_forwarded_port_is_part_of_a_known_hosts_name(tmp_path) -> None:
    one = replace(
        inventory("a", "a").nodes[0], ssh_host="127.0.0.1", ssh_port=2222, host_key="ssh-ed25519 AAAA"
    )
    cluster.ssh_argv(one, tmp_path)
    assert (tmp_path / "known_hosts").read_text() == "[127.0.0.1]:2222 ssh-ed25519 AAAA\n"
