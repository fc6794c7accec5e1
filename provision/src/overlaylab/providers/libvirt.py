"""Nodes as libvirt VMs made by Vagrant, kept clean by snapshots."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network

from overlaylab import host, image, overlays, paths, shaping
from overlaylab.cluster import ClusterSpec
from overlaylab.errors import NodeError, UserError
from overlaylab.inventory import Inventory, load_inventory, write_inventory
from overlaylab.model import JSON, Variant
from overlaylab.progress import step
from overlaylab.providers import Entered, Say, virsh
from overlaylab.ssh import Nodes
from overlaylab.vagrant import Vagrant, pool, pool_path, read_json

MANAGEMENT_ADDRESSES = IPv4Network("192.168.76.0/24")
"""As the Vagrantfile has it."""
MANAGEMENT = "overlaylab-management"
"""The network of eth0, which all clusters share."""

SET_CLOCK = "date -u -s @{now:.3f} >/dev/null"
"""After a revert a node's clock is behind by the time since the snapshot."""


def digest(*parts: object) -> str:
    """First 12 hex digits of the SHA-256 over the parts as JSON: a snapshot's or a cluster's key."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


async def remove_domains(domains: Sequence[str], networks: Sequence[str]) -> None:
    """Delete the domains that there are, with disks and snapshots, and the networks that nobody needs then."""
    for domain in domains:
        if domain in await virsh.domains():
            await virsh.virsh("destroy", domain, check=False)
            await virsh.virsh("undefine", domain, "--remove-all-storage", "--snapshots-metadata")
    known = (await virsh.virsh("net-list", "--all", "--name")).split()
    shared = any(name.startswith("overlaylab-") for name in await virsh.domains())
    for network in networks:
        if network == MANAGEMENT and shared:  # nodes of another cluster would lose their way in
            continue
        if network in known:
            await virsh.virsh("net-destroy", network, check=False)
            await virsh.virsh("net-undefine", network, check=False)


async def remove_forgotten(cluster: str) -> None:
    """Remove the nodes of a cluster whose file is gone, by what was noted when they were made."""
    inventory = paths.cache() / "clusters" / cluster / "inventory.yml"
    names = [node.name for node in load_inventory(inventory).nodes] if inventory.exists() else []
    domains = [f"overlaylab-{cluster}-{name}" for name in names]
    await remove_domains(domains, [MANAGEMENT, f"overlaylab-{cluster}"])


class Libvirt:
    """A cluster of libvirt VMs. See `overlaylab.providers.Provider` for the verbs."""

    name = "libvirt"
    snapshots = True

    def __init__(
        self,
        spec: ClusterSpec,
        say: Say,
        *,
        system: str = "debian",
        underlay_mtu: int | None = None,
        role_arguments: JSON | None = None,
    ) -> None:
        self.spec, self.say = spec, say
        self.underlay_mtu = underlay_mtu
        self.role_arguments = role_arguments or {}
        self.cluster = spec.name
        self.system = system
        self.accelerator = host.accelerator()
        self.image = image.image_key(system)
        vagrantfile = (paths.ROOT / "vagrant" / "Vagrantfile").read_text()
        self.key = digest(self.image, spec.digest, self.accelerator, vagrantfile)
        self.folder = paths.cache() / "clusters" / spec.name
        self.domains = [f"overlaylab-{spec.name}-{node.name}" for node in spec.nodes]
        self.networks = [MANAGEMENT, f"overlaylab-{spec.name}"]
        self.vagrant = Vagrant(
            spec.name,
            box=f"overlaylab/{system}-{self.image[:12]}",
            accelerator=self.accelerator,
            key=image.ensure_key(),
        )
        self._nodes: Nodes | None = None
        self._snapshots: dict[Variant, str] = {}

    # -- what is there ----------------------------------------------------------------------------

    @property
    def inventory(self) -> Inventory:
        return load_inventory(self.folder / "inventory.yml")

    @property
    def nodes(self) -> Nodes:
        if self._nodes is None:
            self._nodes = Nodes(self.inventory)
        return self._nodes

    def describe(self) -> JSON:
        kvm = self.accelerator == "kvm"
        return {
            node.name: {
                "underlay_address": str(node.underlay_address),
                "zone": node.zone,
                "memory_mib": node.memory_mib,
                "cpus": node.cpus if kvm else node.cpus_without_kvm,
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
        if variant not in self._snapshots:  # once: a role edited during a run does not change the run
            arguments = overlays.arguments_of(variant, self.role_arguments)
            key = digest(variant.key, arguments, self.underlay_mtu)
            self._snapshots[variant] = f"{self._made_of(variant.overlay)}-{variant.key}-{key}"
        return self._snapshots[variant]

    def is_converged(self, variant: Variant, snapshots: Iterable[str]) -> bool:
        """Whether one of the snapshots is the variant's, under whatever MTU and arguments."""
        name = re.escape(f"{self._made_of(variant.overlay)}-{variant.key}")
        return any(re.fullmatch(f"{name}-[0-9a-f]{{12}}", snapshot) for snapshot in snapshots)

    def _made_of(self, overlay: str) -> str:
        return f"{overlay}-{digest(self.key, overlays.role_digest(overlay))}"

    async def status(self) -> dict[str, str]:
        """State of each node: ``running``, ``shut off``, ``absent``, …"""
        known = await virsh.domains()
        return {
            node.name: known.get(domain, "absent")
            for node, domain in zip(self.spec.nodes, self.domains, strict=True)
        }

    # -- life cycle -------------------------------------------------------------------------------

    async def up(self) -> None:
        """Nodes that run in the clean state, made if need be."""
        known = await virsh.domains()
        made = [domain for domain in self.domains if domain in known]
        await self._refuse_foreign(made)
        state = read_json(self.folder / "state.json")
        if made and (state.get("key") != self.key or len(made) < len(self.domains)):
            self.say(f"the nodes of {self.cluster} were made from another image, cluster file or accelerator")
            with step("vagrant-destroy", "removing them", 8):
                await self.remove_nodes()
            made = []
        if made and all([self.clean_snapshot() in await virsh.snapshots(d) for d in self.domains]):
            try:
                await self.revert(self.clean_snapshot())
                return
            except NodeError as error:
                # QEMU was killed while it wrote, say: nodes can be made again at any time.
                self.say(f"the nodes do not come back from their snapshot ({error})")
        if made:
            with step("vagrant-destroy", "removing nodes that were left half made", 8):
                await self.remove_nodes()
        await self._make()

    async def _refuse_foreign(self, domains: Sequence[str]) -> None:
        """UserError where nodes of that name lie in another storage pool: they are somebody else's lab."""
        for domain in domains:
            disks = [
                line.split()[-1]
                for line in (await virsh.virsh("domblklist", domain)).splitlines()
                if line.strip()
            ]
            if disks and not any(disk.startswith(f"{pool_path()}/") for disk in disks):
                raise UserError(
                    f"domain {domain}",
                    f"must be of this cache folder's lab, {paths.cache()}",
                    seen=disks[0],
                    fix="Another user's lab runs on this machine: use that cache folder (OVERLAYLAB_CACHE), "
                    "or have it removed there with ./task lab:destroy",
                )

    async def _make(self) -> None:
        pool_path().mkdir(parents=True, exist_ok=True)
        await virsh.start_pool(pool(), str(pool_path()))
        needed = sum(node.memory_mib for node in self.spec.nodes)
        image.build(self.system)
        # Per node: its changes plus a snapshot of its memory for each mode.
        host.preflight(memory_mib=needed + 512, disk_bytes=len(self.domains) * 4 * 2**30)
        if not any(name.startswith("overlaylab-") for name in await virsh.domains()):
            # No node's disk is based on an older box any more.
            for volume in self.vagrant.remove_other_boxes():
                await virsh.delete_volume(pool(), volume)
        with step("box-add", f"adding the box of image {self.image[:12]}", 20):
            await self.vagrant.add_box(image.box_path(self.system))
        await virsh.make_network(MANAGEMENT, MANAGEMENT_ADDRESSES, dhcp=True)
        await virsh.make_network(self.networks[1], self.spec.underlay, mtu=9001)
        names = ", ".join(node.name for node in self.spec.nodes)
        estimate = 60 if self.accelerator == "kvm" else 120
        with step(f"vagrant-up-{self.accelerator}", f"bringing up {names} with Vagrant", estimate):
            await self.vagrant("up", "--no-destroy-on-error")
        manifest = image.manifest(self.system) or {}
        found = await self.vagrant.nodes(
            {node.name: (str(node.underlay_address), node.zone) for node in self.spec.nodes},
            manifest.get("host_key"),
        )
        write_inventory(self.folder / "inventory.yml", Inventory(self.cluster, self.name, found))
        self._nodes = None
        await virsh.take_snapshot(self.domains, self.clean_snapshot())
        (self.folder / "state.json").write_text(json.dumps({"key": self.key, "image": self.image}))
        await self._connect()

    async def revert(self, snapshot: str) -> float:
        """Revert all nodes; seconds until SSH answers on all of them with the clock set."""
        started = time.monotonic()
        self.nodes.drop()
        await virsh.start_networks(self.networks)
        await virsh.revert(self.domains, snapshot)
        await self._connect()
        return time.monotonic() - started

    async def _connect(self) -> None:
        await self.nodes.connect()
        await self.nodes.sh(SET_CLOCK.format(now=time.time()))

    async def down(self) -> None:
        """Switch the nodes off; snapshots stay, so that the next `up` takes seconds."""
        self.nodes.drop()
        for domain, state in (await virsh.domains()).items():
            if domain in self.domains and state != "shut off":
                await virsh.virsh("destroy", domain)

    async def remove_nodes(self) -> None:
        """Delete the nodes, their disks and snapshots, and the cluster's networks."""
        known = await virsh.domains()
        for domain in self.domains:
            if domain in known:
                for name in await virsh.snapshots(domain):
                    await virsh.virsh("snapshot-delete", domain, name, "--metadata", check=False)
        await self.vagrant("destroy", "-f")
        # What Vagrant no longer knows of, after a folder was deleted by hand, say.
        await remove_domains(self.domains, self.networks)
        (self.folder / "state.json").unlink(missing_ok=True)

    # -- variants ---------------------------------------------------------------------------------

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        if not await self._usable() or set((await self.status()).values()) != {"running"}:
            await self.up()
        have = await virsh.snapshots(self.domains[0])
        for domain in self.domains[1:]:
            have &= await virsh.snapshots(domain)
        for variant in variants:
            if self.snapshot(variant) not in have:
                await self._converge(variant, have)
                have.add(self.snapshot(variant))
        await self._prune(have)

    async def _usable(self) -> bool:
        """All nodes exist, are of this image and cluster file, and have their clean snapshot."""
        if read_json(self.folder / "state.json").get("key") != self.key:
            return False
        known = await virsh.domains()
        return all([d in known and self.clean_snapshot() in await virsh.snapshots(d) for d in self.domains])

    async def _converge(self, variant: Variant, have: set[str]) -> None:
        from overlaylab import ansible

        overlay = overlays.load(variant.overlay)
        mode = overlay.modes[variant.key]
        relatives = [
            self.snapshot(overlay.variant(key))
            for key, other in overlay.modes.items()
            if mode.family and other.family == mode.family
        ]
        start = next((name for name in relatives if name in have), self.clean_snapshot())
        text = (
            f"converging {variant.overlay} {variant.key}" if variant.mode else f"converging {variant.overlay}"
        )
        with step(f"converge-{variant.overlay}-{self.accelerator}", text, 40):
            await self.revert(start)
            if self.underlay_mtu:
                for node in self.nodes.values():
                    await node.sh(shaping.mtu_script(node.spec.underlay_interface, self.underlay_mtu))
            await asyncio.to_thread(
                ansible.run_playbook,
                self.folder / "inventory.yml",
                variant.overlay,
                "converge",
                overlays.arguments_of(variant, self.role_arguments),
            )
            await virsh.take_snapshot(self.domains, self.snapshot(variant))

    async def _prune(self, have: set[str]) -> None:
        """Delete snapshots whose key is no longer that of any variant: their role or image has changed."""
        current = (self.clean_snapshot(), *(self._made_of(name) for name in overlays.names()))
        for name in have:
            if not name.startswith(current):
                await virsh.delete_snapshot(self.domains, name)

    async def enter(self, variant: Variant) -> Entered:
        return Entered(revert=await self.revert(self.snapshot(variant)), converge=0.0)

    async def renew(self) -> None:
        """Nothing to renew: a VM is reverted, whatever became of the runner."""

    async def leave(self) -> None:
        self.nodes.drop()
