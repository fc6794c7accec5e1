"""The running kernel's modules: what is loaded, what could be, and by which aliases trying asks for them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Modules:
    """Names have underscores, as the kernel spells them.

    files: those on disk; aliases: {alias: module}, of which the kernel asks for one; loaded: those in memory.
    known: False where the kernel takes modules but their folder is not here, as in a container.
    """

    files: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    known: bool = True

    def absent(self, *wanted: str) -> tuple[str, ...]:
        """Which of these modules or aliases are on disk and not loaded, by name, each once."""
        names = (self.aliases.get(word, word).replace("-", "_") for word in wanted)
        return tuple(dict.fromkeys(name for name in names if name in self.files - self.loaded))


def folder() -> Path:
    """Where this kernel's modules lie."""
    return Path("/lib/modules") / platform.release()


def read_modules() -> Modules:
    """The modules of the kernel that runs; none where it takes none (modules.dep(5), modprobe(8))."""
    try:
        rows = Path("/proc/modules").read_text(encoding="ascii").splitlines()
        closed = Path("/proc/sys/kernel/modules_disabled").read_text(encoding="ascii").strip() == "1"
    except OSError:
        return Modules()
    loaded = frozenset(row.split()[0] for row in rows)
    if closed:
        return Modules(loaded=loaded)
    try:
        dependencies = (folder() / "modules.dep").read_text(encoding="utf-8")
        aliases = (folder() / "modules.alias").read_text(encoding="utf-8")
    except OSError:
        # A kernel without a single module loaded has them built in.
        return Modules(loaded=loaded, known=not loaded)
    return Modules(parse_dependencies(dependencies), parse_aliases(aliases), loaded)


def parse_dependencies(text: str) -> frozenset[str]:
    """Names of the modules in modules.dep(5): ``kernel/net/openvswitch/openvswitch.ko.xz: …``."""
    files = (line.partition(":")[0] for line in text.splitlines())
    return frozenset(file.rpartition("/")[2].partition(".ko")[0].replace("-", "_") for file in files if file)


def parse_aliases(text: str) -> dict[str, str]:
    """{alias: module} of modules.alias, of the kinds that networking asks for."""
    rows = (line.split() for line in text.splitlines() if line.startswith(("alias rtnl-", "alias net-")))
    return {row[1]: row[2] for row in rows if len(row) == 3}
