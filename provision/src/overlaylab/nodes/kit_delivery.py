"""The node kit on a host that somebody else made: whether it is there, bringing it, taking it away.

Asked of the host: a kernel for the kit's architecture, sh, tar, gzip and sha256sum (BusyBox has them), root. What was sent
when a transfer broke off is not sent again. Nothing is changed outside the kit's own folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from overlaylab.core import progress
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.paths import NODE_HOME, OTHER_NODE_HOME
from overlaylab.image.kit import DIGEST, Kit
from overlaylab.nodes.ssh import Node, Nodes

# What uname(2) calls the packages' architectures.
MACHINES = {"amd64": "x86_64"}
# Bytes that are sent at a time: each is one command on the host.
CHUNK = 4 << 20
# Room on the host for the archive, the tree, and the tree of a kit before it.
SPARE = 20 << 20

# Folders of a kit; what overlays bring lies beside them.
FOLDERS = ("bin", "lib", "libexec", "share")

# Prints NAME=VALUE lines. Changes nothing but the time of a folder. Only what sh and BusyBox have.
ASK = f"""
printf 'machine=%s\\n' "$(uname -m)"
for home in {NODE_HOME} {OTHER_NODE_HOME}; do
    if [ -r $home/{DIGEST} ]; then printf 'home=%s\\ndigest=%s\\n' $home "$(cat $home/{DIGEST})"; break; fi
done
for home in {NODE_HOME} {OTHER_NODE_HOME}; do
    if mkdir -p $home 2>/dev/null && : >$home/.writable 2>/dev/null; then
        rm -f $home/.writable
        printf 'place=%s\\n' $home
        printf 'free=%s\\n' "$(df -Pk $home | awk 'NR == 2 {{ print $4 }}')"
        for part in $home/.*.part; do
            if [ -e "$part" ]; then printf 'part=%s %s\\n' "${{part##*/}}" "$(wc -c <"$part")"; fi
        done
        # A folder that was made only for this question.
        rmdir $home 2>/dev/null
        break
    fi
done
for command in tar gzip sha256sum; do
    command -v $command >/dev/null || printf 'lacks=%s\\n' $command
done
"""


@dataclass(frozen=True)
class Found:
    """What a host has. place: where a kit can lie, None where nothing can be written. free: bytes there.

    part: {name of a file that was sent in part: bytes}.
    """

    machine: str
    home: str | None
    digest: str | None
    place: str | None
    free: int
    part: dict[str, int]
    lacks: tuple[str, ...]


def read(told: str) -> Found:
    """What `ASK` printed."""
    one: dict[str, str] = {}
    part: dict[str, int] = {}
    lacks: list[str] = []
    for line in told.splitlines():
        name, _, value = line.partition("=")
        if name == "part":
            file, _, size = value.rpartition(" ")
            part[file] = int(size)
        elif name == "lacks":
            lacks.append(value)
        else:
            one[name] = value.strip()
    free = one.get("free", "")
    return Found(
        one.get("machine", ""), one.get("home"), one.get("digest"), one.get("place"),
        int(free) * 1024 if free.isdigit() else 0, part, tuple(lacks),
    )  # fmt: skip


def refusal(node: str, found: Found, kit: Kit) -> UserError | None:
    """Why a host cannot have the kit, before anything is changed; None where it can."""
    if found.machine != MACHINES[kit.architecture]:
        return UserError(
            node,
            f"must have a CPU that the node kit runs on: {MACHINES[kit.architecture]}",
            seen=found.machine or "none told",
            fix="Measure hosts of that architecture",
        )
    if found.place is None:
        return UserError(
            node,
            f"must have a folder for the node kit that root can write: {NODE_HOME} or {OTHER_NODE_HOME}",
            fix="Mount one of their parents writable",
        )
    if found.lacks:
        return UserError(
            node,
            "must have tar, gzip and sha256sum, which unpack the node kit",
            seen=f"without {', '.join(found.lacks)}",
            fix="Install them there, or BusyBox, which has all of them",
        )
    wanted = kit.manifest["archive"]["bytes"] + sum(kit.manifest["bytes"].values()) + SPARE
    if found.free < wanted:
        return UserError(
            f"{node}: {found.place}",
            f"must have {wanted / 1e6:.0f} MB free for the node kit",
            seen=f"{found.free / 1e6:.0f} MB",
            fix="Free some disk there",
        )
    return None


async def ensure(nodes: Nodes, kit: Callable[[], Kit]) -> Kit:
    """Bring the kit to every node that has not this one, saying so. Raises UserError before anything is changed.

    kit: called once the nodes have answered, as building one may take a minute.
    """
    found = {name: read(done.stdout) for name, done in (await nodes.sh(ASK)).items()}
    wanted = kit()  # nobody else waits, and a build takes the main thread, for signals
    lacking = [name for name, one in found.items() if one.digest != wanted.digest]
    for name in lacking:
        if wrong := refusal(name, found[name], wanted):
            raise wrong
    if not lacking:
        return wanted
    size = wanted.manifest["archive"]["bytes"]
    for name in lacking:
        there = f" in place of {found[name].digest or ''}"[:25] if found[name].digest else ""
        progress.say(
            f"{name}: the node kit goes to {found[name].place}{there}; `./task hosts:clean` takes it away again"
        )
    with progress.step(
        "kit-delivery", f"sending the node kit to {', '.join(lacking)}, {size / 1e6:.0f} MB each", 30
    ):
        await asyncio.gather(*(_bring(nodes[name], found[name], wanted) for name in lacking))
    # Shells that are open have the path of a host without a kit.
    nodes.drop()
    await nodes.connect()
    return wanted


async def _bring(node: Node, found: Found, kit: Kit) -> None:
    home = found.place
    assert home is not None
    part = f".kit-{kit.archive_sha256[:16]}.part"
    try:
        await _send(node, kit, f"{home}/{part}", found.part.get(part, 0))
        done = await node.sh(_unpack_script(home, part, kit), check=False, timeout=900)
    except NodeError as broken:
        raise NodeError(f"{broken}; what arrived of the node kit is kept, type the command again") from broken
    if done.exit_code:
        raise UserError(
            f"{node.name}: {home}",
            "must take the node kit whole",
            seen=(done.stderr.strip() or f"exit code {done.exit_code}")[-500:],
            fix="Look at that disk (its room, whether it is mounted noexec), then type the command again",
        )


async def _send(node: Node, kit: Kit, path: str, have: int) -> None:
    size = kit.manifest["archive"]["bytes"]
    folder = path.rpartition("/")[0]
    # What others left in part is of other kits.
    start = f'mkdir -p {folder}; for other in {folder}/.kit-*.part; do [ "$other" = {path} ] || rm -f "$other"; done'
    await node.sh(start if have <= size else f"{start}; rm -f {path}")
    sent = have if have <= size else 0
    told = 0
    with kit.archive.open("rb") as file:
        file.seek(sent)
        while chunk := file.read(CHUNK):
            done = await node.sh(f"cat >>{path}", stdin=chunk, timeout=600, check=False)
            if done.exit_code:
                await node.sh(f"rm -f {path}", check=False)
                raise UserError(
                    f"{node.name}: {path}", "must be written", seen=done.stderr.strip(), fix="Free some disk there",
                )  # fmt: skip
            sent += len(chunk)
            if size and sent * 4 // size > told:
                told = sent * 4 // size
                progress.say(f"  {node.name}: {100 * sent // size} % of {size / 1e6:.0f} MB")


def _unpack_script(home: str, part: str, kit: Kit) -> str:
    """POSIX sh: check, unpack beside, try, and move into place; the digest comes last. Whole or not at all."""
    return f"""
cd {home} || exit 1
told=$(sha256sum {part}) || exit 1
if [ "${{told%% *}}" != {kit.archive_sha256} ]; then
    rm -f {part}
    echo "what arrived has the SHA-256 ${{told%% *}}, not {kit.archive_sha256}" >&2
    exit 1
fi
rm -rf .new && mkdir .new || exit 1
if ! (gzip -dc {part} | (cd .new && tar -xf -)) || ! .new/bin/true; then
    rm -rf .new {part}
    exit 1
fi
rm -f {DIGEST}
for folder in {" ".join(FOLDERS)}; do
    rm -rf "$folder" && mv .new/"$folder" "$folder" || exit 1
done
rm -rf .new {part}
# Labels as the system's policy has them for programs below /opt.
if command -v restorecon >/dev/null; then restorecon -R {home} >/dev/null 2>&1 || :; fi
echo {kit.digest} >{DIGEST}
"""


CLEAN = f"""
for home in {NODE_HOME} {OTHER_NODE_HOME}; do
    if [ -e $home/{DIGEST} ] || [ -d $home/overlay ] || [ -d $home/.new ]; then rm -rf $home && echo $home; fi
    rm -rf $home/.kit-*.part 2>/dev/null
    rmdir $home 2>/dev/null
done
rmdir /run/overlaylab 2>/dev/null
:
"""


async def remove(nodes: Nodes) -> dict[str, list[str]]:
    """Take kit and daemons off all nodes; {node: folders that were removed}."""
    done = await nodes.sh(CLEAN, check=False, timeout=300)
    # The open shells are the kit's own.
    nodes.drop()
    return {name: one.stdout.split() for name, one in done.items()}
