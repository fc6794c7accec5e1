"""Systems that nodes may have: ``packer/systems/<name>/system.yml``, as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.documents import load_document
from overlaylab.core.errors import UserError

DEFINITIONS = paths.ROOT / "packer" / "systems"
FILE, SCHEMA, LOCK = "system.yml", "system.schema.json", "packages.lock"
# More folders of definitions, with colons between them.
MORE = "OVERLAYLAB_SYSTEMS"

DEFAULT = "debian"


@dataclass(frozen=True)
class Packages:
    """What a system is made of by packages. keyring: a file's name, None for apt's own keys."""

    suite: str
    components: tuple[str, ...]
    include: tuple[str, ...]
    keyring: str | None


@dataclass(frozen=True)
class Source:
    """Where a publisher's disk is, and by what it is known. fingerprint: of the key that signed the checksums."""

    url: str
    signature: str
    key: str
    fingerprint: str
    cited: str
    # The list that is signed; None where the disk itself is.
    checksums: str | None = None


@dataclass(frozen=True)
class Disk:
    """What a system needs that is made from somebody else's disk.

    configured_by: ``cloud-init`` or ``ignition``; firmware_name: Ignition's, in QEMU's fw_cfg.
    """

    configured_by: str
    firmware_name: str | None
    source: Source | None


@dataclass(frozen=True)
class System:
    """One system. id, release: as os-release(5) has them. At least one of packages and disk is there."""

    name: str
    folder: Path
    title: str
    id: str
    release: str | None
    # What the project has run of it, in words.
    run: str
    # Why containers cannot have it; None where they can.
    vms_only: str | None
    packages: Packages | None
    disk: Disk | None

    @property
    def lock(self) -> Path:
        return self.folder / LOCK

    @property
    def files(self) -> list[Path]:
        """What a build of it depends on, sorted."""
        return sorted(path for path in self.folder.iterdir() if path.is_file())


def names() -> list[str]:
    """Names of the systems that have a definition, sorted."""
    return sorted(_found())


def load(name: str) -> System:
    """A system's definition. Raises UserError for one that is not there, or is wrong."""
    folder = _found().get(name)
    if folder is None:
        raise UserError(
            "SYSTEM",
            f"must be one of {', '.join(names())}",
            seen=name,
            fix=f"Choose one of them, or add packer/systems/<name>/{FILE}",
        )
    data = load_document(folder / FILE, DEFINITIONS / SCHEMA).data
    return System(
        name, folder, data["title"], data["id"], data["release"], data["run"], data.get("vms_only"),
        _packages(data), _disk(data),
    )  # fmt: skip


def _found() -> dict[str, Path]:
    more = [Path(folder) for folder in os.environ.get(MORE, "").split(":") if folder]
    return {
        path.parent.name: path.parent for folder in (*more, DEFINITIONS) for path in folder.glob(f"*/{FILE}")
    }


def _packages(data: Mapping[str, Any]) -> Packages | None:
    one = data.get("packages")
    return one and Packages(one["suite"], tuple(one["components"]), tuple(one["include"]), one.get("keyring"))


def _disk(data: Mapping[str, Any]) -> Disk | None:
    one = data.get("image")
    source = one and one.get("source")
    return one and Disk(one["configured_by"], one.get("firmware_name"), Source(**source) if source else None)
