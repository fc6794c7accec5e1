"""VirtualBox through its own command line: machines, and snapshots of a whole cluster at once.

Written from VirtualBox's manual (chapter "VBoxManage") and the sources of VBoxManage 6.1 to 7.1; never run on a
machine that has VirtualBox.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from overlaylab.core.errors import NodeError, UserError

PROGRAM = "VBoxManage"
# The first with a virtio-scsi controller, which the image's kernel boots from, and the first that always uses
# the CPU's own virtualisation (its change log: software virtualisation was removed).
OLDEST = (6, 1)

# Words for a machine without a process (VBoxManageInfo.cpp, machineStateToName).
OFF = frozenset({"poweroff", "saved", "aborted", "aborted-saved"})

# What the name of a snapshot begins with that is of no use.
LEFTOVER = "leftover-"

# Seconds to wait for the process of a machine that was switched off to give it up.
LOCK_PATIENCE = 30.0
LOCK_POLL = 0.5


class VBoxError(NodeError):
    """VBoxManage ended with an error; the text is its own."""


async def vboxmanage(*arguments: str, check: bool = True) -> str:
    """Run `VBoxManage ARGUMENTS` and return what it printed.

    A machine that is being started, saved or switched off is locked for a moment longer than the command that
    did it takes; VBoxManage is asked again until it is free.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + LOCK_PATIENCE
    while True:
        code, out, error = await _run(*arguments)
        if not code:
            return out
        if not _is_locked(error) or loop.time() >= until:
            break
        await asyncio.sleep(LOCK_POLL)
    if check:
        raise VBoxError(f"VBoxManage {' '.join(arguments)}: {error or out.strip()}")
    return out


async def _run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error. UserError where there is no VBoxManage."""
    try:
        process = await asyncio.create_subprocess_exec(
            PROGRAM, *arguments,
            env=os.environ | {"LC_ALL": "C", "LANG": "C"},  # its words are translated since 7.0
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    except FileNotFoundError:
        raise UserError(
            "PROVIDER=virtualbox",
            f"needs the program {PROGRAM}",
            seen="none in the path",
            fix="Install VirtualBox (Debian has it in no stable release: https://www.virtualbox.org/wiki/"
            "Linux_Downloads), or leave PROVIDER out: libvirt needs nothing of it",
        ) from None
    out, error = await process.communicate()
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace").strip()


def _is_locked(error: str) -> bool:
    """Whether it is the lock of a session that ends by itself."""
    # ``The machine 'a' is already locked for a session (or being unlocked)``, ``… already has a lock request pending``
    # (VirtualBox 6.1 to 7.1, MachineImpl.cpp).
    return "already locked" in error or "lock request pending" in error


async def each(machines: Iterable[str], command: str, *arguments: str) -> None:
    """The same command on all machines at once.

    VBoxError if one failed, but only once all have ended: none goes on behind the back of what comes next.
    """
    commands = (vboxmanage(command, machine, *arguments) for machine in machines)
    for outcome in await asyncio.gather(*commands, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


async def refuse_unusable() -> None:
    """UserError unless there is a VirtualBox that can run the nodes.

    `VBoxManage --version` prints ``6.1.38r153438``, ``6.1.38_Debianr153438`` or ``7.0.20_Ubuntur163906``, after
    warnings where its kernel modules are absent (so does Vagrant read it, plugins/providers/virtualbox/driver/meta.rb).
    """
    code, out, error = await _run("--version")
    text = f"{out}\n{error}"
    if "WARNING" in text or code:
        raise UserError(
            "PROVIDER=virtualbox",
            "needs VirtualBox's kernel modules",
            seen=" ".join(text.split()),
            fix="Do what it says (usually `sudo /sbin/vboxconfig`), or leave PROVIDER out: "
            "libvirt needs nothing of it",
        )
    found = re.match(r"(\d+)\.(\d+)", out.strip())
    if not found or (int(found[1]), int(found[2])) < OLDEST:
        raise UserError(
            "PROVIDER=virtualbox",
            f"needs VirtualBox {'.'.join(map(str, OLDEST))} or later",
            seen=out.strip(),
            fix="Install a later one, or leave PROVIDER out: libvirt needs nothing of it",
        )


async def registered() -> dict[str, str]:
    """UUIDs of this user's machines by name."""
    # A line is ``"node" {0f3a…}``, and ``"<inaccessible>" {…}`` for one whose files are gone.
    return dict(re.findall(r'^"(.+)" \{([0-9a-f-]+)\}$', await vboxmanage("list", "vms"), re.MULTILINE))


async def state(machine: str) -> str:
    """``running``, ``paused``, ``saved``, ``poweroff``, ``aborted``, …; ``unknown`` where it is not told."""
    # A line is ``VMState="running"`` (as Vagrant reads it, driver/version_5_0.rb, read_state).
    info = await vboxmanage("showvminfo", machine, "--machinereadable")
    found = re.search(r'^VMState="(.+)"$', info, re.MULTILINE)
    return found[1] if found else "unknown"


async def states() -> dict[str, str]:
    """State of every registered machine of the lab, of all clusters, by name."""
    names = [name for name in await registered() if name.startswith("overlaylab-")]
    return dict(zip(names, await asyncio.gather(*map(state, names)), strict=True))


class Snapshot(NamedTuple):
    """A machine's snapshot. place: where in the tree, ``""`` the root, ``-1-2`` the second child of ``-1``."""

    place: str
    name: str
    uuid: str

    @property
    def parent(self) -> str | None:
        """Place of the snapshot that it comes from."""
        return self.place.rpartition("-")[0] if self.place else None


async def snapshots(machine: str) -> list[Snapshot]:
    """The machine's snapshots, parents before children.

    `snapshot … list --machinereadable` prints ``SnapshotName-1-2="…"``, ``SnapshotUUID-1-2="…"``, and
    ``CurrentSnapshotName`` and ``…Node`` for the current one (VBoxManageInfo.cpp, showSnapshots). Without
    snapshots it prints ``This machine does not have any snapshots`` and ends with 1.
    """
    try:
        listing = await vboxmanage("snapshot", machine, "list", "--machinereadable")
    except VBoxError as error:
        if "does not have any snapshots" in str(error):
            return []
        raise
    found = re.findall(r'^SnapshotName((?:-\d+)*)="(.+)"\nSnapshotUUID\1="(.+)"$', listing, re.MULTILINE)
    return [Snapshot(*fields) for fields in found]


async def take_snapshot(machines: Sequence[str], name: str) -> None:
    """Snapshot memory and disk of all machines at one moment: none runs while another is saved.

    A snapshot of a paused machine keeps its memory, as one of a running machine does, and leaves it paused.
    `--live` would let it run on meanwhile (manual, "VBoxManage snapshot").
    """
    for machine in machines:
        # One may have it already: of a command that was killed, or failed on another node. It is out of the way
        # under another name, as deleting merges disks and that takes long while the machine runs.
        for snapshot in await snapshots(machine):
            if snapshot.name == name:
                await vboxmanage("snapshot", machine, "edit", snapshot.uuid, "--name", f"{LEFTOVER}{name}")
    await each(machines, "controlvm", "pause")
    try:
        await each(machines, "snapshot", "take", name)
    finally:
        await each(machines, "controlvm", "resume")


async def restore(machines: Sequence[str], name: str) -> None:
    """Put all machines back to the snapshot and start them together.

    A machine has to be off to be restored; afterwards it is `saved`, and starting it loads its memory. There is no
    way to start it paused with `startvm`, so one node runs up to a second or so before another.
    """
    for machine in machines:
        # Before any is switched off: a name that one does not have must change nothing.
        if name not in {snapshot.name for snapshot in await snapshots(machine)}:
            raise VBoxError(f"machine {machine} has no snapshot {name}")
    await switch_off(machines)
    await each(machines, "snapshot", "restore", name)
    await each(machines, "startvm", "--type", "headless")


async def switch_off(machines: Sequence[str]) -> None:
    """End the machines that are not off, as a power cut would."""
    known = await asyncio.gather(*map(state, machines))
    await each(
        [machine for machine, state in zip(machines, known, strict=True) if state not in OFF],
        "controlvm",
        "poweroff",
    )


async def delete_snapshots(machine: str, names: Iterable[str]) -> None:
    """Delete those of the snapshots that the machine has; it has to be off.

    Children first, because VirtualBox merges a snapshot into its only child and refuses one that has more
    (SnapshotImpl.cpp, deleteSnapshot); such a one stays.
    """
    left = await snapshots(machine)
    wanted = set(names)
    for snapshot in reversed(left.copy()):
        children = [other for other in left if other.parent == snapshot.place]
        if snapshot.name in wanted and len(children) < 2:
            await vboxmanage("snapshot", machine, "delete", snapshot.uuid)
            if not children:  # else its child is in its place
                left.remove(snapshot)


async def remove(machine: str) -> None:
    """Delete a machine (its name or UUID) with disks and snapshots."""
    await switch_off([machine])
    await vboxmanage("unregistervm", machine, "--delete")
