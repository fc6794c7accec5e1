"""Providers by the names that people type, PROVIDER=libvirt: each is a file in `kinds/`."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.machine import ready, services
from overlaylab.providers import How, Provider, Say, kinds
from overlaylab.providers.capabilities import Capabilities
from overlaylab.specs import cluster as clusters

Removing = Coroutine[Any, Any, dict[str, list[str]]]


@dataclass(frozen=True)
class Kind:
    """A provider that can be chosen: what a file in `kinds/` holds as PROVIDER."""

    capabilities: Capabilities
    # Called with a cluster's file (an inventory's path, where it makes no nodes), say, and what `How` has.
    make: Callable[..., Provider]
    # Removes the nodes of a cluster whose file, or its system's, is gone or wrong, by what was noted when they were made.
    remove_forgotten: Callable[[str], Awaitable[None]] | None = None
    # Removes what all clusters share, once there are no nodes.
    remove_shared: Callable[[], Awaitable[None]] | None = None
    # Brings what needs no package, beside their installation.
    bring: Callable[[], None] | None = None
    # Takes everything of ours off nodes that were there before.
    remove_all: Callable[[Path, Say], Removing] | None = None


def _kinds() -> dict[str, Kind]:
    """By name; the fallback first, then nodes with a kernel of their own. Sought in the folders of `kinds.__path__`."""
    names = [module.name for module in pkgutil.iter_modules(kinds.__path__)]
    found: list[Kind] = [importlib.import_module(f"{kinds.__name__}.{name}").PROVIDER for name in names]
    return {kind.capabilities.name: kind for kind in sorted(found, key=_place)}


def _place(kind: Kind) -> tuple[bool, bool, str]:
    can = kind.capabilities
    return not can.fallback, can.shares_kernel, can.name


def names() -> tuple[str, ...]:
    """What PROVIDER= takes. SSH hosts are chosen by an inventory instead."""
    return tuple(name for name, kind in _kinds().items() if kind.capabilities.makes_nodes)


def capabilities(name: str) -> Capabilities:
    """What the provider of that name can. Raises UserError for an unknown one."""
    known = _kinds()
    if name not in known:
        raise _unknown(name)
    return known[name].capabilities


def fallback() -> str:
    """The provider that is taken where nobody says which."""
    return next(name for name, kind in _kinds().items() if kind.capabilities.fallback)


def before_emulation() -> str:
    """The provider that is taken where the fallback would emulate CPUs and this machine's kernel has all of it."""
    return next(name for name, kind in _kinds().items() if kind.capabilities.before_emulation)


def of_inventory() -> str:
    """The provider of hosts that an inventory names."""
    return next(name for name, kind in _kinds().items() if not kind.capabilities.makes_nodes)


def make_ready(name: str) -> None:
    """Make this machine ready for the provider's nodes, as `ready.ensure` does."""
    ready.ensure(capabilities(name).needs, meanwhile=_kinds()[name].bring)


def make(name: str, cluster: str, say: Say, **how: Unpack[How]) -> Provider:
    """The provider for a cluster of `vagrant/clusters`, on a machine that was made ready for it.

    Raises UserError for an unknown name or cluster before anything on the machine is touched.
    """
    check(name)
    spec = clusters.load_cluster(cluster)
    make_ready(name)
    if not capabilities(name).limits_at_creation:
        how.pop("vcpus", None)
        how.pop("quota", None)
    return _kinds()[name].make(spec, say, **how)


def hosts(inventory: Path, say: Say, **how: Unpack[How]) -> Provider:
    """The provider for the SSH hosts of an inventory. Raises UserError."""
    return _kinds()[of_inventory()].make(inventory, say, **how)


def remove_all(inventory: Path, say: Say) -> Removing:
    """Take everything of ours off the hosts of an inventory; {host: folders that were removed}. Raises UserError."""
    taking_away = _kinds()[of_inventory()].remove_all
    assert taking_away is not None
    return taking_away(inventory, say)


def check(name: str) -> None:
    """Raise UserError unless it is one of names()."""
    if name not in names():
        raise _unknown(name)


def _unknown(name: str) -> UserError:
    return UserError(
        "PROVIDER",
        f"must be one of {', '.join(names())}",
        seen=name,
        fix="Leave it out for what fits this machine; ./task doctor shows which runs what",
    )


def of_cluster(cluster: str) -> str:
    """The provider whose nodes of the cluster were made last; the fallback where there are none yet."""
    made = {name: state for name in names() if (state := folder(name, cluster) / "state.json").exists()}
    return max(made, key=lambda name: made[name].stat().st_mtime, default=fallback())


def folder(name: str, cluster: str) -> Path:
    """Where a provider keeps what it knows of a cluster, so that several can have one of the same name."""
    own = paths.cache() / "clusters" / cluster
    return own if name == fallback() else own / name


def clusters_of(name: str) -> list[str]:
    """Clusters that the provider made nodes of, whole or in part; a folder may also hold no more than a lock."""
    own = "*/{}" if name == fallback() else f"*/{name}/{{}}"
    root = paths.cache() / "clusters"
    found = [path for what in ("vagrant", "state.json") for path in root.glob(own.format(what))]
    return sorted({path.relative_to(root).parts[0] for path in found})


async def remove(name: str, cluster: str, say: Say) -> None:
    """Remove a cluster's nodes and all that was made for them, also where its file or its system's is gone."""
    kind = _kinds()[name]
    if kind.capabilities.needs.libvirt:
        if not services.is_installed():  # then there are no nodes either: an earlier destroy has ended it
            shutil.rmtree(folder(name, cluster) / "vagrant", ignore_errors=True)
            (folder(name, cluster) / "state.json").unlink(missing_ok=True)
            return
        services.ensure_running()
    try:
        provider = kind.make(clusters.load_cluster(cluster), say)
    except UserError:
        if kind.remove_forgotten is None:
            raise
        await kind.remove_forgotten(cluster)
    else:
        await provider.remove_nodes()


async def remove_shared() -> None:
    """Remove what is left of every provider once there are no nodes."""
    for kind in _kinds().values():
        if kind.remove_shared is not None:
            await kind.remove_shared()
