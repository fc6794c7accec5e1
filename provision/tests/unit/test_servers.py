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

FAKES = {
    # `ip netns exec endpoint CMD` runs CMD; a server listens once it was started, unless it is mute.
    "ip": 'shift 3; exec "$@"',
    "ss": (
        "for word; do port=${word##*:}; done\n"
        '[ ! -e "taken-$port" ] || echo "LISTEN 0 5 *:$port *:* users:((\\"nc\\",pid=7,fd=3))"\n'
        '[ ! -e "listens-$port" ] || echo "LISTEN 0 5 *:$port"'
    ),
    "systemd-run": 'echo "$*" >>started; [ -e mute ] || touch "listens-${*##* }"',
    "systemctl": 'echo "systemctl $*" >>started',
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
def machine(tmp_path) -> Machine:
    return Machine(tmp_path)


async def test_servers_start_as_units_that_end_by_themselves(machine: Machine) -> None:
    await servers.start(machine, BOTH)
    assert machine.started() == [
        "systemctl stop overlaylab-server-*",
        "systemctl reset-failed overlaylab-server-*",
        "--quiet --collect --unit=overlaylab-server-iperf3 -p RuntimeMaxSec=3600"
        " ip netns exec endpoint iperf3 --server --port 5201",
        "--quiet --collect --unit=overlaylab-server-qperf -p RuntimeMaxSec=3600"
        " ip netns exec endpoint qperf --listen_port 19765",
    ]


async def test_a_port_that_somebody_else_has_is_named_with_its_owner(machine: Machine) -> None:
    (machine.folder / "taken-5201").touch()
    with pytest.raises(UserError) as wrong:
        await servers.start(machine, IPERF3)
    assert str(wrong.value) == (
        "node2: port 5201: must be free for the server of iperf3"
        ' (found: LISTEN 0 5 *:5201 *:* users:(("nc",pid=7,fd=3))).'
        " Stop what listens there, or measure between other nodes"
    )
    assert not [line for line in machine.started() if "--unit" in line]


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


async def test_without_servers_old_ones_are_stopped_all_the_same(machine: Machine) -> None:
    await servers.start(machine, {})
    assert machine.started()[0] == "systemctl stop overlaylab-server-*"


async def test_stop_is_no_error_where_none_runs() -> None:
    node = FakeNodes(inventory("a", "a"), {"systemctl stop 'overlaylab-server-*'": ""})["node1"]
    await servers.stop(node)
    assert node.log[0].endswith("|| :")


def test_a_client_runs_in_the_endpoint_and_ends_in_time() -> None:
    line = servers.in_endpoint(("ping", "-c", "1", "a b"), 12.5)
    assert shlex.split(line) == [
        *("timeout", "-k", "2", "12.5"),
        *("ip", "netns", "exec", "endpoint"),
        *("ping", "-c", "1", "a b"),
    ]
