"""Providers by the names that people type: PROVIDER=libvirt, lxc or virtualbox."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict, Unpack

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON
from overlaylab.machine import ready
from overlaylab.providers import Provider, Say
from overlaylab.specs import cluster as clusters

_CLASSES = {"libvirt": "Libvirt", "virtualbox": "VirtualBox", "lxc": "Lxc"}
NAMES = tuple(_CLASSES)
"""Providers that make nodes through Vagrant; plain SSH hosts are chosen by an inventory instead."""

if TYPE_CHECKING:
    from overlaylab.providers.hosts import Hosts
    from overlaylab.providers.libvirt import Libvirt
    from overlaylab.providers.lxc import Lxc
    from overlaylab.providers.virtualbox import VirtualBox

    _CHECKED: tuple[type[Provider], ...] = (Libvirt, VirtualBox, Lxc, Hosts)
    """They are found by their names, where no type is known: this says that each has all of the protocol."""


class How(TypedDict, total=False):
    """What nodes are made for. vcpus, quota: only `Lxc` takes them, as its nodes keep them for life."""

    underlay_mtu: int | None
    role_arguments: JSON | None
    vcpus: int | None
    quota: float | None


def make(name: str, cluster: str, say: Say, **how: Unpack[How]) -> Provider:
    """The provider for a cluster of `vagrant/clusters`, on a machine that was made ready for it.

    Raises UserError for an unknown name or cluster before anything on the machine is touched.
    """
    check(name)
    spec = clusters.load_cluster(cluster)
    ready.ensure(name)
    return _class(name)(spec, say, **how)


def check(name: str) -> None:
    """Raise UserError unless it is one of NAMES."""
    if name not in NAMES:
        raise UserError(
            "PROVIDER",
            f"must be one of {', '.join(NAMES)}",
            seen=name,
            fix="Leave it out for what fits this machine; ./task doctor shows which runs what",
        )


def of_cluster(cluster: str) -> str:
    """The provider whose nodes of the cluster were made last; libvirt where there are none yet."""
    made = {name: state for name in NAMES if (state := folder(name, cluster) / "state.json").exists()}
    return max(made, key=lambda name: made[name].stat().st_mtime, default="libvirt")


def folder(name: str, cluster: str) -> Path:
    """Where a provider keeps what it knows of a cluster, so that several can have one of the same name."""
    own = paths.cache() / "clusters" / cluster
    return own if name == "libvirt" else own / name


def clusters_of(name: str) -> list[str]:
    """Clusters that the provider made nodes of, whole or in part; a folder may also hold no more than a lock."""
    own = "*/{}" if name == "libvirt" else f"*/{name}/{{}}"
    root = paths.cache() / "clusters"
    found = [path for what in ("vagrant", "state.json") for path in root.glob(own.format(what))]
    return sorted({path.relative_to(root).parts[0] for path in found})


async def remove(name: str, cluster: str, say: Say) -> None:
    """Remove a cluster's nodes and all that was made for them, also where its file is gone."""
    if (paths.CLUSTERS / f"{cluster}.yml").exists():
        await _class(name)(clusters.load_cluster(cluster), say).remove_nodes()
    else:
        await _module(name).remove_forgotten(cluster)


def _class(name: str) -> Callable[..., Provider]:
    found: Callable[..., Provider] = getattr(_module(name), _CLASSES[name])
    return found


def _module(name: str) -> ModuleType:
    # Lazily: no command needs more than one.
    return importlib.import_module(f"overlaylab.providers.{name}")
