"""VBoxManage and Vagrant's VirtualBox in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from lab_builders import inventory

from overlaylab.providers import vboxmanage
from overlaylab.providers.kinds.virtualbox import VirtualBox

NODES = ("overlaylab-pair-node1", "overlaylab-pair-node2")


def install(monkeypatch: pytest.MonkeyPatch) -> Hypervisor:
    """A VirtualBox with the cluster pair's machines running, in place of the one in the path."""
    found = Hypervisor()
    found.define(*NODES)
    monkeypatch.setattr(vboxmanage, "_run", found.run)
    monkeypatch.setattr(vboxmanage, "LOCK_POLL", 0.0)
    return found


class Refused(Exception):
    """VBoxManage ends with 1 and these words."""


@dataclass
class Snapshot:
    """A snapshot with its children, and what it keeps of the machine's memory."""

    name: str
    uuid: str
    memory: str | None
    children: list[Snapshot] = field(default_factory=list)


@dataclass
class Machine:
    uuid: str
    state: str = "running"
    memory: str | None = "fresh"
    root: Snapshot | None = None
    current: Snapshot | None = None
    # How many further commands find the lock of the process that has just ended.
    locked: int = 0

    def all(self, at: Snapshot | None = None, place: str = "") -> list[tuple[str, Snapshot]]:
        at = at or self.root
        if at is None:
            return []
        below = (self.all(child, f"{place}-{n}") for n, child in enumerate(at.children, 1))
        return [(place, at), *(pair for pairs in below for pair in pairs)]

    def find(self, key: str) -> Snapshot:
        """By name or UUID; the first of that name, as VirtualBox does."""
        for _, snapshot in self.all():
            if key in (snapshot.name, snapshot.uuid):
                return snapshot
        raise Refused(f"Could not find a snapshot named '{key}'")


@dataclass
class Hypervisor:
    """What VBoxManage would do, in memory. log: the commands that change anything."""

    machines: dict[str, Machine] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    fail: str | None = None
    version: tuple[int, str, str] = (0, "7.0.20r163906\n", "")
    made: int = 0

    def uuid(self) -> str:
        self.made += 1
        return f"{self.made:08x}-0000-4000-8000-000000000000"

    def define(self, *names: str) -> None:
        for name in names:
            self.machines[name] = Machine(self.uuid())

    def snapshots(self, name: str) -> dict[str, str]:
        """{place: name}"""
        return {place: snapshot.name for place, snapshot in self.machines[name].all()}

    def add(self, name: str, snapshot: str, parent: str | None = None) -> Snapshot:
        """A snapshot that is there already, below the parent or the root."""
        machine = self.machines[name]
        new = Snapshot(snapshot, self.uuid(), memory=snapshot)
        if machine.root is None:
            machine.root = new
        else:
            (machine.find(parent) if parent else machine.root).children.append(new)
        machine.current = new
        return new

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        await asyncio.sleep(0)
        if arguments == ("--version",):
            return self.version
        line = " ".join(arguments)
        try:
            if self.fail and self.fail in line:
                raise Refused("no space")
            return 0, self._do(line, *arguments), ""
        except Refused as refused:
            if "does not have any snapshots" in str(refused):
                return 1, f"{refused}\n", ""
            return 1, "", f"VBoxManage: error: {refused}"

    def _do(self, line: str, command: str, subject: str, *rest: str) -> str:
        if (command, subject) == ("list", "vms"):
            return "".join(f'"{name}" {{{machine.uuid}}}\n' for name, machine in self.machines.items())
        found = [m for name, m in self.machines.items() if subject in (name, m.uuid)]
        if not found:
            raise Refused(f"Could not find a registered machine named '{subject}'")
        machine = found[0]
        if command == "showvminfo":
            return f'name="{subject}"\nUUID="{machine.uuid}"\nmemory=1024\nVMState="{machine.state}"\n'
        if (command, rest[0]) == ("snapshot", "list"):
            return self._list(machine)
        if machine.locked:
            machine.locked -= 1
            raise Refused(f"The machine '{subject}' is already locked for a session (or being unlocked)")
        self.log.append(line)
        getattr(self, f"_{command}")(machine, *rest)
        return ""

    def _list(self, machine: Machine) -> str:
        if machine.root is None:
            raise Refused("This machine does not have any snapshots")
        lines = []
        for place, snapshot in machine.all():
            lines += [f'SnapshotName{place}="{snapshot.name}"', f'SnapshotUUID{place}="{snapshot.uuid}"']
            if snapshot is machine.current:
                lines += [
                    f'CurrentSnapshotName="{snapshot.name}"',
                    f'CurrentSnapshotUUID="{snapshot.uuid}"',
                    f'CurrentSnapshotNode="SnapshotName{place}"',
                ]
        return "\n".join(lines) + "\n"

    def _controlvm(self, machine: Machine, verb: str) -> None:
        before, after = {
            "pause": ("running", "paused"),
            "resume": ("paused", "running"),
            "poweroff": (machine.state, "poweroff"),
        }[verb]
        if machine.state != before or machine.state in vboxmanage.OFF:
            raise Refused(f"Invalid machine state: {machine.state}")
        machine.state = after
        if after == "poweroff":
            machine.memory = None
            machine.locked = 2

    def _startvm(self, machine: Machine, *options: str) -> None:
        assert options == ("--type", "headless")
        assert machine.state in vboxmanage.OFF
        machine.memory = machine.memory or "booted"
        machine.state = "running"

    def _snapshot(self, machine: Machine, verb: str, key: str, *rest: str) -> None:
        if verb == "take":
            states = {m.state for name, m in self.machines.items() if name in NODES}
            assert states == {"paused"}, "a node runs while another is saved"
            new = Snapshot(key, self.uuid(), machine.memory)
            if machine.current:
                machine.current.children.append(new)
            machine.root = machine.root or new
            machine.current = new
        elif verb == "restore":
            if machine.state not in vboxmanage.OFF:
                raise Refused(f"Cannot delete the current state of the running machine ({machine.state})")
            machine.current = machine.find(key)
            machine.memory = machine.current.memory
            machine.state = "saved" if machine.memory else "poweroff"
        elif verb == "edit":
            assert rest[0] == "--name"
            machine.find(key).name = rest[1]
        elif verb == "delete":
            self._delete(machine, machine.find(key))

    def _delete(self, machine: Machine, gone: Snapshot) -> None:
        if machine.state not in vboxmanage.OFF:
            raise Refused(f"Invalid machine state: {machine.state}")
        if len(gone.children) > 1:
            raise Refused(f"Snapshot '{gone.name}' cannot be deleted, because it has child snapshots")
        parent = next((s for _, s in machine.all() if gone in s.children), None)
        if parent:
            parent.children.remove(gone)
            parent.children += gone.children
        else:
            machine.root = gone.children[0] if gone.children else None
        if machine.current is gone:
            machine.current = parent

    def _unregistervm(self, machine: Machine, option: str) -> None:
        assert option == "--delete"
        if machine.state not in vboxmanage.OFF:
            raise Refused(f"Cannot unregister the machine while it is locked ({machine.state})")
        self.machines = {name: m for name, m in self.machines.items() if m is not machine}


class FakeVagrant:
    """Imports machines, notes their UUIDs as Vagrant does, and destroys those that it knows."""

    def __init__(self, provider: VirtualBox, hypervisor: Hypervisor) -> None:
        self.provider, self.hypervisor = provider, hypervisor
        self.log: list[str] = []

    def note(self) -> None:
        for node in self.provider.spec.nodes:
            machine = self.hypervisor.machines.get(f"overlaylab-pair-{node.name}")
            if machine:
                path = self.provider.folder / "vagrant" / "machines" / node.name / "virtualbox" / "id"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(machine.uuid)

    async def __call__(self, *arguments: str) -> str:
        self.log.append(" ".join(arguments))
        if arguments[0] == "up":
            self.hypervisor.define(*NODES)
            self.note()
        else:
            assert arguments == ("destroy", "-f")
            for path in self.provider.folder.glob("vagrant/machines/*/virtualbox/id"):
                uuid = path.read_text()
                known = self.hypervisor.machines.items()
                self.hypervisor.machines = {name: m for name, m in known if m.uuid != uuid}
                path.unlink()
        return ""

    def remove_other_boxes(self) -> list[str]:
        self.log.append("remove other boxes")
        return []

    async def add_box(self, box: Path) -> bool:
        self.log.append(f"add {box.name}")
        return True

    async def nodes(self, underlays):
        return inventory("a", "a").nodes
