"""``cluster``: the life of the nodes, apart from measuring on them."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Set
from pathlib import Path

import click
from rich.table import Table

from overlaylab.core import lock, paths
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.progress import output, say
from overlaylab.machine import ready as host
from overlaylab.machine import services
from overlaylab.nodes.servers import ENDPOINT
from overlaylab.providers import How, Provider, registry
from overlaylab.specs import cluster as clusters
from overlaylab.specs.inventory import InventoryNode
from overlaylab.specs.profile import Profile


def provider_of(
    cluster: str, provider_name: str | None, tier: Profile | None = None, system: str | None = None
) -> Provider:
    """The provider that was asked for, else the one whose nodes of the cluster were made last.

    tier: what its nodes are for, where it is known: some get a tier's vCPUs and quota when they are made.
    Raises UserError.
    """
    clusters.load_cluster(cluster)  # before its name is part of a path
    name = provider_name or registry.of_cluster(cluster)
    how: How = {"system": system}
    if tier:
        how |= {"vcpus": tier.vcpus, "quota": tier.quota}
    return registry.make(name, cluster, say, **how)


def provider_there(
    cluster: str, provider_name: str | None, inventory: str | None = None, tier: Profile | None = None
) -> Provider:
    """The provider of nodes that exist: SSH hosts where an inventory is named, else as `provider_of`.

    Raises UserError where the cluster has no nodes, before anything is installed for them.
    """
    if inventory:
        return registry.hosts(paths.typed(inventory), say)
    if not has_nodes(cluster, provider_name):
        raise UserError(f"cluster {cluster}", "has no nodes yet", fix="Bring them up with ./task lab:up")
    return provider_of(cluster, provider_name, tier)


def has_nodes(cluster: str, provider_name: str | None) -> bool:
    """Whether nodes of the cluster were made, whole or in part; provider_name: by this provider.

    Raises UserError for an unknown cluster or provider.
    """
    clusters.load_cluster(cluster)
    if provider_name:
        registry.check(provider_name)
    return any(
        cluster in registry.clusters_of(name)
        for name in ([provider_name] if provider_name else registry.names())
    )


async def are_up(provider: Provider) -> bool:
    """Whether commands can be run on the nodes as they are; SSH hosts are taken to be up."""
    if not provider.capabilities.makes_nodes:
        return True
    if not (provider.folder / "inventory.yml").exists():
        return False
    return set((await provider.status()).values()) == {"running"}


cluster_option = click.option(
    "--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Which of vagrant/clusters."
)
provider_option = click.option(
    "--provider",
    "provider_name",
    envvar="PROVIDER",
    help="What the nodes are: libvirt or virtualbox (VMs), lxc (system containers); default: as they were made.",
)

system_option = click.option(
    "--system",
    envvar="SYSTEM",
    help="What the nodes' system is, one of packer/systems; default: as they were made, else debian.",
)
inventory_option = click.option("--inventory", envvar="INVENTORY", help="SSH hosts instead of VMs.")


# s: how long nodes that run are waited for, to say what is in force on them.
ANSWERS = 10.0


@click.group()
def command() -> None:
    """Bring nodes up, look at them, put them away."""


@command.command()
@cluster_option
@provider_option
@system_option
def up(cluster: str, provider_name: str | None, system: str | None) -> None:
    """Nodes that run in their clean state: made if there are none, else reverted (seconds)."""
    from overlaylab.drills import attempt

    provider = provider_of(cluster, provider_name, system=system)
    attempt.settle(cluster, say)
    with lock.cluster_lock(cluster, "bringing nodes up"):
        asyncio.run(provider.up())
    say(f"{', '.join(provider.nodes)}: up; ./task lab:ssh -- {next(iter(provider.nodes))} opens a shell")


@command.command()
@cluster_option
@provider_option
def status(cluster: str, provider_name: str | None) -> None:
    """Nodes, their state and addresses, and which overlays are converged and snapshotted."""
    from overlaylab.report import profile_table
    from overlaylab.specs import overlays

    if not has_nodes(cluster, provider_name):
        say(f"cluster {cluster} has no nodes yet; ./task lab:up brings them up")
        return
    provider = provider_of(cluster, provider_name)

    async def ask() -> tuple[dict[str, str], Set[str], tuple[str, bool] | None]:
        states = await provider.status()
        answers = set(states.values()) == {"running"} and (provider.folder / "inventory.yml").exists()
        profile = await _profile_in_force(cluster, provider) if answers else None
        return states, await provider.kept() if provider.capabilities.snapshots else frozenset(), profile

    states, ready, profile = asyncio.run(ask())
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
    out = output()
    # Addresses are there to be copied: a narrow terminal folds the line, and nothing is cut.
    out.width = max(out.width, out.measure(table, options=out.options.update(max_width=500)).maximum)
    out.print(table)
    why = f" ({host.accelerator_reason()})" if provider.capabilities.accelerator is None else ""
    out.print(f"accelerator: {provider.accelerator}{why}")
    if profile:
        words, delayed = profile
        out.print(f"profile in force: {words}", soft_wrap=True)
        if delayed and ACCELERATORS[provider.accelerator].is_emulated:
            out.print(profile_table.SPARSE, soft_wrap=True)
    if not provider.capabilities.snapshots:
        return
    names = [
        f"{name} {key}" if key != name else name
        for name in overlays.names()
        for key in overlays.load(name).modes
        if provider.is_converged(overlays.load(name).variant(key), ready)
    ]
    out.print(f"converged and snapshotted: {', '.join(names) or 'none'}")


async def _profile_in_force(cluster: str, provider: Provider) -> tuple[str, bool]:
    """In words, and whether it delays; the nodes run. They are not asked while something may be measured on them: a login costs CPU time."""
    from overlaylab.shaping import record as profile_record

    if lock.is_held(cluster):
        return "not asked for, as another command uses the nodes", False
    try:
        await provider.nodes.connect(ANSWERS)
        printed = await provider.nodes.sh(profile_record.READ, timeout=ANSWERS)
    except (NodeError, TimeoutError) as error:
        return f"not known: {error or 'a node does not answer'}", False
    finally:
        provider.nodes.drop()
    found = {name: profile_record.on_node(done.stdout) for name, done in printed.items()}
    return profile_record.in_words(found), any(record and record.baseline for record, _ in found.values())


# What follows the node is the command's own, options too.
@command.command(context_settings={"allow_interspersed_args": False})
@cluster_option
@provider_option
@click.argument("node", required=False)
@click.argument("remote_command", nargs=-1, type=click.UNPROCESSED)
def ssh(cluster: str, provider_name: str | None, node: str | None, remote_command: tuple[str, ...]) -> None:
    """A shell on NODE, or a command run there: ./task lab:ssh -- node1 ip address."""
    spec, folder = _node(cluster, provider_name, node, "lab:ssh")
    argv = ssh_argv(spec, folder)
    sys.stdout.flush()
    words = remote_command[1:] if remote_command[:1] == ("--",) else remote_command
    os.execvp(argv[0], [*argv, *words])


def _node(cluster: str, provider_name: str | None, node: str | None, task: str) -> tuple[InventoryNode, Path]:
    """The node that was named, and the folder of its cluster. UserError."""
    if not node:
        raise UserError(
            "node", "must be named", fix=f"./task {task} -- node1 opens a shell on the first one."
        )
    provider = provider_there(cluster, provider_name)
    if not (provider.folder / "inventory.yml").exists():
        raise UserError(f"cluster {cluster}", "has half made nodes", fix="Make them anew with ./task lab:up")
    known = {n.name: n for n in provider.inventory.nodes}
    if node not in known:
        raise UserError(
            "node", f"must be a node of cluster {cluster}", seen=node, fix=f"Known: {', '.join(known)}"
        )
    _say_where_the_drill_is(cluster, node)
    return known[node], provider.folder


def _say_where_the_drill_is(cluster: str, node: str) -> None:
    """Whoever forgets CLUSTER= in a second terminal would look for a fault on nodes that have none."""
    from overlaylab.drills import attempt

    # One whose watcher is dead is over, and only not stored as abandoned yet.
    others = [name for name in attempt.clusters() if (hand := attempt.read(name)) and hand.lives]
    if others and cluster not in others:
        say(
            f"this is {node} of cluster {cluster}; a drill is at hand on CLUSTER={' and CLUSTER='.join(others)}"
        )


def ssh_argv(node: InventoryNode, folder: Path) -> list[str]:
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


@command.command(context_settings={"allow_interspersed_args": False})
@cluster_option
@provider_option
@click.argument("node", required=False)
@click.argument("remote_command", nargs=-1, type=click.UNPROCESSED)
def shell(cluster: str, provider_name: str | None, node: str | None, remote_command: tuple[str, ...]) -> None:
    """A shell as root in the endpoint of NODE, or a command run there: ./task lab:shell -- node1 ip address."""
    spec, folder = _node(cluster, provider_name, node, "lab:shell")
    words = remote_command[1:] if remote_command[:1] == ("--",) else remote_command
    inside = f"sh -c {shlex.quote(' '.join(words))}" if words else "bash"
    sudo = "" if spec.ssh_user == "root" else "sudo -n "
    argv = ssh_argv(spec, folder)
    if not words:
        argv.append("-t")
    sys.stdout.flush()
    os.execvp(argv[0], [*argv, f"{sudo}ip netns exec {ENDPOINT} {inside}"])


@command.command()
@cluster_option
@provider_option
def down(cluster: str, provider_name: str | None) -> None:
    """Switch the nodes off, VMs and containers alike. Their snapshots stay: the next lab:up takes seconds."""
    clusters.load_cluster(cluster)
    if provider_name:
        registry.check(provider_name)
    there = [
        name
        for name in registry.names()
        if cluster in registry.clusters_of(name) and provider_name in (None, "", name)
    ]
    for name in there:
        with lock.cluster_lock(cluster, "switching nodes off"):
            asyncio.run(registry.make(name, cluster, say).down())
    if there:
        say(f"nodes are off ({', '.join(there)}); ./task lab:destroy removes them")
    else:
        say(f"there are no nodes of cluster {cluster}{f' ({provider_name})' if provider_name else ''}")


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
    removed, failed = _remove_nodes(cluster)
    if cluster:
        if not removed and not failed:
            say(f"there are no nodes of cluster {cluster}")
    elif not failed:
        _remove_traces(keep_cache)
    if failed:
        raise UserError(
            "lab:destroy", "could not remove everything", seen="; ".join(failed),
            fix="What could be removed is; ./task doctor looks for the usual causes, then type this again",
        )  # fmt: skip


def _remove_nodes(cluster: str) -> tuple[list[str], list[str]]:
    """Remove the nodes of a cluster, or all; those whose nodes are gone, and why others are not.

    One provider that fails keeps no other from being asked.
    """
    removed: list[str] = []
    failed: list[str] = []
    for provider in registry.names():
        made = [name for name in registry.clusters_of(provider) if cluster in ("", name)]
        for name in made:
            try:
                with lock.cluster_lock(name, "removing nodes"):
                    asyncio.run(registry.remove(provider, name, say))
            except (UserError, NodeError) as error:
                failed.append(f"{name} ({provider}): {error}")
                continue
            removed.append(name)
            say(f"cluster {name} ({provider}): nodes, what they kept, and their networks removed")
    return removed, failed


def _remove_traces(keep_cache: bool) -> None:
    """Take away what is left without nodes: storage pool, daemons that setup started, and the cache folder."""
    from overlaylab.machine import access, packages

    asyncio.run(registry.remove_shared())
    for service in services.stop_services():
        say(f"{service} stopped")
    access.close_kvm()
    if keep_cache:
        say(f"the cache folder {paths.cache()} stays")
        return
    missing = packages.missing(packages.ALL, alone=True) if packages.uses_apt() else []
    installed = [name for name in packages.names(packages.ALL, alone=True) if name not in missing]
    say(
        f"packages stay installed (remove them with apt-get if nothing else needs them): {' '.join(installed)}"
    )
    if paths.cache().exists():
        shutil.rmtree(paths.cache())
    print(f"overlaylab: {paths.cache()} removed", file=sys.stderr)


@command.command()
@cluster_option
def validate(cluster: str) -> None:
    """Let Vagrant check the Vagrantfile with this cluster, for libvirt and for VirtualBox's block alike."""
    from overlaylab.image.vagrant import Vagrant
    from overlaylab.machine import ssh_keys

    host.ensure()
    clusters.load_cluster(cluster)
    vagrant = Vagrant(cluster, box="overlaylab/unused", accelerator="tcg", key=ssh_keys.ensure())
    print(asyncio.run(vagrant("validate")).strip())
