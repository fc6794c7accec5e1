"""Servers of the tools on a node, inside an endpoint's namespace, as transient systemd units.

A unit outlives a broken SSH connection and ends by itself when the runner was killed. So does the session of its own that
takes the unit's place on a node without systemd.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from overlaylab.core.errors import UserError
from overlaylab.core.model import PlannedTrial
from overlaylab.nodes.ssh import Node, Nodes
from overlaylab.tools import base as tools
from overlaylab.tools.base import Server

PREFIX = "overlaylab-server-"
ENDPOINT = "endpoint"
# An endpoint that is the node's own network, for as long as something is measured on nodes without an overlay.
OWN = "overlaylab-own"
# Seconds after which a forgotten server ends, beyond the time that its trials may take.
LIFETIME = 3600
DAY = 86400
# Seconds that the proof around one trial takes, at most.
AROUND = 60


# Where systemd keeps the units that systemd-run(1) makes.
TRANSIENT = "/run/systemd/transient"
# What is there where systemd runs (sd_booted(3)).
SYSTEMD = "/run/systemd/system"
# Where the process ids of sessions lie on a node without systemd.
SESSIONS = "/run/overlaylab/servers"


# POSIX sh. A cell that begins in a snapshot has none to stop, and asking systemd takes 0.2 s on an emulated CPU.
STOP = f"""
for unit in {TRANSIENT}/{PREFIX}*; do
    if [ -e "$unit" ]; then systemctl stop '{PREFIX}*'; systemctl reset-failed '{PREFIX}*' 2>/dev/null; fi
    break
done
for session in {SESSIONS}/*; do
    if [ -e "$session" ]; then read -r pid <"$session"; kill -- "-$pid" 2>/dev/null; rm -f "$session"; fi
done
rmdir {SESSIONS} 2>/dev/null || :"""


# Of a socket that takes what comes, in proc(5)'s tables: TCP_LISTEN, and TCP_CLOSE, which a bound UDP socket has.
_STATES = {"tcp": "0A", "udp": "07"}


def _look(endpoint: str, transports: Iterable[str]) -> str:
    """A function for a shell that reads the sockets of the endpoint; a table more costs an emulated CPU little."""
    tables = " ".join(f"/proc/net/{one} /proc/net/{one}6" for one in transports)
    return f"look() {{ table=$(ip netns exec {endpoint} cat {tables} 2>/dev/null || :); }}"


def _listens(server: Server) -> str:
    """A test, for a shell, whether `look` saw that the server's port is open. No table holds states of the other's."""
    seen = (
        f"*:{server.port:04X}\\ {any_}:0000\\ {_STATES[server.transport]}\\ *" for any_ in ("0" * 8, "0" * 32)
    )
    return f"case $table in {' | '.join(seen)}) ;; *) false ;; esac"


def attach_script(name: str) -> str:
    """POSIX sh for root: makes the node's own network an endpoint; prints what `detach_script` has to know."""
    return f"""
if [ -d /run/netns ]; then ip netns attach {name} $$ && echo made
else ip netns attach {name} $$ && echo made-folder
fi
"""


def detach_script(name: str, how: str) -> str:
    """POSIX sh for root: takes it away again, with the folder of namespaces where that was made for it."""
    folder = "; umount /run/netns; rmdir /run/netns" if how == "made-folder" else ""
    return f"ip netns delete {name}{folder}"


@contextlib.asynccontextmanager
async def own_network(nodes: Nodes) -> AsyncIterator[str]:
    """The name of an endpoint that is each node's own network meanwhile. Servers in it end with it."""
    how: dict[str, str] = {}
    try:
        for name, node in nodes.items():
            # One that a killed command has left.
            left = f"[ ! -e /run/netns/{OWN} ] || ip netns delete {OWN}"
            how[name] = (await node.sh(left + attach_script(OWN))).stdout.strip()
        yield OWN
    finally:
        for name, made in how.items():
            await stop(nodes[name])
            await nodes[name].sh(detach_script(OWN, made))


def lifetime(trials: Iterable[PlannedTrial]) -> int:
    """Seconds that servers are given which are started for all of these trials."""
    longest = (tools.load(trial.tool).timeout(trial.parameters) + AROUND for trial in trials)
    return min(LIFETIME + math.ceil(sum(longest)), DAY)


def in_endpoint(argv: Sequence[str], timeout: float) -> str:
    """The command line, for a shell, that runs argv in the endpoint and ends it after `timeout` seconds."""
    return shlex.join(["timeout", "-k", "2", f"{timeout:g}", "ip", "netns", "exec", ENDPOINT, *argv])


def needed(trials: Iterable[PlannedTrial]) -> dict[str, Server]:
    """{name: server} for the trials: one for each tool, port and transport, however many trials it serves."""
    found: dict[str, Server] = {}
    for trial in trials:
        server = tools.load(trial.tool).server(trial.parameters)
        if server is None:
            continue
        name = f"{trial.tool}-{server.port}-{server.transport}"
        if found.setdefault(name, server) != server:
            raise UserError(
                f"benchmark {trial.benchmark}: port {server.port}",
                f"must have one kind of server of {trial.tool}, for all benchmarks of a suite",
                fix="Give one of them a port of its own.",
            )
    return found


async def start(
    node: Node, servers: Mapping[str, Server], endpoint: str = ENDPOINT, seconds: int = LIFETIME
) -> None:
    """Start the servers {name: server} on the node and wait until every port is open.

    name: of the tool, and after a hyphen what tells several of one tool apart. endpoint: the namespace that they run in.
    seconds: after which they end.
    Servers of an earlier cell are stopped first. UserError where a port is taken by somebody else.
    """
    if not servers:
        return await stop(node)
    lines = [STOP, _look(endpoint, sorted({server.transport for server in servers.values()})), "look"]
    for name, server in servers.items():
        # ss costs 0.2 s on an emulated CPU; it is asked only for the words of an error.
        which = f"-Hln{server.transport[0]}p 'sport = :{server.port}'"
        owner = f"$(ip netns exec {endpoint} ss {which})"
        lines.append(
            f'if {_listens(server)}; then echo "taken {_tool(name)} {server.port} {owner}"; exit 3; fi'
        )
    for name, server in servers.items():
        command = shlex.join(["ip", "netns", "exec", endpoint, *server.argv])
        lines += [
            f"if [ -d {SYSTEMD} ]; then",
            f'  systemd-run --quiet --collect --unit={PREFIX}{name} --setenv=PATH="$PATH" '
            # A server that crashes fails one trial: the next one finds it up again.
            f"-p RuntimeMaxSec={seconds} -p Restart=on-abort {command}",
            f"else mkdir -p {SESSIONS}; setsid timeout {seconds} {command} </dev/null >/dev/null 2>&1 &",
            f"  echo $! >{SESSIONS}/{name}",
            "fi",
        ]
    lines += ["tries=0", "look"]
    for name, server in servers.items():
        lines += [
            f"until {_listens(server)}; do",
            f'  tries=$((tries + 1)); [ $tries -lt 200 ] || {{ echo "silent {_tool(name)} {server.port}"; exit 4; }}',
            "  sleep 0.05; look",
            "done",
        ]
    done = await node.sh("\n".join(lines), check=False, timeout=90)
    if done.exit_code == 0:
        return
    words = done.stdout.split(maxsplit=3)
    if words[:1] == ["taken"]:
        raise UserError(
            f"{node.name}: port {words[2]}",
            f"must be free for the server of {words[1]}",
            seen=words[3].strip() if len(words) > 3 else None,
            fix="Stop what listens there, or measure between other nodes",
        )
    reason = (
        f"the server of {words[1]} did not listen on port {words[2]}"
        if words[:1] == ["silent"]
        else done.stderr
    )
    raise UserError(
        f"{node.name}: servers", f"could not be started: {reason.strip()}", fix="See `journalctl` on the node"
    )


def _tool(name: str) -> str:
    return name.partition("-")[0]


async def stop(node: Node) -> None:
    """Stop what `start` started; none is no error."""
    await node.sh(STOP)
