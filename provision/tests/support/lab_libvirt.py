"""libvirt in memory, as virsh shows it."""

import asyncio
from dataclasses import dataclass, field

from overlaylab.image import vagrant
from overlaylab.providers import virsh

NODES = ("overlaylab-pair-node1", "overlaylab-pair-node2")


@dataclass
class Hypervisor:
    """What virsh would do, in memory. log: the commands that change anything."""

    domains: dict[str, str] = field(default_factory=dict)
    snapshots: dict[str, list[str]] = field(default_factory=dict)
    networks: dict[str, bool] = field(default_factory=dict)
    volumes: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    fail: str | None = None
    pool: str = ""
    leases: dict[str, str] = field(default_factory=dict)

    def define(self, *names: str, state: str = "running") -> None:
        for name in names:
            self.domains[name] = state
            self.snapshots[name] = []

    async def virsh(self, *arguments: str, check: bool = True) -> str:
        await asyncio.sleep(0)
        line = " ".join(arguments)
        try:
            if self.fail and self.fail in line:
                raise virsh.VirshError(f"virsh {line}: error: no space")
            return getattr(self, arguments[0].replace("-", "_"))(line, *arguments[1:])
        except virsh.VirshError:
            if check:
                raise
            return ""

    def _known(self, line: str, name: str, where) -> None:
        if name not in where:
            raise virsh.VirshError(f"virsh {line}: error: not found: {name}")
        self.log.append(line)

    def list(self, line: str, *_: str) -> str:
        return "\n".join(self.domains) + "\n\n"

    def domstate(self, line: str, name: str) -> str:
        return self.domains[name] + "\n\n"

    def domblklist(self, line: str, name: str) -> str:
        return f" vda   {self.pool or vagrant.pool_path()}/{name}.img\n\n"

    def domifaddr(self, line: str, name: str) -> str:
        address = self.leases.get(name)
        return f" vnet0      52:54:00:85:0d:e5    ipv4         {address}/24\n\n" if address else "\n"

    def pool_refresh(self, line: str, name: str) -> str:
        self.log.append(line)
        return ""

    def suspend(self, line: str, name: str) -> str:
        self._known(line, name, self.domains)
        self.domains[name] = "paused"
        return ""

    def resume(self, line: str, name: str) -> str:
        self._known(line, name, self.domains)
        self.domains[name] = "running"
        return ""

    def destroy(self, line: str, name: str) -> str:
        self._known(line, name, self.domains)
        self.domains[name] = "shut off"
        return ""

    def undefine(self, line: str, name: str, *_: str) -> str:
        self._known(line, name, self.domains)
        del self.domains[name]
        return ""

    def snapshot_list(self, line: str, name: str, _: str) -> str:
        return "\n".join(self.snapshots.get(name, []))

    def snapshot_create_as(self, line: str, name: str, snapshot: str) -> str:
        assert set(self.domains.values()) == {"paused"}, "a node runs while another is saved"
        if snapshot in self.snapshots[name]:
            raise virsh.VirshError(
                f"virsh {line}: error: operation failed: domain snapshot {snapshot} already exists"
            )
        self._known(line, name, self.domains)
        self.snapshots[name].append(snapshot)
        return ""

    def snapshot_revert(self, line: str, name: str, snapshot: str, _: str) -> str:
        self._known(line, snapshot, self.snapshots[name])
        self.domains[name] = "paused"
        return ""

    def snapshot_delete(self, line: str, name: str, snapshot: str, *_: str) -> str:
        self._known(line, snapshot, self.snapshots[name])
        self.snapshots[name].remove(snapshot)
        return ""

    def net_list(self, line: str, *options: str) -> str:
        return "\n".join(name for name, active in self.networks.items() if active or "--all" in options)

    def net_start(self, line: str, name: str) -> str:
        self._known(line, name, self.networks)
        self.networks[name] = True
        return ""

    def net_destroy(self, line: str, name: str) -> str:
        self._known(line, name, self.networks)
        self.networks[name] = False
        return ""

    def net_undefine(self, line: str, name: str) -> str:
        self._known(line, name, self.networks)
        del self.networks[name]
        return ""

    def vol_list(self, line: str, *_: str) -> str:
        return "\n".join(f" {name}   /pool/{name}" for name in self.volumes) + "\n"

    def vol_delete(self, line: str, name: str, *_: str) -> str:
        self._known(line, name, self.volumes)
        self.volumes.remove(name)
        return ""
