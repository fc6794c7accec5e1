"""``cluster``: the life of the nodes, apart from measuring on them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys

import click
from rich.console import Console
from rich.table import Table

from overlaylab import cluster as clusters
from overlaylab import host, lock, paths
from overlaylab.errors import UserError
from overlaylab.inventory import InventoryNode
from overlaylab.profile import Profile
from overlaylab.progress import say
from overlaylab.providers import named


def provider_of(cluster: str, asked: str | None, tier: Profile | None = None):
    """The provider that was asked for, else the one whose nodes of the cluster were made last.

    tier: what its nodes are for, where it is known: containers get a tier's vCPUs and quota when they are made.
    """
    name = asked or named.of_cluster(cluster)
    limits = {"vcpus": tier.vcpus, "quota": tier.quota} if tier is not None and name == "lxc" else {}
    return named.make(name, cluster, say, **limits)


def provider_there(cluster: str, asked: str | None, inventory: str | None):
    """The provider of nodes that exist: SSH hosts where an inventory is named, else as `provider_of`."""
    if not inventory:
        return provider_of(cluster, asked)
    from overlaylab.providers.hosts import Hosts

    return Hosts(paths.typed(inventory), say)


async def are_up(provider) -> bool:
    """Whether commands can be run on the nodes as they are; SSH hosts are taken to be up."""
    if provider.name == "hosts":
        return True
    if not (provider.folder / "inventory.yml").exists():
        return False
    return set((await provider.status()).values()) == {"running"}


cluster_option = click.option(
    "--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Which of vagrant/clusters."
)
provider_option = click.option(
    "--provider",
    "asked",
    envvar="PROVIDER",
    help="What the nodes are: libvirt or virtualbox (VMs), lxc (system containers); default: as they were made.",
)

inventory_option = click.option("--inventory", envvar="INVENTORY", help="SSH hosts instead of VMs.")


@click.group()
def command() -> None:
    """Bring nodes up, look at them, put them away."""


@command.command()
@cluster_option
@provider_option
def up(cluster: str, asked: str | None) -> None:
    """Nodes that run in their clean state: made if there are none, else reverted (seconds)."""
    provider = provider_of(cluster, asked)
    with lock.cluster_lock(cluster, "bringing nodes up"):
        asyncio.run(provider.up())
    say(f"{', '.join(provider.nodes)}: up; ./task lab:ssh -- {next(iter(provider.nodes))} opens a shell")


@command.command()
@cluster_option
@provider_option
def status(cluster: str, asked: str | None) -> None:
    """Nodes, their state and addresses, and which overlays are converged and snapshotted."""
    from overlaylab import overlays

    provider = provider_of(cluster, asked)

    async def ask():
        return await provider.status(), await provider.kept() if provider.snapshots else frozenset()

    states, ready = asyncio.run(ask())
    title = f"cluster {cluster} ({provider.name}): {provider.spec.description}"
    table = Table(title=title, title_justify="left")
    for heading in ("node", "state", "zone", "underlay", "ssh", "vCPU", "memory"):
        table.add_column(heading)
    ssh = {}
    if (provider.folder / "inventory.yml").exists():
        ssh = {
            node.name: f"{node.ssh_user}@{node.ssh_host}{'' if node.ssh_port == 22 else f':{node.ssh_port}'}"
            for node in provider.inventory.nodes
        }
    about = provider.describe()
    for node in provider.spec.nodes:
        facts = about[node.name]
        table.add_row(
            node.name, states[node.name], node.zone, str(node.underlay_address), ssh.get(node.name, "–"),
            str(facts["cpus"]), f"{facts['memory_mib']} MiB",
        )  # fmt: skip
    out = Console(highlight=False)
    out.print(table)
    why = f" ({host.accelerator_reason()})" if provider.name == "libvirt" else ""
    out.print(f"accelerator: {provider.accelerator}{why}")
    if not provider.snapshots:
        return
    names = [
        f"{name} {key}" if key != name else name
        for name in overlays.names()
        for key in overlays.load(name).modes
        if provider.is_converged(overlays.load(name).variant(key), ready)
    ]
    out.print(f"converged and snapshotted: {', '.join(names) or 'none'}")


@command.command()
@cluster_option
@provider_option
@click.argument("node")
@click.argument("remote_command", nargs=-1)
def ssh(cluster: str, asked: str | None, node: str, remote_command: tuple[str, ...]) -> None:
    """A shell on NODE, or a command run there: ./task lab:ssh -- node1 ip address."""
    provider = provider_of(cluster, asked)
    if not (provider.folder / "inventory.yml").exists():
        raise UserError(f"cluster {cluster}", "has no nodes yet", fix="Bring them up with ./task lab:up")
    known = {n.name: n for n in provider.inventory.nodes}
    if node not in known:
        raise UserError(
            "node", f"must be a node of cluster {cluster}", seen=node, fix=f"Known: {', '.join(known)}"
        )
    argv = ssh_argv(known[node], provider.folder)
    sys.stdout.flush()
    os.execvp(argv[0], [*argv, *remote_command])


def ssh_argv(node: InventoryNode, folder) -> list[str]:
    """OpenSSH's argv for a node, with the one host key that is accepted."""
    known = folder / "known_hosts"
    name = node.ssh_host if node.ssh_port == 22 else f"[{node.ssh_host}]:{node.ssh_port}"
    known.write_text(f"{name} {node.host_key}\n" if node.host_key else "")
    return [
        "ssh", "-p", str(node.ssh_port), "-i", str(node.ssh_key), "-o", "IdentitiesOnly=yes",
        "-o", f"UserKnownHostsFile={known}",
        "-o", f"StrictHostKeyChecking={'yes' if node.host_key else 'accept-new'}",
        f"{node.ssh_user}@{node.ssh_host}",
    ]  # fmt: skip


@command.command()
@cluster_option
@provider_option
def down(cluster: str, asked: str | None) -> None:
    """Switch the nodes off, VMs and containers alike. Their snapshots stay: the next lab:up takes seconds."""
    clusters.load_cluster(cluster)
    if asked:
        named.check(asked)
    there = [name for name in named.NAMES if cluster in named.clusters_of(name) and asked in (None, "", name)]
    for name in there:
        with lock.cluster_lock(cluster, "switching nodes off"):
            asyncio.run(named.make(name, cluster, say).down())
    if there:
        say(f"nodes are off ({', '.join(there)}); ./task lab:destroy removes them")
    else:
        say(f"there are no nodes of cluster {cluster}{f' ({asked})' if asked else ''}")


@command.command()
@click.option(
    "--keep-cache", envvar="KEEP_CACHE", is_flag=True, help="Keep the cache folder: images, tools, builds."
)
@click.option(
    "--cluster", envvar="CLUSTER", default="", help="Remove the nodes of this cluster, and nothing else."
)
def destroy(keep_cache: bool, cluster: str) -> None:
    """Remove everything that was made outside the checkout: nodes, networks, storage pool, cache folder,
    and the libvirt daemons where setup itself started them. Packages stay; they are named."""
    from overlaylab import host_access, host_packages, host_services
    from overlaylab.providers import virsh
    from overlaylab.vagrant import pool

    asleep = host_services.libvirt_error()
    removed: list[str] = []
    for provider in named.NAMES:
        made = [name for name in named.clusters_of(provider) if cluster in ("", name)]
        if made and provider == "libvirt" and asleep:
            raise UserError(
                "libvirt", "must run for its nodes to be removed", seen=asleep,
                fix="./task setup starts it; then type this again",
            )  # fmt: skip
        for name in made:
            with lock.cluster_lock(name, "removing nodes"):
                asyncio.run(named.remove(provider, name, say))
            removed.append(name)
            say(f"cluster {name} ({provider}): nodes, what they kept, and their networks removed")
    if cluster:
        if not removed:
            say(f"there are no nodes of cluster {cluster}")
        return
    if asleep is None:
        asyncio.run(virsh.remove_pool(pool()))
        for service in host_services.stop_services():
            say(f"{service} stopped")
    host_access.close_kvm()
    if keep_cache:
        return
    installed = [name for name in host_packages.names() if name not in host_packages.missing()]
    say(
        f"packages stay installed (remove them with apt-get if nothing else needs them): {' '.join(installed)}"
    )
    shutil.rmtree(paths.cache())
    print(f"overlaylab: {paths.cache()} removed", file=sys.stderr)


@command.command()
@cluster_option
def validate(cluster: str) -> None:
    """Let Vagrant check the Vagrantfile with this cluster, for libvirt and for VirtualBox's block alike."""
    from overlaylab import image
    from overlaylab.vagrant import Vagrant

    clusters.load_cluster(cluster)
    vagrant = Vagrant(cluster, box="overlaylab/unused", accelerator="tcg", key=image.ensure_key())
    print(asyncio.run(vagrant("validate")).strip())
