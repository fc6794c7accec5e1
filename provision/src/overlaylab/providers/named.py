"""Providers by the names that people type: PROVIDER=libvirt, lxc or virtualbox."""

from __future__ import annotations

from overlaylab import cluster as clusters
from overlaylab import host, paths
from overlaylab.errors import UserError
from overlaylab.providers import Provider, Say

NAMES = ("libvirt", "virtualbox", "lxc")
"""Providers that make nodes through Vagrant; plain SSH hosts are chosen by an inventory instead."""


def make(name: str, cluster: str, say: Say, **how) -> Provider:
    """The provider for a cluster of `vagrant/clusters`, on a machine that was made ready for it.

    how: underlay_mtu and role_arguments, as `Libvirt` takes them. Raises UserError for an unknown name or
    cluster before anything on the machine is touched.
    """
    check(name)
    spec = clusters.load_cluster(cluster)
    host.ensure(name)
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


def folder(name: str, cluster: str):
    """Where a provider keeps what it knows of a cluster, so that several can have one of the same name."""
    own = paths.cache() / "clusters" / cluster
    return own if name == "libvirt" else own / name


def _class(name: str):
    # Lazily: no command needs more than one.
    if name == "lxc":
        from overlaylab.providers.lxc import Lxc

        return Lxc
    if name == "virtualbox":
        from overlaylab.providers.virtualbox import VirtualBox

        return VirtualBox
    from overlaylab.providers.libvirt import Libvirt

    return Libvirt
