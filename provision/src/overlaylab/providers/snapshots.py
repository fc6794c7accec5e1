"""VMs made by Vagrant and kept clean by snapshots: all of it that does not depend on the hypervisor."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Unpack

from overlaylab.core import paths
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import NodeError
from overlaylab.core.model import JSON, Variant
from overlaylab.core.progress import step
from overlaylab.image import node_image
from overlaylab.image.vagrant import Vagrant, read_json
from overlaylab.machine import ready, ssh_keys
from overlaylab.nodes import ssh
from overlaylab.providers import Entered, How, Say, naming
from overlaylab.providers.made_nodes import MadeNodes
from overlaylab.specs import overlays
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory, InventoryNode, write_inventory

BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
BOOT_SECONDS = 240
# Prints the boot's id once all units have been started.
BOOTED = f"""case $(systemctl is-system-running) in running | degraded) {BOOT_ID} ;; esac"""

# After a revert a node's clock is behind by the time since the snapshot.
SET_CLOCK = "date -u -s @{now:.3f} >/dev/null"


def digest(*parts: object) -> str:
    """First 12 hex digits of the SHA-256 over the parts as JSON: a snapshot's or a cluster's key."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


class SnapshotVMs(MadeNodes, ABC):
    """A cluster of VMs. See `overlaylab.providers.Provider` for the verbs.

    A hypervisor's class says how to look at, save, restore and remove the machines that hold the nodes
    (the abstract methods); when, in which order and under which name is decided here.
    """

    # The hypervisor's words for a machine that is off.
    OFF: frozenset[str]

    def __init__(
        self,
        spec: ClusterSpec,
        say: Say,
        accelerator: str,
        box: str,
        made_of: Sequence[object] = (),
        **how: Unpack[How],
    ) -> None:
        """box: name under which Vagrant gets the image; made_of: what else than the image the nodes come from."""
        super().__init__(spec, say, **how)
        self.accelerator = accelerator
        vagrantfile = (paths.ROOT / "vagrant" / "Vagrantfile").read_text()
        key = ssh_keys.ensure()
        # The public key too: nodes let in the one that they were made with.
        told = [naming.script(node) for node in spec.nodes]
        self._others = (spec.digest, accelerator, vagrantfile, told, ssh_keys.public(key), *made_of)
        # Names of the nodes' machines, as the hypervisor knows them, in the nodes' order.
        self.machines = [f"overlaylab-{spec.name}-{node.name}" for node in spec.nodes]
        self.vagrant = Vagrant(
            spec.name,
            box=box,
            accelerator=accelerator,
            key=key,
            provider=self.name,
            folder=self.folder,
        )
        self._names: dict[Variant, str] = {}

    @property
    def key(self) -> str:
        """Of all that nodes are made of; known for good once the image is built."""
        return digest(self.image, *self._others)

    # -- the hypervisor ---------------------------------------------------------------------------

    @abstractmethod
    async def states(self) -> Mapping[str, str]:
        """State of every machine that the hypervisor has, others' too, by name; ``running`` where it runs."""

    @abstractmethod
    async def snapshots_of(self, machine: str) -> set[str]:
        """Names of a machine's snapshots."""

    @abstractmethod
    async def take(self, snapshot: str) -> None:
        """Snapshot memory and disk of all nodes at one moment, in place of snapshots of that name."""

    @abstractmethod
    async def restore(self, snapshot: str) -> None:
        """Put all nodes back to the snapshot and let them run on. NodeError where they do not come back."""

    @abstractmethod
    async def forget(self, snapshots: Sequence[str]) -> None:
        """Delete these snapshots from those nodes that have them."""

    @abstractmethod
    async def refuse_foreign(self, machines: Sequence[str]) -> None:
        """UserError where machines of our names are not this cache folder's."""

    @abstractmethod
    async def before_vagrant(self) -> None:
        """Whatever `vagrant up` finds ready: its box, networks, room for disks."""

    @abstractmethod
    async def switch_off(self, machines: Sequence[str]) -> None:
        """End these machines, which are not off, as a power cut would; their snapshots stay."""

    @abstractmethod
    async def remove_machines(self) -> None:
        """Delete the nodes' machines with disks and snapshots, and what only they needed; none is no error."""

    # -- what is there ----------------------------------------------------------------------------

    def describe(self) -> JSON:
        emulated = ACCELERATORS[self.accelerator].is_emulated
        return {
            node.name: {
                "underlay_address": str(node.underlay_address),
                "zone": node.zone,
                "memory_mib": node.memory_mib,
                "cpus": node.cpus_without_kvm if emulated else node.cpus,
            }
            for node in self.spec.nodes
        }

    def clean_snapshot(self) -> str:
        return f"clean-{self.key}"

    def snapshot(self, variant: Variant) -> str:
        """Name of the variant's converged snapshot; everything that went in is in its two keys.

        The first covers image, cluster and role: where it has changed, the snapshot is of no use any more.
        The second covers the role's arguments and the underlay's MTU: others may be wanted again.
        """
        if variant not in self._names:  # once: a role edited during a run does not change the run
            arguments = overlays.arguments_of(variant, self.role_arguments)
            key = digest(variant.key, arguments, self.underlay_mtu)
            self._names[variant] = f"{self._made_of(variant.overlay)}-{variant.key}-{key}"
        return self._names[variant]

    def is_converged(self, variant: Variant, snapshots: Iterable[str]) -> bool:
        """Whether one of the snapshots is the variant's, under whatever MTU and arguments."""
        name = re.escape(f"{self._made_of(variant.overlay)}-{variant.key}")
        return any(re.fullmatch(f"{name}-[0-9a-f]{{12}}", snapshot) for snapshot in snapshots)

    def _made_of(self, overlay: str) -> str:
        return f"{overlay}-{digest(self.key, overlays.role_digest(overlay))}"

    async def status(self) -> dict[str, str]:
        """State of each node in the hypervisor's words: ``running``, ``shut off``, ``poweroff``, …; ``absent``."""
        known = await self.states()
        return {
            node.name: known.get(machine, "absent")
            for node, machine in zip(self.spec.nodes, self.machines, strict=True)
        }

    async def kept(self) -> set[str]:
        """Snapshots that all nodes have; none where a node is absent."""
        known = await self.states()
        if any(machine not in known for machine in self.machines):
            return set()
        return set.intersection(*[await self.snapshots_of(machine) for machine in self.machines])

    # -- life cycle -------------------------------------------------------------------------------

    async def up(self) -> None:
        """Nodes that run in the clean state, made if need be."""
        known = await self.states()
        made = [machine for machine in self.machines if machine in known]
        await self.refuse_foreign(made)
        state = read_json(self.folder / "state.json")
        if made and (state.get("key") != self.key or len(made) < len(self.machines)):
            self.say(
                f"the nodes of {self.cluster} were made from another image, cluster file or accelerator, or for another SSH key"
            )
            with step("vagrant-destroy", "removing them", 8):
                await self.remove_nodes()
            made = []
        if made and self.clean_snapshot() in await self.kept():
            try:
                await self.revert(self.clean_snapshot())
                return
            except NodeError as error:
                # The hypervisor was killed while it wrote, say: nodes can be made again at any time.
                self.say(f"the nodes do not come back from their snapshot ({error})")
        if made:
            with step("vagrant-destroy", "removing nodes that were left half made", 8):
                await self.remove_nodes()
        await self._make()

    async def _make(self) -> None:
        node_image.build(self.system_name)
        # Per node: its changes plus a snapshot of its memory for each mode.
        needed = sum(node.memory_mib for node in self.spec.nodes)
        ready.preflight(memory_mib=needed + 512, disk_bytes=len(self.machines) * 4 * 2**30)
        await self.before_vagrant()
        names = ", ".join(node.name for node in self.spec.nodes)
        estimate = 120 if ACCELERATORS[self.accelerator].is_emulated else 60
        with step(
            f"vagrant-up-{self.name}-{self.accelerator}", f"bringing up {names} with Vagrant", estimate
        ):
            await self.vagrant("up", "--no-destroy-on-error")
        # Before the clean snapshot, which all others come from: the host keys are on the disks that it saves.
        pinned = await ssh.pin(await self.found())
        write_inventory(self.folder / "inventory.yml", Inventory(self.cluster, self.name, pinned))
        self._nodes = None
        await asyncio.gather(*(self.nodes[node.name].sh(naming.script(node)) for node in self.spec.nodes))
        self.nodes.drop()
        await self.take(self.clean_snapshot())
        (self.folder / "state.json").write_text(
            json.dumps({"key": self.key, "image": self.image, "system": self.system_name})
        )
        await self._connect()

    async def found(self) -> tuple[InventoryNode, ...]:
        """The nodes that Vagrant has just brought up, without their host keys."""
        return await self.vagrant.nodes(
            {node.name: (str(node.underlay_address), node.zone) for node in self.spec.nodes}
        )

    async def revert(self, snapshot: str) -> float:
        """Revert all nodes; seconds until SSH answers on all of them with the clock set."""
        started = time.monotonic()
        self.nodes.drop()
        await self.restore(snapshot)
        await self._connect()
        return time.monotonic() - started

    async def _connect(self) -> None:
        await self.nodes.connect()
        await self.nodes.sh(SET_CLOCK.format(now=time.time()))

    async def down(self) -> None:
        """Switch the nodes off; snapshots stay, so that the next `up` takes seconds."""
        if (self.folder / "inventory.yml").exists():  # not where making them was interrupted
            self.nodes.drop()
        known = await self.states()
        await self.switch_off([m for m in self.machines if m in known and known[m] not in self.OFF])

    async def remove_nodes(self) -> None:
        """Delete the nodes, their disks and snapshots, and what only they needed."""
        await self.remove_machines()
        # What Vagrant noted would be taken for nodes that are still there (registry.clusters_of).
        shutil.rmtree(self.folder / "vagrant", ignore_errors=True)
        (self.folder / "inventory.yml").unlink(missing_ok=True)
        (self.folder / "state.json").unlink(missing_ok=True)

    # -- variants ---------------------------------------------------------------------------------

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        # The snapshot whose state the nodes are in, untouched since; None where that is not known.
        state = None
        if not await self._usable() or set((await self.status()).values()) != {"running"}:
            await self.up()
            state = self.clean_snapshot()
        have = await self.kept()
        for variant in variants:
            if self.snapshot(variant) not in have:
                await self._converge(variant, have, state)
                state = self.snapshot(variant)
                have.add(state)
        await self._prune()

    async def _usable(self) -> bool:
        """All nodes exist, are of this image and cluster file, and have their clean snapshot."""
        if read_json(self.folder / "state.json").get("key") != self.key:
            return False
        return self.clean_snapshot() in await self.kept()

    async def _converge(self, variant: Variant, have: set[str], state: str | None) -> None:
        overlay = overlays.load(variant.overlay)
        mode = overlay.modes[variant.key]
        relatives = [
            self.snapshot(overlay.variant(key))
            for key, other in overlay.modes.items()
            if mode.family and other.family == mode.family
        ]
        start = next((name for name in relatives if name in have), self.clean_snapshot())
        with step(f"converge-{variant.overlay}-{self.accelerator}", f"converging {variant}", 40):
            if start != state:
                await self.revert(start)
            await self.converge(variant)
            await self.take(self.snapshot(variant))

    async def _prune(self) -> None:
        """Delete snapshots whose key is no longer that of any variant: their role or image has changed."""
        current = (self.clean_snapshot(), *(self._made_of(name) for name in overlays.names()))
        have = set.union(*[await self.snapshots_of(machine) for machine in self.machines])
        if stale := sorted(name for name in have if not name.startswith(current)):
            await self.forget(stale)

    async def enter(self, variant: Variant, fresh: bool = False) -> Entered:
        if not fresh:
            return Entered(revert=await self.revert(self.snapshot(variant)), converge=0.0)
        with step(f"boot-{self.accelerator}", "booting the nodes", 30):
            booting = await self._boot()
        started = time.monotonic()
        with step(f"converge-{variant.overlay}-{self.accelerator}", f"converging {variant}", 40):
            await self.converge(variant)
        return Entered(revert=booting, converge=time.monotonic() - started, booted=True)

    async def _boot(self) -> float:
        """Boot all nodes with their clean disks; seconds until they have, the clock set."""
        started = time.monotonic()
        await self.revert(self.clean_snapshot())
        before = {name: done.stdout for name, done in (await self.nodes.sh(BOOT_ID)).items()}
        # In the background: a reboot that answers first has its connection to answer through.
        await self.nodes.sh("systemctl --no-block reboot", timeout=15)
        deadline = time.monotonic() + BOOT_SECONDS
        for name, node in self.nodes.items():
            while True:
                node.drop()
                with contextlib.suppress(NodeError):  # the old system is just about to go
                    await node.connect(timeout=5)
                    if (await node.sh(BOOTED, check=False, timeout=10)).stdout.strip() not in (
                        "",
                        before[name].strip(),
                    ):
                        break
                if time.monotonic() > deadline:
                    raise NodeError(f"{name} has not booted after {BOOT_SECONDS} s")
                await asyncio.sleep(0.5)
        await self._connect()
        return time.monotonic() - started

    async def renew(self) -> None:
        """Nothing to renew: a VM is reverted, whatever became of the runner."""

    async def leave(self) -> None:
        self.nodes.drop()
