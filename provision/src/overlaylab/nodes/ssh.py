"""Commands on nodes, over one SSH connection per node that is kept open (a new one costs half a second
on an emulated CPU) and is given up before a snapshot is reverted to."""

from __future__ import annotations

import asyncio
import secrets
import shlex
import signal
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from overlaylab.core.errors import NodeError
from overlaylab.core.lazily import lazily
from overlaylab.core.paths import NODE_HOME, OTHER_NODE_HOME
from overlaylab.specs.inventory import Inventory, InventoryNode

if TYPE_CHECKING:
    import asyncssh
else:
    asyncssh = lazily("asyncssh")


# POSIX sh: the node kit's programs before the node's own, whatever path sshd and sudo leave. OVERLAYLAB is the kit's home,
# SHELL its sh: BusyBox's may be built to take its own ip, ping and timeout whatever the path of commands says.
ENTER = (
    f"OVERLAYLAB={NODE_HOME}; [ -d $OVERLAYLAB/bin ] || [ ! -d {OTHER_NODE_HOME}/bin ] || OVERLAYLAB={OTHER_NODE_HOME};"
    " PATH=$OVERLAYLAB/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin;"
    " SHELL=$OVERLAYLAB/bin/sh; [ -x $SHELL ] || SHELL=/bin/sh; export OVERLAYLAB PATH SHELL;"
)


@dataclass(frozen=True)
class Completed:
    """What a command gave. exit_code: None where it was cut off by the timeout.

    duration: seconds on the runner's monotonic clock, from sending the command to its exit.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    duration: float


class Ended(NodeError):
    """A command whose lines are read ended by itself."""

    def __init__(self, node: str, exit_code: int, stderr: str) -> None:
        self.exit_code, self.stderr = exit_code, stderr
        super().__init__(f"{node}: ended with {exit_code}: {stderr.strip()[-300:]}")


class Options(TypedDict, total=False):
    """What `Node.sh` takes beside the script."""

    timeout: float
    check: bool
    stdin: str | bytes | None


class Node:
    """One node of the inventory; commands run as root."""

    def __init__(self, spec: InventoryNode) -> None:
        self.spec = spec
        self.name = spec.name
        self._connection: asyncssh.SSHClientConnection | None = None
        self._shell: asyncssh.SSHClientProcess[bytes] | None = None
        self._busy = asyncio.Lock()

    async def connect(self, timeout: float = 60) -> None:
        """Connect, trying again until `timeout` seconds are over: a node that resumes needs a moment."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._connection = await asyncio.wait_for(
                    asyncssh.connect(self.spec.ssh_host, self.spec.ssh_port, **self._options()),
                    max(1.0, min(15.0, deadline - time.monotonic())),
                )
                return
            except asyncssh.PermissionDenied as error:
                raise NodeError(
                    f"{self.name}: {self.spec.ssh_user} may not log in: {error.reason}"
                ) from error
            except asyncssh.HostKeyNotVerifiable as error:
                raise NodeError(
                    f"{self.name}: the host key of {self.spec.ssh_host} is not the one expected "
                    f"({error.reason}); log in once with ssh, or correct known_hosts"
                ) from error
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
                raise NodeError(
                    f"{self.name}: the private key {self.spec.ssh_key} cannot be used ({error}); with a "
                    "passphrase, add it to ssh-agent and leave the key out of the inventory"
                ) from error
            except (OSError, TimeoutError, asyncssh.Error) as error:
                if time.monotonic() > deadline:
                    raise NodeError(
                        f"{self.name}: no SSH at {self.spec.ssh_host}:{self.spec.ssh_port} "
                        f"for {timeout:.0f} s ({error or type(error).__name__})"
                    ) from error
                await asyncio.sleep(0.2)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "username": self.spec.ssh_user,
            "keepalive_interval": 15,
            "connect_timeout": 15,
        }
        if self.spec.ssh_key:
            # The agent and other keys are left out: sshd counts every key that it is offered.
            options |= {"client_keys": [str(self.spec.ssh_key)], "agent_path": None}
        if self.spec.host_key:
            name = (
                self.spec.ssh_host
                if self.spec.ssh_port == 22
                else f"[{self.spec.ssh_host}]:{self.spec.ssh_port}"
            )
            options["known_hosts"] = asyncssh.import_known_hosts(f"{name} {self.spec.host_key}\n")
        return options

    def drop(self) -> None:
        """Give the connection up without a word to the node (its state is about to be replaced)."""
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
            self._shell = None

    async def sh(
        self,
        script: str,
        *,
        timeout: float = 60,
        check: bool = True,
        stdin: str | bytes | None = None,
    ) -> Completed:
        """Run a POSIX sh script as root. check: NodeError unless it exits 0.

        It runs in a root shell that is kept open, in a process of its own and without standard input: a new
        SSH session and sudo cost half a second on an emulated CPU. While that shell is busy, and where there
        is `stdin`, a session of its own is opened. Secrets go through `stdin`, never through the script.
        """
        if self._connection is None:
            await self.connect()
        started = time.monotonic()
        try:
            if stdin is None and not self._busy.locked():
                async with self._busy:
                    code, out, err = await asyncio.wait_for(self._in_shell(script), timeout)
            else:
                code, out, err = await asyncio.wait_for(self._in_session(script, stdin), timeout)
        except TimeoutError:
            done = Completed(None, "", f"no answer within {timeout:g} s", time.monotonic() - started)
            if check:
                raise NodeError(f"{self.name}: {_first_line(script)}: {done.stderr}") from None
            return done
        except (asyncssh.Error, OSError) as error:
            self.drop()
            raise NodeError(f"{self.name}: the SSH connection broke ({error})") from error
        except NodeError:
            self.drop()
            raise
        done = Completed(code, out, err, time.monotonic() - started)
        if check and done.exit_code != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise NodeError(
                f"{self.name}: `{_first_line(script)}` ended with {done.exit_code}: {' / '.join(words[-3:])}"
            )
        return done

    async def lines(self, command: str, stdin: str) -> AsyncGenerator[str, None]:
        """The lines that a command prints, as they come. Raises Ended when it ends, NodeError without a connection.

        In a session of its own, whose end the command sees as its output being closed.
        """
        if self._connection is None:
            await self.connect()
        try:
            process = await self._session(command, asyncssh.PIPE)
        except (asyncssh.Error, OSError) as error:
            self.drop()
            raise NodeError(f"{self.name}: the SSH connection broke ({error})") from error
        try:
            process.stdin.write(stdin.encode())
            process.stdin.write_eof()
            while line := await process.stdout.readline():
                yield _text(line).rstrip("\n")
            stderr = _text(await process.stderr.read())
            await process.wait_closed()
        except (asyncssh.Error, OSError) as error:
            self.drop()
            raise NodeError(f"{self.name}: the SSH connection broke ({error})") from error
        finally:
            process.close()
        if process.exit_status is None or process.exit_status < 0:
            self.drop()
            raise NodeError(f"{self.name}: the SSH connection broke while a command ran")
        raise Ended(self.name, process.exit_status, stderr)

    async def look(self, script: str, *, timeout: float = 5) -> str | None:
        """What a script of shell builtins prints, run by the open root shell itself: no process, no login.

        For a node on which something is being measured. None where the shell is not open or busy, or the node is
        slow: whoever looks must not disturb. The script may neither exit nor rely on variables.
        """
        if self._connection is None or self._shell is None or self._busy.locked():
            return None
        try:
            async with self._busy:
                _, out, _ = await asyncio.wait_for(self._in_shell(script, fork=False), timeout)
        except (TimeoutError, asyncssh.Error, OSError, NodeError):
            return None  # whatever is wrong shows in the command that comes next
        return out

    async def _in_shell(self, script: str, fork: bool = True) -> tuple[int, str, str]:
        """Exit code, stdout, stderr of a script in the root shell that is kept open; fork: in a process of its own."""
        if self._shell is None:
            self._shell = await self._session("$SHELL", asyncssh.PIPE)
        shell, self._shell = self._shell, None  # given back only when it is known to be idle
        # Random, so that no output can hold it.
        mark = f"={secrets.token_hex(8)}="
        command = f"sh -c {shlex.quote(script)}" if fork else f"{{\n{script}\n}}"
        shell.stdin.write(f"{command} </dev/null; printf '{mark}%s\\n' $?; echo '{mark}' >&2\n".encode())
        try:
            (out, code), (err, _) = await asyncio.gather(
                self._until(shell.stdout, mark.encode()), self._until(shell.stderr, mark.encode())
            )
        except BaseException:
            shell.close()  # cut off: whatever it still does, nobody waits for it
            raise
        self._shell = shell
        return int(code), _text(out), _text(err)

    async def _until(self, stream: asyncssh.SSHReader[bytes], mark: bytes) -> tuple[bytes, bytes]:
        """What the stream gives up to the mark, and the rest of the mark's line."""
        seen = bytearray()
        while True:
            part = await stream.read(65536)  # readuntil() gives up where more than the window is pending
            if not part:
                raise NodeError(f"{self.name}: the SSH connection broke while a command ran")
            seen += part
            at = seen.find(mark, max(0, len(seen) - len(part) - len(mark) - 8))
            if at >= 0 and seen.endswith(b"\n"):
                return bytes(seen[:at]), bytes(seen[at + len(mark) : -1])

    async def _in_session(self, script: str, stdin: str | bytes | None) -> tuple[int, str, str]:
        """Exit code, stdout, stderr of a script in an SSH session of its own."""
        process = await self._session(
            f"$SHELL -c {shlex.quote(script)}",
            # communicate() ends the input only where there is some: a script that reads would wait for ever.
            asyncssh.PIPE if stdin else asyncssh.DEVNULL,
        )
        try:
            out, err = await process.communicate(stdin.encode() if isinstance(stdin, str) else stdin)
        except asyncio.CancelledError:
            process.close()
            raise
        if process.exit_signal:
            # As a shell gives it, 128 and the signal's number: the connection is as good as before.
            code = 128 + getattr(signal, f"SIG{process.exit_signal[0]}", 0)
        elif process.exit_status is not None and process.exit_status >= 0:
            code = process.exit_status
        else:
            raise NodeError(f"{self.name}: the SSH connection broke while a command ran")
        return code, _text(out), _text(err)

    async def _session(self, command: str, stdin: int) -> asyncssh.SSHClientProcess[bytes]:
        assert self._connection is not None
        sudo = "" if self.spec.ssh_user == "root" else "sudo -n "
        return await self._connection.create_process(
            f"{sudo}sh -c {shlex.quote(f'{ENTER} exec {command}')}", encoding=None, stdin=stdin
        )


async def pin(nodes: Iterable[InventoryNode], timeout: float = 60) -> tuple[InventoryNode, ...]:
    """The nodes, each with the host key that it shows now, the only one that is accepted from then on."""
    # For nodes that were made a moment ago, on a network that this machine alone has.
    return tuple(await asyncio.gather(*(_pin(node, timeout) for node in nodes)))


async def _pin(node: InventoryNode, timeout: float) -> InventoryNode:
    try:
        key = await asyncio.wait_for(
            asyncssh.get_server_host_key(node.ssh_host, node.ssh_port, server_host_key_algs="ssh-ed25519"),
            timeout,
        )
        if key is None:
            raise ConnectionError("no key was shown")
    except (OSError, TimeoutError, asyncssh.Error) as error:
        raise NodeError(
            f"{node.name}: {node.ssh_host}:{node.ssh_port} does not tell its host key "
            f"({error or type(error).__name__})"
        ) from error
    return replace(node, host_key=" ".join(key.export_public_key().decode().split()[:2]))


def _text(raw: bytes | str | None) -> str:
    """Tool output as text; bytes that are no UTF-8 are kept visible rather than dropped."""
    return raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw or ""


def _first_line(script: str) -> str:
    line = next((line for line in script.strip().splitlines() if line.strip()), "")
    return line if len(line) <= 80 else line[:77] + "…"


class Nodes(Mapping[str, Node]):
    """The nodes of an inventory by name, in its order."""

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._nodes = {spec.name: Node(spec) for spec in inventory.nodes}

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    async def connect(self, timeout: float = 60) -> None:
        await asyncio.gather(*(node.connect(timeout) for node in self.values()))

    def drop(self) -> None:
        for node in self.values():
            node.drop()

    async def sh(
        self, script: str, *, only: Iterable[str] | None = None, **options: Unpack[Options]
    ) -> dict[str, Completed]:
        """The same script on all nodes (or on `only`) at once."""
        names = list(only) if only is not None else list(self)
        results = await asyncio.gather(*(self[name].sh(script, **options) for name in names))
        return dict(zip(names, results, strict=True))
