"""Servers of the tools: the script that starts them, and its words when it cannot."""

import asyncio
import math
import os
import shlex
import subprocess

import pytest
from lab_builders import inventory
from lab_fakes import Completed, FakeNodes, failed

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import PlannedTrial, Variant
from overlaylab.nodes import servers
from overlaylab.tools.base import Server

IPERF3 = {"iperf3": Server(("iperf3", "--server", "--port", "5201"), 5201)}
BOTH = IPERF3 | {"qperf": Server(("qperf", "--listen_port", "19765"), 19765)}
SOCKPERF = {"sockperf-19770-udp": Server(("sockperf", "server", "-p", "19770"), 19770, "udp")}

# Recorded on a node: /proc/net/tcp without a server, and the lines of the two servers in /proc/net/tcp6.
IDLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 10805 1 00000000d989e163 100 0 0 10 0
   1: 0F4CA8C0:1451 014CA8C0:E098 01 00000000:00000000 02:000AFB4B 00000000     0        0 12193 2 0000000045363f47 20 4 27 10 -1
"""
LISTENING = {
    19765: "   0: 00000000000000000000000000000000:4D35 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12279 1 00000000acdf957b 100 0 0 10 0\n",
    5201: "   1: 00000000000000000000000000000000:1451 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12266 1 000000006d74da36 100 0 0 10 0\n",
}

# In /proc/net/udp: a socket that is bound, and one that is connected, which takes from one peer alone.
BOUND = "  512: 00000000:4D3A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12301 2 00000000acdf957b 0\n"
CONNECTED = "  512: 0261000A:4D3A 0161000A:A2B4 01 00000000:00000000 00:00000000 00000000     0        0 12301 2 00000000acdf957b 0\n"

FAKES = {
    # `ip netns exec endpoint CMD` runs CMD; a server listens once it was started, unless it is mute.
    "ip": 'shift 3; exec "$@"',
    "cat": "exec /bin/cat idle listens-*",
    "ss": 'echo "LISTEN 0 5 *:5201 *:* users:((\\"nc\\",pid=7,fd=3))"',
    "systemd-run": 'echo "$*" >>started; [ -e mute ] || cp "line-${*##* }" "listens-${*##* }"',
    "systemctl": 'echo "systemctl $*" >>started; rm -f listens-*',
    "sleep": "exit 0",
}


class Machine:
    """A node on which the script is run by sh, with the commands above in its path."""

    name = "node2"

    def __init__(self, folder) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        for name, body in FAKES.items():
            path = folder / "bin" / name
            path.write_text(f"#!/bin/sh\n{body}\n")
            path.chmod(0o755)
        (folder / "idle").write_text(IDLE)
        for port, line in LISTENING.items():
            (folder / f"line-{port}").write_text(line)

    async def sh(self, script: str, *, check: bool = True, timeout: float = 60) -> Completed:
        path = self.path
        argv = ["sh", "-c", script]
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=self.folder, env={"PATH": path}, capture_output=True, text=True
        )
        if check and done.returncode:
            raise NodeError(f"ended with {done.returncode}: {done.stderr}")
        return Completed(done.returncode, done.stdout, done.stderr, 0.1)

    @property
    def path(self) -> str:
        return f"{self.folder / 'bin'}:/usr/bin:/bin"

    def started(self) -> list[str]:
        """Without the PATH, which each is to have."""
        lines = (self.folder / "started").read_text().splitlines()
        made = [line for line in lines if "--unit=" in line]
        assert all(f" --setenv=PATH={self.path} " in line for line in made)
        return [line.replace(f" --setenv=PATH={self.path}", "") for line in lines]


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    for name, folder in (("TRANSIENT", "transient"), ("SESSIONS", "sessions")):
        here = str(tmp_path / folder)
        monkeypatch.setattr(servers, "STOP", servers.STOP.replace(getattr(servers, name), here))
        monkeypatch.setattr(servers, name, here)
    monkeypatch.setattr(servers, "SYSTEMD", str(tmp_path / "systemd"))
    (tmp_path / "systemd").mkdir()
    (tmp_path / "started").touch()
    return Machine(tmp_path)


async def test_servers_start_as_units_that_end_by_themselves(machine: Machine) -> None:
    await servers.start(machine, BOTH)
    assert machine.started() == [
        "--quiet --collect --unit=overlaylab-server-iperf3 -p RuntimeMaxSec=3600 -p Restart=on-abort"
        " ip netns exec endpoint iperf3 --server --port 5201",
        "--quiet --collect --unit=overlaylab-server-qperf -p RuntimeMaxSec=3600 -p Restart=on-abort"
        " ip netns exec endpoint qperf --listen_port 19765",
    ]


async def test_without_systemd_servers_are_sessions_that_stopping_ends(machine: Machine) -> None:
    (machine.folder / "systemd").rmdir()
    server = machine.folder / "bin" / "iperf3"
    server.write_text("#!/bin/sh\ncp line-5201 listens-5201\nexec /bin/sleep 300\n")
    server.chmod(0o755)
    await servers.start(machine, IPERF3)
    pid = int((machine.folder / "sessions/iperf3").read_text())
    assert os.getsid(pid) == pid
    (machine.folder / "listens-5201").unlink()
    await servers.start(machine, {})
    assert not (machine.folder / "sessions/iperf3").exists()
    for _ in range(100):
        await asyncio.sleep(0.05)
        if not os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC240, PTH110
            return
    pytest.fail("the server lives on")


async def test_servers_of_a_trial_within_a_node_start_in_the_second_endpoint(machine: Machine) -> None:
    await servers.start(machine, IPERF3, "endpoint2")
    assert machine.started()[0].endswith(" ip netns exec endpoint2 iperf3 --server --port 5201")


async def test_a_port_that_somebody_else_has_is_named_with_its_owner(machine: Machine) -> None:
    (machine.folder / "listens-5201").write_text(LISTENING[5201])
    with pytest.raises(UserError) as wrong:
        await servers.start(machine, IPERF3)
    assert str(wrong.value) == (
        "node2: port 5201: must be free for the server of iperf3"
        ' (found: LISTEN 0 5 *:5201 *:* users:(("nc",pid=7,fd=3))).'
        " Stop what listens there, or measure between other nodes"
    )
    assert machine.started() == []


async def test_a_server_that_never_listens_is_named(machine: Machine) -> None:
    (machine.folder / "mute").touch()
    with pytest.raises(UserError) as wrong:
        await servers.start(machine, BOTH)
    assert str(wrong.value) == (
        "node2: servers: could not be started: the server of iperf3 did not listen on port 5201."
        " See `journalctl` on the node"
    )


async def test_a_udp_server_is_ready_once_its_port_is_bound(machine: Machine) -> None:
    (machine.folder / "line-19770").write_text(BOUND)
    await servers.start(machine, SOCKPERF)
    assert machine.started() == [
        "--quiet --collect --unit=overlaylab-server-sockperf-19770-udp -p RuntimeMaxSec=3600 -p Restart=on-abort"
        " ip netns exec endpoint sockperf server -p 19770"
    ]


async def test_a_udp_server_that_takes_from_one_peer_alone_is_not_ready(machine: Machine) -> None:
    (machine.folder / "line-19770").write_text(CONNECTED)
    with pytest.raises(UserError, match="the server of sockperf did not listen on port 19770"):
        await servers.start(machine, SOCKPERF)


async def test_a_listener_on_tcp_is_no_server_on_udp(machine: Machine) -> None:
    (machine.folder / "listens-19770").write_text(LISTENING[19765].replace("4D35", "4D3A"))
    (machine.folder / "mute").touch()
    with pytest.raises(UserError, match="did not listen on port 19770"):
        await servers.start(machine, SOCKPERF)


async def test_the_tables_of_both_transports_are_read_where_both_are_asked_for(machine: Machine) -> None:
    (machine.folder / "line-19770").write_text(BOUND)
    (machine.folder / "bin" / "cat").write_text(
        '#!/bin/sh\necho "cat $*" >>read\nexec /bin/cat idle listens-*\n'
    )
    await servers.start(machine, IPERF3 | SOCKPERF)
    asked = set((machine.folder / "read").read_text().splitlines())
    assert asked == {"cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6"}


async def test_without_a_server_earlier_ones_are_stopped_all_the_same(machine: Machine) -> None:
    (machine.folder / "transient").mkdir()
    (machine.folder / "transient" / "overlaylab-server-iperf3.service").touch()
    await servers.start(machine, {})
    assert machine.started()[0] == "systemctl stop overlaylab-server-*"


def test_a_tool_has_a_server_for_each_port_and_transport() -> None:
    load = {"protocol": "udp", "duration": 2, "messages_per_second": 100, "message": 64, "port": 19770}
    trials = [
        PlannedTrial(1, n, Variant("host"), "latency", "sockperf", {**load, **more})
        for n, more in enumerate(({}, {"protocol": "tcp"}, {"message": 1000}, {"port": 19771}))
    ]
    trials.append(
        PlannedTrial(1, 4, Variant("host"), "rtt", "ping", {"count": 1, "interval": 1, "payload": 56})
    )
    found = servers.needed(trials)
    assert list(found) == ["sockperf-19770-udp", "sockperf-19770-tcp", "sockperf-19771-udp"]
    assert found["sockperf-19770-tcp"].transport == "tcp"
    # 30 s and twice the duration with what it leaves out, 60 s for the proof; ping's 20 s and 1.5 times its count.
    assert servers.lifetime(trials) == 3600 + 4 * (38 + 60) + math.ceil(21.5 + 60)


def test_two_kinds_of_server_at_one_port_are_refused() -> None:
    load = {"protocol": "udp", "duration": 2, "offered": 1e6, "datagram": 1000, "port": 5001}
    trials = [
        PlannedTrial(1, n, Variant("host"), f"udp-{n}", "iperf", {**load, "streams": n}) for n in (1, 4)
    ]
    assert list(servers.needed(trials[:1] * 2)) == ["iperf-5001-udp"]
    with pytest.raises(UserError, match="benchmark udp-4: port 5001: must have one kind of server of iperf"):
        servers.needed(trials)


async def test_words_of_systemd_are_passed_on() -> None:
    node = FakeNodes(inventory("a", "a"), {"systemd-run": failed(1, "Failed to start transient unit")})[
        "node2"
    ]
    with pytest.raises(UserError, match="could not be started: Failed to start transient unit"):
        await servers.start(node, IPERF3)


async def test_servers_of_an_earlier_cell_are_stopped_first(machine: Machine) -> None:
    """An SSH host keeps them: nothing is reverted there."""
    (machine.folder / "transient").mkdir()
    (machine.folder / "transient" / "overlaylab-server-iperf3.service").touch()
    (machine.folder / "listens-5201").write_text(LISTENING[5201])
    await servers.start(machine, IPERF3)
    assert machine.started()[:2] == [
        "systemctl stop overlaylab-server-*",
        "systemctl reset-failed overlaylab-server-*",
    ]
    assert "--unit=overlaylab-server-iperf3" in machine.started()[2]


async def test_stopping_asks_systemd_only_where_a_server_was_started(machine: Machine) -> None:
    await servers.stop(machine)
    assert machine.started() == []
    (machine.folder / "transient").mkdir()
    (machine.folder / "transient" / "overlaylab-server-qperf.service").touch()
    await servers.stop(machine)
    assert machine.started()[0] == "systemctl stop overlaylab-server-*"


def test_a_client_runs_in_the_endpoint_and_ends_in_time() -> None:
    line = servers.in_endpoint(("ping", "-c", "1", "a b"), 12.5)
    assert shlex.split(line) == [
        *("timeout", "-k", "2", "12.5"),
        *("ip", "netns", "exec", "endpoint"),
        *("ping", "-c", "1", "a b"),
    ]
