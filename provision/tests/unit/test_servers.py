"""Servers of the benchmark tools: the script that starts them, and its words when it cannot."""

import asyncio
import shlex
import subprocess

import pytest
from lab_builders import inventory
from lab_fakes import Completed, FakeNodes, failed

from overlaylab import servers
from overlaylab.errors import UserError

IPERF3 = {"iperf3": (("iperf3", "--server", "--port", "5201"), 5201)}
BOTH = IPERF3 | {"qperf": (("qperf", "--listen_port", "19765"), 19765)}

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
        path = f"{self.folder / 'bin'}:/usr/bin:/bin"
        argv = ["sh", "-c", script]
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=self.folder, env={"PATH": path}, capture_output=True, text=True
        )
        return Completed(done.returncode, done.stdout, done.stderr, 0.1)

    def started(self) -> list[str]:
        return (self.folder / "started").read_text().splitlines()


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    monkeypatch.setattr(servers, "TRANSIENT", str(tmp_path / "transient"))
    (tmp_path / "started").touch()
    return Machine(tmp_path)


async def test_servers_start_as_units_that_end_by_themselves(machine: Machine) -> None:
    await servers.start(machine, BOTH)
    assert machine.started() == [
        "--quiet --collect --unit=overlaylab-server-iperf3 -p RuntimeMaxSec=3600"
        " ip netns exec endpoint iperf3 --server --port 5201",
        "--quiet --collect --unit=overlaylab-server-qperf -p RuntimeMaxSec=3600"
        " ip netns exec endpoint qperf --listen_port 19765",
    ]


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
