"""The swarm that Docker's overlay network is made of: what its first node makes, how the others join, what is waited for."""

import subprocess
from pathlib import Path

import pytest
from lab_scripts import script

from overlaylab.core.paths import ROLES

SWARM = ROLES / "overlay_docker_overlay" / "files"


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"ENCRYPTED": "false", "MTU": ""}, {}),
        ({"ENCRYPTED": "true", "MTU": ""}, {"encrypted": ""}),
        ({"ENCRYPTED": "false", "MTU": "9001"}, {"com.docker.network.driver.mtu": "9001"}),
    ],
)
def test_the_network_is_made_as_asked_for(engine, settings, options):
    made = script(SWARM / "overlay-start").network(settings)
    assert made == {
        "Name": "overlaylab",
        "Driver": "overlay",
        "Attachable": True,
        "CheckDuplicate": True,
        "Options": options,
    }


def test_swarm_listens_on_the_underlay_only(engine):
    said = script(SWARM / "overlay-start").addresses({"ADDRESS": "192.168.77.12"})
    assert said == {
        "ListenAddr": "192.168.77.12:2377",
        "AdvertiseAddr": "192.168.77.12",
        "DataPathAddr": "192.168.77.12",
    }


def test_the_join_token_is_read_once_and_by_nobody_else(engine, tmp_path, monkeypatch):
    start = script(SWARM / "overlay-start")
    monkeypatch.setattr(start, "TOKEN", str(tmp_path / "token"))
    (tmp_path / "token").write_text("left by an earlier start")
    start.keep(start.TOKEN, "SWMTKN-1-x")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert [start.take_token(), start.take_token()] == ["SWMTKN-1-x", ""]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def swarm(engine, tmp_path, monkeypatch):
    """overlay-start with a Docker that notes what it is asked, and does as it is told."""
    start = script(SWARM / "overlay-start")
    asked = []
    monkeypatch.setattr(start, "TOKEN", str(tmp_path / "token"))
    monkeypatch.setattr(start, "JOINED", str(tmp_path / "joined"))
    monkeypatch.setattr(engine, "endpoint_runs", lambda: True)
    monkeypatch.setattr(engine, "start", lambda options: asked.append("start"))
    monkeypatch.setattr(engine, "call", lambda method, path, body=None: asked.append((path, body)))
    start.asked = asked
    return start


WORKER = {"ADDRESS": "192.168.77.12", "MANAGER": "192.168.77.11"}


def test_a_node_joins_with_the_token_that_it_was_handed(swarm):
    swarm.keep(swarm.TOKEN, "SWMTKN-1-x")
    assert not swarm.attach(WORKER)
    assert swarm.asked == [
        (
            "/swarm/join",
            swarm.addresses(WORKER) | {"RemoteAddrs": ["192.168.77.11:2377"], "JoinToken": "SWMTKN-1-x"},
        )
    ]
    # Handed out again, as another node joined: this one is in that swarm.
    swarm.keep(swarm.TOKEN, "SWMTKN-1-x")
    swarm.attach(WORKER)
    assert len(swarm.asked) == 1
    assert "SWMTKN" not in Path(swarm.JOINED).read_text()


def test_a_node_leaves_a_swarm_whose_manager_made_another(swarm):
    swarm.keep(swarm.JOINED, swarm.digest("SWMTKN-1-old"))
    swarm.keep(swarm.TOKEN, "SWMTKN-1-new")
    swarm.attach(WORKER)
    assert [item if item == "start" else item[0] for item in swarm.asked] == ["start", "/swarm/join"]


def test_a_swarm_that_cannot_be_joined_names_manager_and_port(swarm, engine, monkeypatch, capsys):
    def refuse(*asked):
        raise engine.Refused("Timeout was reached before node joined.")

    monkeypatch.setattr(engine, "call", refuse)
    monkeypatch.setattr(swarm, "joined_late", lambda: False)
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: None)
    swarm.keep(swarm.TOKEN, "SWMTKN-1-x")
    with pytest.raises(SystemExit):
        swarm.attach(WORKER)
    said = capsys.readouterr().err
    assert "the swarm's manager at 192.168.77.11:2377 cannot be joined" in said
    assert "2377/tcp blocked: Timeout was reached before node joined." in said
    assert "SWMTKN" not in said


def test_a_slow_node_joins_behind_the_scenes(swarm, engine, monkeypatch):
    states = iter(["pending", "active"])

    def answer(method, path, body=None):
        if path == "/swarm/join":
            raise engine.Refused("Timeout was reached before node joined. The attempt will continue.")
        return {"Swarm": {"LocalNodeState": next(states)}}

    monkeypatch.setattr(engine, "call", answer)
    monkeypatch.setattr(swarm.time, "sleep", lambda seconds: None)
    swarm.keep(swarm.TOKEN, "SWMTKN-1-x")
    swarm.attach(WORKER)
    assert Path(swarm.JOINED).read_text() == swarm.digest("SWMTKN-1-x")
    assert list(states) == []


def test_the_first_node_makes_swarm_network_and_service_and_keeps_the_token(swarm, engine, monkeypatch):
    def answer(method, path, body=None):
        swarm.asked.append(f"{method} {path}")
        return {"JoinTokens": {"Worker": "SWMTKN-1-x"}}

    monkeypatch.setattr(engine, "endpoint_runs", lambda: False)
    monkeypatch.setattr(engine, "call", answer)
    wanted = {"ADDRESS": "192.168.77.11", "MANAGER": "192.168.77.11", "RANGE": "10.0.0.0/23", "MTU": ""}
    assert swarm.prepare(wanted | {"ENCRYPTED": "false"})
    assert swarm.asked == [
        "start",
        "POST /swarm/init",
        "DELETE /networks/ingress",
        "POST /networks/create",
        "POST /services/create",
        "GET /swarm",
    ]
    assert Path(swarm.TOKEN).read_text() == "SWMTKN-1-x"


def test_the_swarm_takes_its_networks_out_of_the_range(swarm):
    made = swarm.swarm({"ADDRESS": "192.168.77.11", "RANGE": "10.200.0.0/16"})
    assert (made["DefaultAddrPool"], made["SubnetSize"]) == (["10.200.0.0/16"], 24)
    assert made["ListenAddr"] == "192.168.77.11:2377"


def test_every_node_gets_one_container_on_the_network_and_no_second(swarm):
    made = swarm.service()
    assert (made["Name"], made["Mode"]) == ("endpoint", {"Global": {}})
    task = made["TaskTemplate"]
    assert task["ContainerSpec"]["Image"] == "overlaylab/endpoint:1"
    assert (task["RestartPolicy"], task["Networks"]) == ({"Condition": "none"}, [{"Target": "overlaylab"}])


@pytest.fixture
def waiting(swarm, engine, monkeypatch):
    """Waits for a container of a Docker that lists what it is given, one list after the other."""
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr(swarm.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(swarm.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(subprocess, "run", lambda *command, **options: None)
    answers = {}

    def answer(method, path, body=None):
        found = answers[path.partition("?")[0]]
        if isinstance(found, Exception):
            raise found
        return found.pop(0) if path.startswith("/containers/json") else found

    monkeypatch.setattr(engine, "call", answer)
    return answers


def test_the_container_of_this_node_is_noted_when_it_runs(swarm, engine, waiting):
    about = {
        "Id": "78a9",
        "State": {"Pid": 812},
        "NetworkSettings": {"Networks": {"overlaylab": {"IPAddress": "10.0.1.4"}}},
    }
    waiting.update({"/containers/json": [[], [{"Id": "78a9"}]], "/containers/78a9/json": about})
    assert swarm.wait_for_container() == about
    assert engine.read_container() == {"id": "78a9", "pid": 812, "address": "10.0.1.4"}


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (
            [
                {"Status": {"State": "running"}},
                {"Status": {"State": "rejected", "Err": "subnet sandbox join failed"}},
            ],
            "they are: rejected subnet sandbox join failed, running",
        ),
        ([], "they are: none"),
    ],
)
def test_a_container_that_does_not_come_is_told_with_the_managers_reason(swarm, waiting, capsys, tasks, said):
    waiting.update({"/containers/json": [[]] * 9, "/tasks": tasks})
    with pytest.raises(SystemExit):
        swarm.wait_for_container()
    printed = capsys.readouterr().err
    assert "no container of the swarm's service endpoint runs on this node after 240 s" in printed
    assert said in printed


def test_a_worker_leads_to_the_manager(swarm, engine, waiting, capsys):
    refused = engine.Refused("This node is not a swarm manager.")
    waiting.update({"/containers/json": [[]] * 9, "/tasks": refused})
    with pytest.raises(SystemExit):
        swarm.wait_for_container()
    assert "the first node's Docker says why (`docker service ps endpoint`)" in capsys.readouterr().err
