"""Docker on a node: asking it, what a reset takes away of it, and asking a container behind DNAT."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from lab_builders import Namespace
from lab_scripts import script

from overlaylab import overlays
from overlaylab.benchmarks import base as benchmarks
from overlaylab.evidence import _received
from overlaylab.paths import ROLES

FIXTURES = Path(__file__).parents[1] / "fixtures" / "docker"
BRIDGE = ROLES / "overlay_bridge" / "files"
SWARM = ROLES / "overlay_docker_overlay" / "files"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    module = script(BRIDGE / "docker_engine.py")
    monkeypatch.setitem(sys.modules, "docker_engine", module)
    for name in ("SETTINGS", "CONTAINER"):
        monkeypatch.setattr(module, name, str(tmp_path / name.lower()))
    return module


@pytest.fixture
def traces(engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "traces", script(ROLES / "overlay_common" / "files" / "traces.py"))
    return script(BRIDGE / "docker_traces.py")


# -- asking Docker ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ('HTTP/1.0 200 OK\r\nServer: Docker/20.10.24\r\n\r\n{"Id":"a"}\n', {"Id": "a"}),
        ("HTTP/1.0 200 OK\r\n\r\n", None),
        ("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nOK", "OK"),
        ("HTTP/1.0 204 No Content\r\n\r\n", None),
        (
            'HTTP/1.0 200 OK\r\n\r\n{"status":"one"}\r\n{"status":"sha256:6611"}\r\n',
            {"status": "sha256:6611"},
        ),
    ],
)
def test_answers(engine, answer, value):
    assert engine.read_answer(answer.encode()) == value


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            'HTTP/1.0 404 Not Found\r\n\r\n{"message":"network overlaylab not found"}\n',
            "network overlaylab not found",
        ),
        ("HTTP/1.0 500 Internal Server Error\r\n\r\noh no", "oh no"),
        ("HTTP/1.0 503 Service Unavailable\r\n\r\n", "HTTP status 503"),
    ],
)
def test_what_docker_refuses_is_told_in_its_words(engine, answer, message):
    with pytest.raises(engine.Refused) as caught:
        engine.read_answer(answer.encode())
    assert str(caught.value) == message


def test_a_daemon_that_ends_while_it_answers_is_silent(engine):
    with pytest.raises(engine.Silent, match="dockerd ended the connection after 0 bytes"):
        engine.read_answer(b"")


def test_a_daemon_that_is_not_there_is_silent(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "SOCKET", str(tmp_path / "none.sock"))
    with pytest.raises(engine.Silent, match=r"does not answer on .*No such file"):
        engine.call("GET", "/_ping")


def test_settings_are_those_that_shells_read(engine):
    Path(engine.SETTINGS).write_text('# For sh.\nADDRESS="192.168.77.11"\nPEERS="a b"\nMTU=""\n')
    assert engine.settings() == {"ADDRESS": "192.168.77.11", "PEERS": "a b", "MTU": ""}


def test_a_container_is_known_by_its_control_group_and_not_by_a_number_alone(engine):
    groups = Path("/proc/self/cgroup").read_text().strip()
    own = groups.splitlines()[-1].split(":", 2)[2]
    assert engine.runs({"id": own, "pid": os.getpid()})
    assert not engine.runs({"id": "5f0c" * 16, "pid": os.getpid()})
    assert not engine.runs({"id": own, "pid": 2**22 + 1})
    assert not engine.runs(None)


def test_the_image_holds_a_program_and_its_libraries(engine, tmp_path):
    (tmp_path / "image.tar").write_bytes(engine.image())
    listed = subprocess.run(
        ["tar", "-tvf", tmp_path / "image.tar"], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert "bin/sleep" in names
    assert any("libc.so" in name for name in names)
    # Links would point out of the image.
    assert {line[0] for line in listed.stdout.splitlines()} == {"-"}


# -- taking it away ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "address", "ours"),
    [
        ("bridge", "172.17.0.2", {"filter": 6, "nat": 8}),
        ("vxlan", "10.0.1.2", {"filter": 10, "nat": 4}),
    ],
)
def test_all_rules_of_docker_and_none_of_others_are_deleted(traces, name, address, ours):
    recorded = (FIXTURES / f"iptables-{name}.txt").read_text().splitlines()
    foreign = [
        "-A INPUT -p udp -m udp --dport 4789 -j DROP",
        "-A FORWARD -i docker1 -j ACCEPT",
        "-A FORWARD -i br-docker0 -j ACCEPT",
        "-A FORWARD -s 172.17.0.2/32 -j DROP",
    ]
    where = recorded.index("*filter") + 1
    batch = traces.traces.removal(
        recorded[:where] + foreign + recorded[where:], traces.own_rule(address), "DOCKER"
    )
    deleted = [line for line in batch if line.startswith("-D")]
    kept = [line for line in recorded if line.startswith("-A ") and not line.startswith("-A DOCKER")]
    assert ["-A" + line[2:] for line in deleted] == kept
    counted, table = {}, ""
    for line in batch:
        table = line[1:] if line.startswith("*") else table
        if line.startswith("-D"):
            counted[table] = counted.get(table, 0) + 1
    assert counted == ours
    chains = {line[1:].split()[0] for line in recorded if line.startswith(":DOCKER")}
    assert {line[3:] for line in batch if line.startswith("-X")} == chains


# -- asking a container -----------------------------------------------------------------------------


@pytest.fixture
def node():
    if os.geteuid() != 0:
        pytest.skip("makes a network namespace, which takes root")
    missing = [name for name in ("unshare", "nsenter", "ip") if not shutil.which(name)]
    if missing:
        pytest.skip(f"takes {', '.join(missing)}")
    namespace = Namespace()
    yield namespace
    namespace.close()


PROBE = f"{sys.executable} -ES {BRIDGE / 'overlay-probe'}"


def test_a_probe_is_answered_at_the_mtu_and_refused_above_it(node: Namespace):
    printed = node.sh(f"""
ip link set lo up
ip link set lo mtu 1500
{PROBE} -n -q -c 1 -W 1 127.0.0.1 || echo "exit $?"
{PROBE} --serve & server=$!
until grep -q ':144F ' /proc/net/udp; do sleep 0.05; done
{PROBE} -n -q -c 3 -i 0.01 -W 2 -M do -s 1472 -p 6f7665726c61796c61622d70726f6f66 127.0.0.1
{PROBE} -n -q -c 1 -W 2 -M do -s 1473 127.0.0.1 || echo "exit $?"
{PROBE} -n -q -c 1 -W 0.2 -s 1473 127.0.0.1 || echo "exit $?"
kill $server
""")
    assert printed.splitlines() == [
        "Connection refused",
        "1 packets transmitted, 0 received",
        "exit 1",
        "3 packets transmitted, 3 received",
        "message too long: 1501 bytes",
        "1 packets transmitted, 0 received",
        "exit 1",
        "1 packets transmitted, 0 received",  # it got there in two pieces; the echo is not cut
        "exit 1",
    ]
    assert [_received(line) for line in printed.splitlines()] == [0, 0, 0, 3, 0, 0, 0, 0, 0]


# -- what the roles say -----------------------------------------------------------------------------


def test_the_ports_that_benchmarks_use_by_default_are_published():
    defaults = (ROLES / "overlay_bridge" / "defaults" / "main.yml").read_text()
    published = next(line for line in defaults.splitlines() if line.startswith("overlay_bridge_ports: "))
    published = published.split(": ")[1].split(",")
    assert list(overlays.load("bridge").ports) == published
    wanted = {
        f"{schema['default']}/tcp"
        for tool in benchmarks.tools()
        for name, schema in benchmarks.load(tool).parameters["properties"].items()
        if name.endswith("port")
    }
    assert wanted | {"5199/udp", "5201/udp"} == set(published)


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
