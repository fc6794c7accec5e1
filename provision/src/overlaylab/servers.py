"""Servers of the benchmark tools on a node, inside an endpoint's namespace, as transient systemd units.

A unit outlives a broken SSH connection and ends by itself when the runner was killed.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from overlaylab.errors import UserError
from overlaylab.ssh import Node

PREFIX = "overlaylab-server-"
ENDPOINT = "endpoint"
LIFETIME = 3600
"""Seconds after which a forgotten server ends."""


TRANSIENT = "/run/systemd/transient"
"""Where systemd keeps the units that systemd-run(1) makes."""


def _stop() -> str:
    """A cell that begins in a snapshot has none to stop, and asking systemd takes 0.2 s on an emulated CPU."""
    return f"""
for unit in {TRANSIENT}/{PREFIX}*; do
    if [ -e "$unit" ]; then systemctl stop '{PREFIX}*'; systemctl reset-failed '{PREFIX}*' 2>/dev/null; fi
    break
done"""


def _look(endpoint: str) -> str:
    return (
        f"look() {{ table=$(ip netns exec {endpoint} cat /proc/net/tcp /proc/net/tcp6 2>/dev/null || :); }}"
    )


def _listens(port: int) -> str:
    """A test, for a shell, whether `look` saw a listener on the TCP port (proc(5), /proc/net/tcp: state 0A)."""
    return f"case $table in *:{port:04X}\\ {'0' * 8}:0000\\ 0A\\ * | *:{port:04X}\\ {'0' * 32}:0000\\ 0A\\ *) ;; *) false ;; esac"


def in_endpoint(argv: Sequence[str], timeout: float) -> str:
    """The command line, for a shell, that runs argv in the endpoint and ends it after `timeout` seconds."""
    return shlex.join(["timeout", "-k", "2", f"{timeout:g}", "ip", "netns", "exec", ENDPOINT, *argv])


async def start(node: Node, servers: dict[str, tuple[Sequence[str], int]], endpoint: str = ENDPOINT) -> None:
    """Start the servers {tool: (argv, TCP port)} on the node and wait until every port listens.

    endpoint: the namespace that they run in.
    Servers of an earlier cell are stopped first. UserError where a port is taken by somebody else.
    """
    lines = [_stop(), _look(endpoint), "look"]
    for tool, (_, port) in servers.items():
        # ss costs 0.2 s on an emulated CPU; it is asked only for the words of an error.
        owner = f"$(ip netns exec {endpoint} ss -Hltnp 'sport = :{port}')"
        lines.append(f'if {_listens(port)}; then echo "taken {tool} {port} {owner}"; exit 3; fi')
    for tool, (argv, _) in servers.items():
        command = shlex.join(["ip", "netns", "exec", endpoint, *argv])
        lines.append(
            f"systemd-run --quiet --collect --unit={PREFIX}{tool} -p RuntimeMaxSec={LIFETIME} {command}"
        )
    lines += ["tries=0", "look"]
    for tool, (_, port) in servers.items():
        lines += [
            f"until {_listens(port)}; do",
            f'  tries=$((tries + 1)); [ $tries -lt 200 ] || {{ echo "silent {tool} {port}"; exit 4; }}',
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


async def stop(node: Node) -> None:
    """Stop what `start` started; none is no error."""
    await node.sh(_stop())
