"""Nodes as system containers made by Vagrant, on this machine's own kernel.

There are no snapshots of what runs. A node is clean after each start instead: its root file system is an
overlay whose upper layer is emptied before every start (packer/lxc/template.sh), so that a reboot from within
is a clean node a few seconds later, and takes no root on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from overlaylab.core import lock, paths
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.core.progress import step
from overlaylab.image import lxc_box
from overlaylab.image.vagrant import Vagrant, read_json
from overlaylab.machine import packages, ready, ssh_keys
from overlaylab.nodes.ssh import Node
from overlaylab.providers import Entered, How, Say, lxc_config, lxc_host, naming, registry
from overlaylab.providers.capabilities import Capabilities
from overlaylab.providers.lxc_cpu import LxcCpu
from overlaylab.providers.made_nodes import MadeNodes
from overlaylab.specs import overlays
from overlaylab.specs.cluster import ClusterSpec
from overlaylab.specs.inventory import Inventory, InventoryNode, write_inventory

CAPABILITIES = Capabilities(
    "lxc",
    accelerator="shared-kernel",
    shares_kernel=True,
    limits_at_creation=True,
    needs=ready.Needs(groups=(packages.CONTAINERS,)),
    before_emulation=True,
)

# Seconds that a node has to come back clean by itself before it is killed and started from outside.
PATIENCE = 20.0
# Room for what one node changes.
NODE_DISK_BYTES = 10**9
# Room for the root file system that all nodes share.
ROOTFS_BYTES = 10**9

# In a node's upper layer from the moment it is told to reboot: where it is absent, the node is a clean one.
USED = "/.overlaylab-used"
REBOOT = (
    f"touch {USED}; "
    # reboot(2) itself, RB_AUTOBOOT: reboot(8) would first write out every file system of the machine.
    "(sleep 0.1; exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x01234567)') >/dev/null 2>&1 &"
)
# For a node that has just booted: exit code 3 where it has not (it is the one that was told to reboot).
SETTLED = """
[ ! -e {used} ] || exit 3
until ip -4 -o address show dev {interface} | grep -qF ' {address}/'; do sleep 0.05; done
systemctl is-system-running --wait >/dev/null || :
"""
FACTS = """
nproc
cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -n 1
"""


async def remove_forgotten(cluster: str) -> None:
    """Remove the containers of a cluster whose file is gone, by what was noted when they were made."""
    folder = registry.folder(CAPABILITIES.name, cluster)
    state = read_json(folder / "state.json")
    containers = [made["container"] for made in state.get("containers", {}).values()]
    if containers:
        await asyncio.to_thread(lxc_host.remove, containers, lxc_config.underlay_bridge(cluster))
    shutil.rmtree(folder, ignore_errors=True)


class Lxc(MadeNodes):
    """A cluster of system containers. See `overlaylab.providers.Provider` for the verbs.

    how: vcpus in place of the cluster file's; quota, the share of their time that a node may use, in (0, 1].
    """

    capabilities = CAPABILITIES
    accelerator = "shared-kernel"

    def __init__(self, spec: ClusterSpec, say: Say, **how: Unpack[How]) -> None:
        super().__init__(spec, say, **how)
        self.asked = vcpus, quota = how.get("vcpus"), how.get("quota")
        self.limits = {
            node.name: lxc_config.limits(index, vcpus or node.cpus, node.memory_mib, quota)
            for index, node in enumerate(spec.nodes)
        }
        vagrantfile = (paths.ROOT / "vagrant" / "Vagrantfile").read_text()
        held = [[*limit.settings] for limit in self.limits.values()]
        # The public key too: nodes let in the one that they were made with.
        public = ssh_keys.public(ssh_keys.ensure())
        told = [naming.script(node) for node in spec.nodes]
        self._made_of = [lxc_box.key(self.system_name), spec.digest, held, vagrantfile, told, public]
        self.containers = {node.name: f"overlaylab-{spec.name}-{node.name}" for node in spec.nodes}
        self.underlay = lxc_config.underlay_bridge(spec.name)
        self.networks = [lxc_config.MANAGEMENT, self.underlay]

    @property
    def key(self) -> str:
        """Of all that nodes are made of; known for good once the image is built."""
        return lxc_config.short_digest(json.dumps([self.image, *self._made_of]), 12)

    @property
    def cpu(self) -> LxcCpu:
        return LxcCpu(self.nodes, self.containers, *self.asked)

    async def cpu_seconds(self) -> dict[str, float]:
        found = {node: lxc_host.cpu_seconds(container) for node, container in self.containers.items()}
        return {node: seconds for node, seconds in found.items() if seconds is not None}

    # -- what is there ----------------------------------------------------------------------------

    def describe(self) -> JSON:
        """vCPUs and memory as the nodes themselves found them; before they were up, as they will be asked for.

        memory_mib, quota: None where no limit is in force. not_in_force: what was asked for and cannot be.
        """
        facts = self._state().get("facts", {}) if self._is_current() else {}
        return {
            node.name: {
                "underlay_address": str(node.underlay_address),
                "zone": node.zone,
                "memory_mib": limit.memory_mib,
                "cpus": limit.cpus,
                "quota": limit.quota,
                "not_in_force": list(limit.problems),
                **facts.get(node.name, {}),
            }
            for node, limit in zip(self.spec.nodes, self.limits.values(), strict=True)
        }

    async def status(self) -> dict[str, str]:
        """State of each node: ``running``, ``shut off`` or ``absent``."""
        runs = lxc_host.running(self.containers.values())
        made = self._state().get("containers", {})
        return {
            name: "running" if container in runs else "shut off" if name in made else "absent"
            for name, container in self.containers.items()
        }

    def _state(self) -> dict[str, Any]:
        return read_json(self.folder / "state.json")

    def _is_current(self) -> bool:
        """All nodes were made to the end, of this image and cluster file."""
        state = self._state()
        return state.get("key") == self.key and bool(state.get("facts"))

    # -- life cycle -------------------------------------------------------------------------------

    async def up(self) -> None:
        """Nodes that run in the clean state, made if need be."""
        if self._is_current():
            states = set((await self.status()).values())
            try:
                if states == {"running"}:
                    await self.clean()
                else:
                    await self._start()
                return
            except (NodeError, UserError) as error:  # a folder deleted by hand, say
                self.say(f"the nodes do not come back ({error}): they are made anew")
        elif self._state():
            self.say(
                f"the nodes of {self.cluster} were made from another image or cluster file, for another SSH key, or half made"
            )
        if self._state():
            await self.remove_nodes()
        # Each takes addresses that no container has yet, until it has its own.
        async with lock.turn("lxc", self.say, "another cluster of containers is being made; waiting for it"):
            await self._make()

    async def _make(self) -> None:
        lxc_host.check_routes()
        box = lxc_box.build(self.system_name)
        ready.preflight(
            memory_mib=sum(node.memory_mib for node in self.spec.nodes),
            disk_bytes=ROOTFS_BYTES + len(self.containers) * NODE_DISK_BYTES,
        )
        for name, limit in self.limits.items():
            for problem in limit.problems:
                self.say(f"{name}: {problem}")
        there = await asyncio.to_thread(lxc_host.survey)
        lxc_host.refuse_foreign(self.containers.values(), there)
        own = [one for one in there if one.name in self.containers.values()]
        taken = [one.address for one in there if one.address and one not in own]
        addresses = lxc_host.free_addresses(len(self.containers), taken)
        made = {
            name: {
                "container": container,
                "address": address,
                "settings": lxc_config.settings(container, address, self.underlay, self.limits[name]),
                "naming": naming.script(node),
            }
            for node, (name, container), address in zip(
                self.spec.nodes, self.containers.items(), addresses, strict=True
            )
        }
        # Before anything is made: whoever clears away after a kill looks for this folder and has to know the names.
        (self.folder / "vagrant").mkdir(parents=True, exist_ok=True)
        self._note(key=self.key, image=self.image, system=self.system_name, containers=made)
        if own:  # nothing was noted of them: that folder was deleted by hand
            await asyncio.to_thread(lxc_host.remove, list(self.containers.values()), self.underlay)
        await self._load_modules(())
        await self._bridges()
        vagrant = Vagrant(
            self.cluster,
            box=f"overlaylab/lxc-{lxc_box.name(self.system_name)}",
            accelerator=self.accelerator,
            key=ssh_keys.ensure(),
            provider="lxc",
            folder=self.folder,
        )
        vagrant.environment["OVERLAYLAB_LXC"] = json.dumps(made)
        vagrant.remove_other_boxes()
        with step("box-add-lxc", f"adding the box {lxc_box.name(self.system_name)}", 3):
            await vagrant.add_box(box)
        names = ", ".join(self.containers)
        with step("vagrant-up-lxc", f"bringing up {names} with Vagrant, which calls LXC as root", 20):
            # One after the other: at once they race for Vagrant's leases of forwarded ports.
            await vagrant("up", "--no-parallel", "--no-destroy-on-error")
        started = time.monotonic()
        host_keys = await asyncio.to_thread(lxc_host.freeze, list(self.containers.values()))
        self._write_inventory(host_keys)
        await self._settle(self.nodes.values(), started)
        self._note(**self._state(), facts=await self._facts())

    def _note(self, **state: Any) -> None:
        new = self.folder / "state.json.new"
        new.write_text(json.dumps(state, indent=1) + "\n")
        new.replace(self.folder / "state.json")

    def _write_inventory(self, host_keys: Mapping[str, str]) -> None:
        """host_keys: {container: the public key that its sshd shows}."""
        key = ssh_keys.ensure()
        made = self._state()["containers"]
        nodes = tuple(
            InventoryNode(
                name=node.name,
                ssh_host=made[node.name]["address"],
                ssh_port=22,
                ssh_user="lab",
                ssh_key=key,
                host_key=host_keys[self.containers[node.name]],
                underlay_interface="eth1",
                underlay_address=node.underlay_address,
                zone=node.zone,
            )
            for node in self.spec.nodes
        )
        write_inventory(self.folder / "inventory.yml", Inventory(self.cluster, self.name, nodes))
        self._nodes = None

    async def _facts(self) -> JSON:
        facts: dict[str, JSON] = {}
        for name, done in (await self.nodes.sh(FACTS)).items():
            cpus, *memory = done.stdout.split()
            # Unlimited is "max", or in the older control groups a number that no machine has.
            limited = bool(memory) and memory[0].isdigit() and int(memory[0]) < 2**60
            facts[name] = {"cpus": int(cpus), "memory_mib": int(memory[0]) >> 20 if limited else None}
        return facts

    async def _bridges(self) -> None:
        made = self._state()["containers"].values()
        neighbours = {one["address"]: lxc_config.mac(one["container"], "eth0") for one in made}
        await asyncio.to_thread(lxc_host.make_bridges, self.underlay, neighbours)

    async def _start(self) -> float:
        """Start all nodes from outside, whatever they do now; seconds until they are settled."""
        started = time.monotonic()
        self.nodes.drop()
        await self._bridges()  # a reboot of this machine has taken them away
        await asyncio.to_thread(lxc_host.start, list(self.containers.values()))
        return await self._settle(self.nodes.values(), started)

    async def clean(self) -> float:
        """Put all nodes into their clean state; seconds until they are connected and settled."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*map(self._reboot, self.nodes.values()))
            return time.monotonic() - started
        except (NodeError, TimeoutError) as error:
            self.say(f"the nodes do not come back by themselves ({error or f'no answer for {PATIENCE:g} s'})")
        await self._start()
        return time.monotonic() - started

    async def _reboot(self, node: Node) -> None:
        # A connection that is open may be dead: without a limit it would be waited for.
        await node.sh(REBOOT, timeout=5)
        node.drop()
        await self._settled(node)

    async def _settle(self, nodes: Iterable[Node], started: float) -> float:
        try:
            async with asyncio.timeout(3 * PATIENCE):
                await asyncio.gather(*map(self._settled, nodes))
        except TimeoutError:
            raise NodeError(
                f"{self.cluster}: the nodes do not answer {3 * PATIENCE:g} s after their start"
            ) from None
        return time.monotonic() - started

    async def _settled(self, node: Node) -> None:
        """Wait until the node has booted anew, has its underlay address, and SSH is connected."""
        spec = node.spec
        script = SETTLED.format(
            used=USED, interface=spec.underlay_interface, address=spec.underlay_address.ip
        )
        while True:
            if await _listens(spec.ssh_host, spec.ssh_port):
                with contextlib.suppress(NodeError):  # the old node was just about to go
                    await node.connect(timeout=2)
                    if (await node.sh(script, check=False, timeout=PATIENCE)).exit_code == 0:
                        return
                node.drop()
            await asyncio.sleep(0.05)

    async def down(self) -> None:
        """Stop the nodes; the next `up` starts them clean."""
        if self._nodes or (self.folder / "inventory.yml").exists():
            self.nodes.drop()
        if lxc_host.running(self.containers.values()):
            await asyncio.to_thread(lxc_host.stop, list(self.containers.values()))

    async def remove_nodes(self) -> None:
        """Delete containers, bridges and what Vagrant knows of them; modules where no container needs them."""
        if self._nodes:
            self._nodes.drop()
        names = list(self.containers.values())
        recorded = [made["container"] for made in self._state().get("containers", {}).values()]
        await asyncio.to_thread(lxc_host.remove, sorted({*names, *recorded}), self.underlay)
        # Not `vagrant destroy`: it takes seconds, and all that it knows lies here.
        shutil.rmtree(self.folder / "vagrant", ignore_errors=True)
        (self.folder / "inventory.yml").unlink(missing_ok=True)
        (self.folder / "state.json").unlink(missing_ok=True)
        self._nodes = None
        if not any(lxc_host.LXCPATH.glob(f"{lxc_host.CONTAINER_PREFIX}*")):
            await asyncio.to_thread(lxc_host.unload_modules)

    # -- variants ---------------------------------------------------------------------------------

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        modules = {module for variant in variants for module in overlays.modules_of(variant)}
        await self._load_modules(sorted(modules))
        if not self._is_current() or set((await self.status()).values()) != {"running"}:
            await self.up()

    async def _load_modules(self, names: Sequence[str]) -> None:
        failed = await asyncio.to_thread(lxc_host.load_modules, [*lxc_host.MODULES, *names])
        for name, reason in failed.items():
            self.say(f"kernel module {name} could not be loaded: {reason}")

    async def enter(self, variant: Variant, fresh: bool = False) -> Entered:
        """Always booted for it: it takes containers a second."""
        reverted = await self.clean()
        started = time.monotonic()
        with step(f"converge-{variant.overlay}-{self.accelerator}", f"converging {variant}", 15):
            await self.converge(variant)
        return Entered(revert=reverted, converge=time.monotonic() - started, booted=True)

    async def renew(self) -> None:
        """Nothing to renew: a container is made clean, whatever became of the runner."""

    async def leave(self) -> None:
        self.nodes.drop()


async def _listens(address: str, port: int) -> bool:
    """Whether something accepts connections there."""
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(address, port), 0.25)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


PROVIDER = registry.Kind(CAPABILITIES, Lxc, remove_forgotten)
