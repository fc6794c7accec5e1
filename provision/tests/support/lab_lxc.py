"""LXC in memory, as lxc_host shows it."""

from dataclasses import dataclass, field

import pytest

from overlaylab.providers import lxc_host
from overlaylab.providers.lxc_host import Container

NAMES = ["overlaylab-pair-node1", "overlaylab-pair-node2"]
HOST_KEYS = {
    NAMES[0]: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ",
    NAMES[1]: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBkVF0oI0cHzqLK/0OJSXE6XqZ9aFH32A74eKZprgHFN",
}


@dataclass
class Machine:
    """What lxc_host would do, in memory. log: what changes anything, in order."""

    there: list[Container] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    log: list[tuple] = field(default_factory=list)
    failing: dict[str, str] = field(default_factory=dict)

    def put_in_place(self, monkeypatch: pytest.MonkeyPatch, folder) -> None:
        for verb in (
            "check_routes",
            "make_bridges",
            "freeze",
            "start",
            "stop",
            "remove",
            "unload_modules",
        ):
            monkeypatch.setattr(lxc_host, verb, lambda *given, verb=verb: self._do(verb, *given))
        monkeypatch.setattr(lxc_host, "survey", lambda: self.there)
        monkeypatch.setattr(lxc_host, "running", lambda names: self.running & set(names))
        monkeypatch.setattr(lxc_host, "load_modules", self._load)
        monkeypatch.setattr(lxc_host, "LXCPATH", folder)

    def _do(self, verb: str, *given) -> dict[str, str] | None:
        self.log.append((verb, *given))
        if verb in ("freeze", "start"):
            self.running |= set(given[0])
        elif verb in ("stop", "remove"):
            self.running -= set(given[0])
        return HOST_KEYS if verb == "freeze" else None

    def _load(self, names) -> dict[str, str]:
        self.log.append(("load_modules", *names))
        return self.failing

    @property
    def verbs(self) -> list[str]:
        return [entry[0] for entry in self.log]
