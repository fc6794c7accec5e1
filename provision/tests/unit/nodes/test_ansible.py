"""Calling Ansible: what becomes of its events, and what a user is told when a task fails."""

import json
import stat
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.nodes import ansible
from overlaylab.specs import overlays

INVENTORY = """
all:
  hosts:
    node1: {ansible_host: 10.0.0.1, underlay_address: 10.0.0.1/24, zone: a, underlay_interface: eth1}
    node2: {ansible_host: 10.0.0.2, underlay_address: 10.0.0.2/24, zone: a, underlay_interface: eth1}
  vars: {host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ}
"""
STATS = {"event": "stats", "hosts": {"node1": {"ok": 2, "changed": 1}, "node2": {"ok": 2, "changed": 0}}}


def result(node: str, status: str, message: str | None = None) -> dict:
    event = {
        "event": "result",
        "node": node,
        "task": "overlay_x : Start it",
        "status": status,
        "seconds": 1.5,
    }
    return event | {"changed": False} | ({"message": message} if message else {})


@pytest.fixture
def play(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch):
    """run_playbook with events in place of Ansible; `seen` holds the environment and variables of the call."""
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(INVENTORY)
    tools = tmp_path / "bin"
    tools.mkdir()
    seen: dict = {}

    def run(events: list, code: int = 0, **options):
        (tmp_path / "events").write_text(
            "".join(f"{e if isinstance(e, str) else json.dumps(e)}\n" for e in events)
        )
        (tools / "ansible-playbook").write_text(
            f"#!/bin/sh\nenv >{tmp_path}/env\n"
            f'for word; do case $word in @*) cat "${{word#@}}" >{tmp_path}/variables ;; esac; done\n'
            f'[ -z "$ANSIBLE_SSH_COMMON_ARGS" ] || cat "${{ANSIBLE_SSH_COMMON_ARGS##*UserKnownHostsFile=}}" >{tmp_path}/known\n'
            f"cat {tmp_path}/events; exit {code}\n"
        )
        (tools / "ansible-playbook").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
        try:
            return ansible.run_playbook(inventory, "host", "converge", {"some": 1}, **options)
        finally:
            seen["variables"] = json.loads((tmp_path / "variables").read_text())
            seen["known"] = (tmp_path / "known").read_text()
            seen["environment"] = (tmp_path / "env").read_text()

    run.seen = seen
    return run


def test_changes_are_counted_per_node(play):
    lines = []
    done = play(
        [
            {"event": "task", "task": "overlay_x : Start it"},
            "[WARNING]: some words",
            result("node1", "ok"),
            STATS,
        ],
        on_line=lines.append,
    )
    assert (done.ok, done.changed, done.failures) == ({"node1": 2, "node2": 2}, {"node1": 1, "node2": 0}, ())
    assert done.tasks == (("overlay_x : Start it", 1.5),)
    assert lines == ["overlay_x : Start it"]
    assert "[WARNING]: some words" in done.output


def test_variables_travel_in_a_file_and_the_password_as_a_path(play, own_cache):
    play([STATS])
    variables = play.seen["variables"]
    assert (variables["some"], variables["overlay"], variables["verb"]) == (1, "host", "converge")
    secret = Path(variables["overlay_secret_file"])
    assert secret == own_cache / "secrets" / "host-password"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_text().strip() not in json.dumps(variables) + play.seen["environment"]
    assert len(secret.read_text().strip()) == 48


def test_nodes_are_known_by_the_inventorys_keys(play):
    play([STATS])
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ"
    assert play.seen["known"] == f"10.0.0.1 {key}\n10.0.0.2 {key}\n"


def test_a_failed_task_is_told_once_for_all_its_nodes(play, own_cache):
    events = [
        result("node1", "failed", "port 1/udp is taken:\n stop it."),
        result("node2", "failed", "port 1/udp is taken:\n stop it."),
    ]
    with pytest.raises(UserError) as wrong:
        play([*events, STATS], code=2)
    log = own_cache / "logs" / "ansible-host-converge.log"
    assert str(wrong.value) == (
        'host converge: node1 and node2: "Start it" failed: port 1/udp is taken: stop it. '
        f"The whole output is in {log}."
    )
    assert json.loads(log.read_text().splitlines()[0])["node"] == "node1"


def test_an_unreachable_node_is_a_failure_though_ansible_ends_well(play):
    with pytest.raises(UserError, match='node2: "Start it" failed: no route to host'):
        play([result("node2", "unreachable", "no route to host"), STATS])


def test_ansibles_own_end_is_told(play):
    with pytest.raises(UserError, match=r"Ansible did not get to the end: ERROR! no such role"):
        play(["ERROR! no such role"], code=1)


def test_a_play_that_reached_no_node_is_no_success(play):
    with pytest.raises(UserError, match="did not get to the end"):
        play([{"event": "stats", "hosts": {}}])


def test_the_password_is_made_once(own_cache):
    first = ansible.password_file("x").read_text()
    assert ansible.password_file("x").read_text() == first
    assert ansible.password_file("y").read_text() != first


def test_every_argument_of_a_role_is_typed() -> None:
    for name in overlays.names():
        options = overlays.options(name)
        assert all("type" in option for option in options.values())


def test_every_verb_has_tasks_that_all_overlays_share() -> None:
    for verb in ("main", *ansible.VERBS[1:]):
        assert (overlays.role("common") / "tasks" / f"{verb}.yml").is_file()
