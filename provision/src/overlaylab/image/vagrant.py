"""Vagrant, called with an environment that keeps all it writes in the cache folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.image import boxes
from overlaylab.specs.inventory import InventoryNode


class Vagrant:
    """Vagrant for one cluster.

    Its state lies in the cache folder rather than in the checkout, so that a second clone finds
    the nodes that the first one made.
    """

    def __init__(
        self,
        cluster: str,
        *,
        box: str,
        accelerator: str,
        key: Path,
        provider: str = "libvirt",
        folder: Path | None = None,
    ) -> None:
        self.folder = folder or paths.cache() / "clusters" / cluster
        self.provider = provider
        self.environment = os.environ | {
            "CLUSTER": cluster,
            "VAGRANT_CWD": str(paths.ROOT / "vagrant"),
            "VAGRANT_DOTFILE_PATH": str(self.folder / "vagrant"),
            "VAGRANT_HOME": str(home()),
            "VAGRANT_DEFAULT_PROVIDER": provider,
            "VAGRANT_CHECKPOINT_DISABLE": "1",
            "VAGRANT_NO_COLOR": "1",
            "OVERLAYLAB_BOX": box,
            "OVERLAYLAB_ACCELERATOR": accelerator,
            "OVERLAYLAB_SSH_KEY": str(key),
            "OVERLAYLAB_POOL": pool(),
            "OVERLAYLAB_POOL_PATH": str(pool_path()),
        }

    async def __call__(self, *arguments: str) -> str:
        """Run vagrant; its output goes to vagrant.log in the cluster's folder and is returned."""
        self.folder.mkdir(parents=True, exist_ok=True)
        beginning = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                "vagrant", *arguments,
                env=self.environment, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )
        )  # fmt: skip
        try:
            # Not cancelled half-way: asyncio would kill what has begun.
            raw, _ = await (await asyncio.shield(beginning)).communicate()
        except asyncio.CancelledError:
            process = await beginning
            # Vagrant cleans up after itself on the first interrupt.
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            await process.communicate()
            raise
        process = beginning.result()
        text = raw.decode(errors="replace")
        log = self.folder / "vagrant.log"
        with log.open("a") as file:
            file.write(f"$ vagrant {' '.join(arguments)}\n{text}\n")
        if process.returncode:
            raise UserError(
                f"vagrant {' '.join(arguments)}",
                f"ended with {process.returncode}: {_last_words(text)}",
                fix=f"The whole output is in {log}; ./task doctor looks for the usual causes",
            )
        return text

    async def add_box(self, box: Path) -> bool:
        """Add the box file under the configured name, unless it is there. True where it was added."""
        added = box_folder(self.environment["OVERLAYLAB_BOX"], self.provider)
        if added.is_dir():
            return False
        # Not `vagrant box add`: it takes half as long again, and needs Vagrant.
        await asyncio.to_thread(boxes.unpack, box, added)
        return True

    def remove_other_boxes(self) -> list[str]:
        """Delete the lab's boxes but the configured one; prefixes of their volumes in the storage pool."""
        own = self.environment["OVERLAYLAB_BOX"].replace("/", "-VAGRANTSLASH-")
        removed = [
            path
            for path in (home() / "boxes").glob("overlaylab-VAGRANTSLASH-*")
            if path.name != own and self._is_ours(path)
        ]
        for path in removed:
            shutil.rmtree(path)
        return [f"{path.name}_vagrant_box_image" for path in removed]

    def _is_ours(self, box: Path) -> bool:
        """Whether the box is for this provider, or for none because adding it was cut off."""
        providers = {path.name for path in box.glob("*/*") if path.is_dir()}
        return not providers or self.provider in providers

    async def nodes(self, underlays: dict[str, tuple[str, str]]) -> tuple[InventoryNode, ...]:
        """The nodes as `vagrant ssh-config` gives them; underlays: {name: (address/prefix, zone)}.

        Vagrant does not know their host keys.
        """
        import ipaddress

        config = _parse_ssh_config(await self("ssh-config"))
        return tuple(
            InventoryNode(
                name=name,
                ssh_host=config[name]["HostName"],
                ssh_port=int(config[name]["Port"]),
                ssh_user=config[name]["User"],
                ssh_key=Path(config[name]["IdentityFile"].strip('"')),
                host_key=None,
                underlay_interface="eth1",
                underlay_address=ipaddress.IPv4Interface(address),
                zone=zone,
            )
            for name, (address, zone) in underlays.items()
        )


def _last_words(text: str) -> str:
    """The last lines that say something. Vagrant ends an unforeseen error with where it was in its source."""
    said = [line.strip() for line in text.splitlines() if line.strip()]
    words = [line for line in said if not re.search(r"\.rb:\d+:in [`'][^`']*'$", line)]
    return " / ".join((words or said)[-6:])


def _parse_ssh_config(text: str) -> dict[str, dict[str, str]]:
    """{host: {keyword: value}} of ssh_config(5) text."""
    hosts: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        match = re.match(r"\s*(\S+)\s+(.+?)\s*$", line)
        if not match:
            continue
        keyword, value = match.groups()
        if keyword == "Host":
            current = hosts.setdefault(value, {})
        else:
            current.setdefault(keyword, value)
    return hosts


def box_folder(name: str, provider: str) -> Path:
    """Where Vagrant looks for the box of that name and for its copy of the box's files."""
    return home() / "boxes" / name.replace("/", "-VAGRANTSLASH-") / "0" / provider


def box_volume(added: Path) -> str:
    """What vagrant-libvirt calls the disk of an added box in a storage pool (its action/handle_box_image.rb)."""
    changed = int((added / boxes.DISK).stat().st_mtime)
    return f"{added.parents[1].name}_vagrant_box_image_0_{changed}_{boxes.DISK}"


def home() -> Path:
    """VAGRANT_HOME: boxes and Vagrant's own state."""
    return paths.cache() / "vagrant.d"


def pool() -> str:
    """Name of the libvirt storage pool; one per cache folder, so that two users do not share one."""
    return (
        paths.cache().name
        if paths.cache().name.startswith("overlaylab")
        else f"overlaylab-{paths.cache().name}"
    )


def pool_path() -> Path:
    """Folder of the storage pool."""
    return paths.cache() / "pool"


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file, {} where there is none or it is damaged."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
