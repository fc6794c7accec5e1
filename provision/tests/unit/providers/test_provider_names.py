"""Nothing outside providers/ knows which provider it is: their names stand nowhere else, but for other things."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from overlaylab.core.paths import PROVISION
from overlaylab.providers import registry

SOURCE = PROVISION / "src" / "overlaylab"
# {(file, word): how often it stands there}; each was looked at.
OTHER_THINGS = {
    # Vagrant's plugins and boxes, by Vagrant's own words; folders of packer/.
    ("image/boxes.py", "libvirt"): 1,
    ("image/lxc_box.py", "lxc"): 2,
    ("image/vagrant.py", "libvirt"): 1,
    ("image/virtualbox_box.py", "virtualbox"): 2,
    # A group of users, a service, a folder, a line of the doctor's.
    ("machine/access.py", "libvirt"): 3,
    ("machine/checks.py", "libvirt"): 3,
    ("machine/services.py", "libvirt"): 1,
    # A package of Debian.
    ("machine/packages.py", "lxc"): 1,
    ("machine/ready.py", "lxc"): 1,
    # A key of Ansible's inventories and events.
    ("nodes/ansible.py", "hosts"): 1,
    ("specs/inventory.py", "hosts"): 6,
}
# What others import of providers/.
FOR_ALL = {
    "Entered",
    "How",
    "Machines",
    "Provider",
    "Say",
    "VariantState",
    "capabilities",
    "choice",
    "registry",
    "requirements",
    "shaped",
}


def words(text: str, known: set[str]) -> Counter[str]:
    """How often each of the known words is a whole string of a program."""
    nodes = ast.walk(ast.parse(text))
    return Counter(
        str(node.value) for node in nodes if isinstance(node, ast.Constant) and node.value in known
    )


def imported(text: str) -> set[str]:
    """What a program takes out of the package of providers."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("overlaylab.providers"):
            _, _, deeper = str(node.module).partition("overlaylab.providers.")
            found |= {deeper.partition(".")[0]} if deeper else {alias.name for alias in node.names}
    return found


def outside() -> dict[str, str]:
    """{file: its text} of every module that is not of providers/."""
    files = {path.relative_to(SOURCE): path for path in sorted(SOURCE.rglob("*.py"))}
    return {
        str(at): path.read_text(encoding="utf-8") for at, path in files.items() if at.parts[0] != "providers"
    }


def test_no_provider_is_known_by_name_outside_of_providers() -> None:
    known = {*registry.names(), registry.of_inventory()}
    found = {
        (at, word): times for at, text in outside().items() for word, times in words(text, known).items()
    }
    assert found == OTHER_THINGS


def test_no_providers_own_module_is_imported_outside_of_providers() -> None:
    found = {(at, name) for at, text in outside().items() for name in imported(text) - FOR_ALL}
    assert found == set()


@pytest.mark.parametrize(
    "line",
    [
        'if provider.name == "lxc": pass',
        'if name in ("lxc", "libvirt"): pass',
        'fit = {"lxc": 1}[name]',
        'chosen = asked or "lxc"',
        'match name:\n    case "lxc": pass',
        'make("lxc")',
        'def make(name="lxc"): pass',
    ],
)
def test_every_way_to_ask_for_a_name_is_found(line: str) -> None:
    assert words(line, {"lxc"}) == {"lxc": 1}
    assert words('"""Nodes of lxc."""\nprint("lxc is a word")', {"lxc"}) == {}


def test_every_way_to_import_is_found() -> None:
    text = "from overlaylab.providers import registry, virsh\nfrom overlaylab.providers.kinds.lxc import Lxc"
    assert imported(text) - FOR_ALL == {"virsh", "kinds"}
