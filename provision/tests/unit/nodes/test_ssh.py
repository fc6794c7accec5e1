"""Commands on nodes, against an SSH server in this process, on loopback."""

import asyncio
import contextlib
import os
import shlex
import signal
import time
from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

import asyncssh
import pytest

from overlaylab.core.errors import NodeError
from overlaylab.core.paths import NODE_HOME, OTHER_NODE_HOME
from overlaylab.nodes import ssh
from overlaylab.nodes.ssh import ENTER, Node, Nodes
from overlaylab.specs.inventory import Inventory, InventoryNode


class Sshd:
    """Runs commands with the shell of this machine, as whoever runs the tests."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.seen = ""
        self.sleeping = asyncio.Event()
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.listener: asyncssh.SSHAcceptor | None = None
        self.locals: list[asyncio.subprocess.Process] = []
        self.port = 0
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.client_key = asyncssh.generate_private_key("ssh-ed25519")

    async def start(self, port: int = 0) -> None:
        authorized = asyncssh.import_authorized_keys(self.client_key.export_public_key().decode())
        self.listener = await asyncssh.listen(
            "127.0.0.1", port, server_host_keys=[self.key], authorized_client_keys=authorized,
            process_factory=self._run, acceptor=self.connections.append, encoding=None,
        )  # fmt: skip
        self.port = self.listener.get_port()

    def _see(self, text: str) -> None:
        """A command, or what reached its input."""
        self.seen += text
        if "sleep 30" in text:
            self.sleeping.set()

    async def _run(self, process: asyncssh.SSHServerProcess) -> None:
        self.commands.append(process.command or "")
        self._see(self.commands[-1])
        local = await asyncio.create_subprocess_exec(
            *shlex.split((process.command or "").removeprefix("sudo -n ")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        self.locals.append(local)

        async def feed() -> None:
            with contextlib.suppress(OSError, asyncssh.Error):
                while data := await process.stdin.read(65536):
                    self._see(data.decode(errors="replace"))
                    local.stdin.write(data)
                    await local.stdin.drain()
                local.stdin.close()

        async def pump(source, target) -> None:
            while data := await source.read(65536):
                target.write(data)

        feeding = asyncio.create_task(feed())
        try:
            with contextlib.suppress(OSError, asyncssh.Error):
                await asyncio.gather(pump(local.stdout, process.stdout), pump(local.stderr, process.stderr))
                code = await local.wait()
                if code >= 0:
                    process.exit(code)
                else:
                    process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        finally:
            feeding.cancel()

    async def stop(self) -> None:
        for local in self.locals:
            if local.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.killpg(local.pid, signal.SIGKILL)
                await local.wait()
        for connection in self.connections:
            connection.abort()
            await connection.wait_closed()
        if self.listener:
            self.listener.close()
            await self.listener.wait_closed()
        self.locals, self.listener = [], None


@pytest.fixture
async def sshd():
    server = Sshd()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def spec(sshd: Sshd, tmp_path: Path) -> InventoryNode:
    key = tmp_path / "key"
    sshd.client_key.write_private_key(key)
    return InventoryNode(
        name="node1",
        ssh_host="127.0.0.1",
        ssh_port=sshd.port,
        ssh_user="root",
        ssh_key=key,
        host_key=" ".join(sshd.key.export_public_key().decode().split()[:2]),
        underlay_interface="eth1",
        underlay_address=IPv4Interface("192.168.77.11/24"),
        zone="a",
    )


@pytest.fixture
async def node(spec: InventoryNode):
    found = Node(spec)
    yield found
    found.drop()


# -- commands ---------------------------------------------------------------------------------------


async def test_a_script_gives_output_errors_exit_code_and_duration(node: Node) -> None:
    done = await node.sh("echo out; echo err >&2; sleep 0.2; exit 3", check=False)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert 0.2 <= done.duration < 5


async def test_scripts_keep_quotes_lines_and_heredocs(node: Node) -> None:
    script = "cat <<'END'\nit's \"$HOME\" \\n\nEND\nprintf '%s|' 'a  b' \"c\""
    assert (await node.sh(script)).stdout == 'it\'s "$HOME" \\n\na  b|c|'


async def test_lines_come_as_they_are_printed_and_the_end_is_told(node: Node) -> None:
    found = []
    script = 'read -r first; echo "$first"; sleep 0.2; echo second; echo wrong >&2; exit 75'
    with pytest.raises(ssh.Ended) as ended:
        async for line in node.lines(f"sh -c {shlex.quote(script)}", "first\n"):
            found.append((line, time.monotonic()))
    assert [line for line, _ in found] == ["first", "second"]
    assert found[1][1] - found[0][1] > 0.1
    assert (ended.value.exit_code, ended.value.stderr) == (75, "wrong\n")
    assert (await node.sh("echo still there")).stdout == "still there\n"


async def test_lines_of_a_node_that_is_gone_are_an_error(node: Node, sshd: Sshd) -> None:
    lines = node.lines("sh -c 'echo line; sleep 30'", "")
    assert await anext(lines) == "line"
    await sshd.stop()
    with pytest.raises(NodeError):
        await anext(lines)


async def test_a_secret_goes_through_stdin_and_into_no_command_line(node: Node, sshd: Sshd) -> None:
    assert (await node.sh("cat", stdin="hush")).stdout == "hush"
    assert (await node.sh("cat", stdin=b"\x00\xffbytes")).stdout == "\x00\\xffbytes"
    assert not [command for command in sshd.commands if "hush" in command]


async def test_a_script_that_reads_its_input_gets_none(node: Node) -> None:
    assert (await node.sh("cat; echo done", timeout=5)).stdout == "done\n"
    assert (await node.sh("cat; echo done", timeout=5, stdin="")).stdout == "done\n"


async def test_output_that_is_no_text_stays_visible(node: Node) -> None:
    assert (await node.sh("printf 'a\\377b'")).stdout == "a\\xffb"


async def test_much_output_on_both_streams_arrives_whole(node: Node) -> None:
    done = await node.sh("head -c 3000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero | tr '\\0' y >&2")
    assert (len(done.stdout), len(done.stderr)) == (3_000_000, 3_000_000)


async def test_a_command_that_had_to_succeed_is_named_with_its_last_words(node: Node) -> None:
    with pytest.raises(NodeError) as wrong:
        await node.sh(
            "\nfalse_command one two\n" + "echo never\n" + "for i in 1 2 3 4; do echo $i >&2; done; exit 7"
        )
    assert str(wrong.value) == "node1: `false_command one two` ended with 7: 2 / 3 / 4"


async def test_a_long_first_line_is_cut_in_the_message(node: Node) -> None:
    with pytest.raises(NodeError) as wrong:
        await node.sh(f": {'x' * 200}; exit 1")
    assert str(wrong.value) == f"node1: `: {'x' * 75}…` ended with 1: "


async def test_one_connection_serves_many_commands_and_many_at_once(node: Node, sshd: Sshd) -> None:
    done = await asyncio.gather(*(node.sh(f"sleep 0.1; echo {n}") for n in range(5)))
    assert [d.stdout for d in done] == [f"{n}\n" for n in range(5)]
    await node.sh("true")
    assert len(sshd.connections) <= 5  # those of the first five, which all found none


async def test_root_needs_no_sudo_and_others_do(spec: InventoryNode, sshd: Sshd) -> None:
    for user in ("root", "lab"):
        one = Node(replace(spec, ssh_user=user))
        await one.sh("id -u")
        await one.sh("cat", stdin="in")
        one.drop()
    entered = [
        f"{sudo}sh -c {shlex.quote(f'{ENTER} exec {command}')}"
        for sudo in ("", "sudo -n ")
        for command in ("$SHELL", "$SHELL -c cat")
    ]
    assert sshd.commands == entered


async def test_the_kits_programs_come_before_the_nodes_own(node: Node) -> None:
    told = (await node.sh('echo "$OVERLAYLAB $PATH"')).stdout.split()
    assert told[0] in (NODE_HOME, OTHER_NODE_HOME)
    assert told[1].split(":")[0] == f"{told[0]}/bin"
    assert told[1].endswith(":/usr/sbin:/usr/bin:/sbin:/bin")


# -- the shell that is kept open --------------------------------------------------------------------


async def test_one_shell_serves_one_command_after_another(node: Node, sshd: Sshd) -> None:
    for n in range(3):
        assert (await node.sh(f"echo {n}; echo {n} >&2; exit {n}", check=False)).exit_code == n
    assert len(sshd.commands) == 1


async def test_a_command_leaves_nothing_to_the_next(node: Node) -> None:
    await node.sh("cd /; x=1; export x; set -eu; umask 0; exec 3</dev/null")
    first = (await node.sh('pwd; echo "${x-unset}"; umask')).stdout
    assert first == (await node.sh('pwd; echo "${x-unset}"; umask', stdin="of its own session")).stdout
    assert first.splitlines()[1] == "unset"


async def test_a_look_runs_in_the_open_shell_itself(node: Node, sshd: Sshd) -> None:
    shell = (await node.sh("echo $PPID")).stdout
    assert (
        await node.look("echo $$; read -r line && echo never") == shell
    )  # it reads no input, the next command least
    assert (await node.sh("echo right")).stdout == "right\n"
    assert len(sshd.commands) == 1


async def test_who_only_looks_opens_nothing_and_waits_for_nobody(node: Node, sshd: Sshd) -> None:
    assert await node.look("echo seen") is None  # not connected
    await node.connect()
    assert await node.look("echo seen") is None  # no shell yet
    assert sshd.commands == []
    await node.sh("true")
    busy = asyncio.create_task(node.sh("sleep 0.3"))
    await asyncio.sleep(0.1)
    assert await node.look("echo seen") is None
    await busy
    assert await node.look("echo seen") == "seen\n"
    assert await node.look("sleep 30", timeout=0.1) is None
    assert (await node.sh("echo right")).stdout == "right\n"  # in another shell


async def test_a_shell_that_is_busy_keeps_nobody_waiting(node: Node, sshd: Sshd) -> None:
    started = time.monotonic()
    long = asyncio.create_task(node.sh("sleep 30", timeout=60))
    await sshd.sleeping.wait()
    assert (await node.sh("echo meanwhile")).stdout == "meanwhile\n"
    assert time.monotonic() - started < 10
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert (await node.sh("echo after")).stdout == "after\n"


async def test_output_without_a_newline_at_its_end_is_kept_so(node: Node) -> None:
    for text in ("", "x", "x\n", "\n", "=", "-n", "%s"):
        done = await node.sh(f"printf '%s' '{text}'; printf '%s' '{text}' >&2")
        assert (done.stdout, done.stderr) == (text, text)


async def test_a_shell_that_ends_is_a_failing_node_and_the_next_command_gets_another(
    node: Node, sshd: Sshd
) -> None:
    await node.sh("true")
    with pytest.raises(NodeError, match="node1: the SSH connection broke"):
        await node.sh("kill -KILL $PPID", timeout=20)
    assert (await node.sh("echo back")).stdout == "back\n"


# -- time -------------------------------------------------------------------------------------------


async def test_a_command_that_takes_too_long_is_cut_off(node: Node) -> None:
    started = time.monotonic()
    done = await node.sh("echo begun; sleep 30", timeout=0.3, check=False)
    assert (done.exit_code, done.stderr) == (None, "no answer within 0.3 s")
    assert time.monotonic() - started < 10
    with pytest.raises(NodeError, match=r"node1: sleep 30: no answer within 0.3 s"):
        await node.sh("sleep 30", timeout=0.3)
    assert (await node.sh("echo on")).stdout == "on\n"


async def test_a_command_that_a_signal_ends_leaves_the_connection_as_it_was(node: Node, sshd: Sshd) -> None:
    assert (await node.sh("kill -KILL $$", check=False)).exit_code == 137
    with pytest.raises(NodeError, match=r"node1: `kill -TERM .*` ended with 143"):
        await node.sh("kill -TERM $$")
    assert (await node.sh("echo on")).stdout == "on\n"
    assert len(sshd.connections) == 1


# -- connections ------------------------------------------------------------------------------------


async def test_a_connection_that_breaks_is_a_failing_node_and_the_next_command_connects_again(
    node: Node, sshd: Sshd
) -> None:
    await node.sh("true")
    command = asyncio.create_task(node.sh("sleep 30"))
    await sshd.sleeping.wait()
    sshd.connections[0].abort()
    with pytest.raises(NodeError, match="node1: the SSH connection broke"):
        await command
    assert (await node.sh("echo back")).stdout == "back\n"
    assert len(sshd.connections) == 2


async def test_a_dropped_connection_is_made_anew(node: Node, sshd: Sshd) -> None:
    await node.sh("true")
    node.drop()
    node.drop()
    await node.sh("true")
    assert len(sshd.connections) == 2


async def test_a_node_that_needs_a_moment_is_waited_for(sshd: Sshd, spec: InventoryNode) -> None:
    await sshd.stop()
    one = Node(spec)
    connecting = asyncio.create_task(one.connect(timeout=10))
    await asyncio.sleep(0.5)
    assert not connecting.done()
    await sshd.start(spec.ssh_port)
    await connecting
    assert (await one.sh("echo up")).stdout == "up\n"
    one.drop()


async def test_a_node_that_stays_away_is_named_with_its_address(sshd: Sshd, spec: InventoryNode) -> None:
    await sshd.stop()
    with pytest.raises(NodeError, match=rf"node1: no SSH at 127\.0\.0\.1:{spec.ssh_port} for 0 s \(.+\)"):
        await Node(spec).connect(timeout=0.3)


async def test_another_host_key_is_refused_at_once(spec: InventoryNode) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    started = time.monotonic()
    with pytest.raises(NodeError, match=r"node1: the host key of 127\.0\.0\.1 is not the one expected"):
        await Node(replace(spec, host_key=" ".join(other.split()[:2]))).connect(timeout=30)
    assert time.monotonic() - started < 10


async def test_nodes_are_pinned_to_the_keys_that_they_show(sshd: Sshd, spec: InventoryNode) -> None:
    second = Sshd()
    await second.start()
    try:
        other = replace(spec, name="node2", ssh_port=second.port)
        pinned = await ssh.pin([replace(spec, host_key=None), replace(other, host_key=None)])
    finally:
        await second.stop()
    assert pinned[0] == spec
    assert pinned[1].name == "node2"
    assert pinned[1].host_key == " ".join(second.key.export_public_key().decode().split()[:2])
    assert pinned[1].host_key != spec.host_key


async def test_a_node_that_shows_no_key_is_named_with_its_address(sshd: Sshd, spec: InventoryNode) -> None:
    await sshd.stop()
    with pytest.raises(
        NodeError, match=rf"node1: 127\.0\.0\.1:{spec.ssh_port} does not tell its host key \(.+\)"
    ):
        await ssh.pin([spec])


async def test_a_host_that_known_hosts_does_not_know_is_refused(
    spec: InventoryNode, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(NodeError, match="log in once with ssh, or correct known_hosts"):
        await Node(replace(spec, host_key=None)).connect(timeout=30)


async def test_a_key_that_is_not_authorized_is_refused_at_once(spec: InventoryNode, tmp_path) -> None:
    key = tmp_path / "other"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(key)
    started = time.monotonic()
    with pytest.raises(NodeError, match="node1: root may not log in: Permission denied"):
        await Node(replace(spec, ssh_key=key)).connect(timeout=30)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("text", ["no key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
async def test_a_key_that_cannot_be_read_is_named(spec: InventoryNode, tmp_path, text) -> None:
    key = tmp_path / "wrong"
    key.write_text(text)
    with pytest.raises(NodeError, match=rf"node1: the private key {key} cannot be used"):
        await Node(replace(spec, ssh_key=key)).connect(timeout=30)


async def test_a_key_with_a_passphrase_needs_the_agent(spec: InventoryNode, sshd: Sshd, tmp_path) -> None:
    key = tmp_path / "sealed"
    sshd.client_key.write_private_key(key, "pkcs8-pem", passphrase="hush")
    with pytest.raises(NodeError, match="add it to ssh-agent and leave the key out"):
        await Node(replace(spec, ssh_key=key)).connect(timeout=30)


# -- several ----------------------------------------------------------------------------------------


@pytest.fixture
def nodes(spec: InventoryNode) -> Nodes:
    return Nodes(Inventory("pair", "external", tuple(replace(spec, name=f"node{n}") for n in (1, 2, 3))))


async def test_nodes_come_in_the_inventorys_order_and_run_at_once(nodes: Nodes) -> None:
    await nodes.connect()
    assert list(nodes) == ["node1", "node2", "node3"]
    started = time.monotonic()
    done = await nodes.sh("sleep 0.5; echo $$")
    assert time.monotonic() - started < 1.4
    assert list(done) == ["node1", "node2", "node3"]
    assert list(await nodes.sh("true", only=["node3", "node1"])) == ["node3", "node1"]
    nodes.drop()


async def test_options_reach_every_node(nodes: Nodes) -> None:
    done = await nodes.sh("cat; exit 4", check=False, stdin="in")
    assert [(d.exit_code, d.stdout) for d in done.values()] == [(4, "in")] * 3
    with pytest.raises(NodeError, match=r"node\d: `exit 4` ended with 4"):
        await nodes.sh("exit 4")
    nodes.drop()
