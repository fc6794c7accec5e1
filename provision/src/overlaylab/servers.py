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


def in_endpoint(argv: Sequence[str], timeout: float) -> str:
    """The command line, for a shell, that runs argv in the endpoint and ends it after `timeout` seconds."""
    return shlex.join(["timeout", "-k", "2", f"{timeout:g}", "ip", "netns", "exec", ENDPOINT, *argv])


async def start(node: Node, servers: dict[str, tuple[Sequence[str], int]]) -> None:
    """Start the servers {tool: (argv, TCP port)} on the node and wait until every port listens.

    Servers of an earlier cell are stopped first. UserError where a port is taken by somebody else.
    """
    lines = [f"systemctl stop '{PREFIX}*' 2>/dev/null; systemctl reset-failed '{PREFIX}*' 2>/dev/null"]
    for tool, (argv, port) in servers.items():
        command = shlex.join(["ip", "netns", "exec", ENDPOINT, *argv])
        lines += [
            f"taken=$(ip netns exec {ENDPOINT} ss -Hltnp 'sport = :{port}')",
            f'if [ -n "$taken" ]; then echo "taken {tool} {port} $taken"; exit 3; fi',
            f"systemd-run --quiet --collect --unit={PREFIX}{tool} -p RuntimeMaxSec={LIFETIME} {command}",
        ]
    for tool, (_, port) in servers.items():
        lines += [
            "tries=0",
            f"until [ -n \"$(ip netns exec {ENDPOINT} ss -Hltn 'sport = :{port}')\" ]; do",
            f'  tries=$((tries + 1)); [ $tries -lt 200 ] || {{ echo "silent {tool} {port}"; exit 4; }}; sleep 0.05',
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
    await node.sh(f"systemctl stop '{PREFIX}*' 2>/dev/null || :")
