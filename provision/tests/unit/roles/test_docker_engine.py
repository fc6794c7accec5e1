"""Docker on a node: asking it, what a reset takes away of it, and asking a container behind DNAT."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from lab_builders import Namespace, namespace
from lab_scripts import script

from overlaylab.core.paths import ROLES
from overlaylab.run.evidence import received
from overlaylab.specs import overlays
from overlaylab.tools import base as tools

FIXTURES = Path(__file__).parents[2] / "fixtures" / "docker"
BRIDGE = ROLES / "overlay_bridge" / "files"
SWARM = ROLES / "overlay_docker_overlay" / "files"


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


def test_the_image_holds_a_program_and_its_libraries(engine, tmp_path, monkeypatch):
    kit = tmp_path / "kit"
    for folder in ("lib", "libexec"):
        (kit / folder).mkdir(parents=True)
    shutil.copy(Path("/lib64/ld-linux-x86-64.so.2").resolve(), kit / "lib/ld-linux-x86-64.so.2")
    (kit / "lib/ld-linux-x86-64.so.2").chmod(0o755)
    shutil.copy(Path("/lib/x86_64-linux-gnu/libc.so.6").resolve(), kit / "lib/libc.so.6")
    shutil.copy(Path("/bin/sleep").resolve(), kit / "libexec/sleep")
    monkeypatch.setattr(engine, "KIT", str(kit))
    (tmp_path / "image.tar").write_bytes(engine.image())
    listed = subprocess.run(
        ["tar", "-tvf", tmp_path / "image.tar"], capture_output=True, text=True, check=True
    )
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert sorted(names) == ["bin/sleep", "lib/x86_64-linux-gnu/libc.so.6", "lib64/ld-linux-x86-64.so.2"]
    # Links would point out of the image.
    assert {line[0] for line in listed.stdout.splitlines()} == {"-"}


# -- taking it away ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "address", "ours"),
    [
        ("bridge", "172.17.0.2", {"filter": 6, "nat": 8}),
        ("vxlan", "10.0.1.2", {"filter": 10, "nat": 4}),
        ("vxlan-encrypted", "10.0.1.2", {"filter": 12, "nat": 4, "mangle": 1}),
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


def test_ipsec_policies_are_known_by_dockers_mark(traces):
    text = (FIXTURES / "xfrm-policy.txt").read_text()
    foreign = text.replace("0xd0c4e3", "0x20000")
    peers = traces.policy_selectors(foreign + text)
    assert peers == [
        ["src", "192.168.93.11/32", "dst", "192.168.93.12/32", "proto", "udp", "dport", "4789", "dir", "out",
         "mark", "0xd0c4e3", "mask", "0xffffffff"]
    ]  # fmt: skip
    assert traces.policy_selectors(foreign) == []


# -- asking a container -----------------------------------------------------------------------------


@pytest.fixture
def node():
    yield from namespace()


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
    assert [received(line) for line in printed.splitlines()] == [0, 0, 0, 3, 0, 0, 0, 0, 0]


# -- what the roles say -----------------------------------------------------------------------------


def published() -> list[str]:
    """The ports of all tools, and the one that answers probes."""
    ports = {port for tool in tools.names() for port in tools.ports(tools.load(tool))}
    return sorted(ports | {"5199/udp"}, key=lambda port: (int(port.split("/")[0]), port))


@pytest.mark.parametrize("file", ["meta/overlay.yml", "meta/argument_specs.yml", "defaults/main.yml"])
def test_the_ports_that_tools_use_by_default_are_published(golden, file):
    path = ROLES / "overlay_bridge" / file
    text = path.read_text()
    (found,) = re.findall(r'\n  - 5001/tcp\n(?:  - .*\n)+|"5001/tcp,[^"]*"', text)
    if found.startswith('"'):
        first, last = (",".join(ports) for ports in (published()[:8], published()[8:]))
        indent = re.findall(r"\n( *)", found)[0]
        said = f'"{first},\\\n{indent}{last}"'
    else:
        said = "\n" + "".join(f"  - {port}\n" for port in published())
    golden(path, text.replace(found, said))


def test_the_role_publishes_what_its_overlay_says():
    defaults = yaml.safe_load((ROLES / "overlay_bridge" / "defaults" / "main.yml").read_text())
    assert list(overlays.load("bridge").ports) == defaults["overlay_bridge_ports"].split(",") == published()
