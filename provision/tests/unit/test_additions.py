"""A new provider, overlay, tool and suite are each a file of their own: nothing that is there has to know of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from lab_builders import inventory
from lab_commands import lab, refused
from lab_run import Shaper

from overlaylab import tools
from overlaylab.cli.commands import measure
from overlaylab.core import paths
from overlaylab.core.model import Variant
from overlaylab.providers import choice, kinds, registry, requirements
from overlaylab.specs import overlays, suite
from overlaylab.specs.inventory import write_inventory
from overlaylab.specs.profile import load_profile
from overlaylab.store.store import Store
from overlaylab.tools import base

PROVIDER = '''
"""Nodes that answer from a list."""

from lab_run import Lab

from overlaylab.providers.capabilities import Capabilities
from overlaylab.providers.registry import Kind


class Paper(Lab):
    name, cpu, networks = "paper", None, ()
    capabilities = Capabilities("paper", accelerator="tcg", product=("Paper", "scissors"))

    def __init__(self, spec, say, **how) -> None:
        super().__init__()
        self.how = how

    @property
    def inventory(self):
        return self.nodes.inventory

    def describe(self):
        return {node.name: {"underlay_address": str(node.underlay_address)} for node in self.inventory.nodes}

    async def prepare(self, variants, say) -> None:
        say(f"paper for {', '.join(map(str, variants))}: {self.how}")
        self.nodes.answers["endpoint spin"] = "95000000\\n"

    async def leave(self) -> None:
        self.nodes.drop()


PROVIDER = Kind(Paper.capabilities, Paper)
'''
TOOL = '''
"""spin: prints the goodput in bit/s."""

from overlaylab.core.model import Sample


class Spin:
    name, directions, closed_loop, latency_is = "spin", ("client-to-server",), False, None
    parameters = {
        "type": "object",
        "required": ["duration"],
        "properties": {"duration": {"type": "number", "unit": "s", "scaled": True, "description": "such as 5 s"}},
    }

    def parse(self, stdout, stderr, exit_code, parameters):
        return [Sample("goodput", float(stdout))]

    def server(self, parameters):
        return None

    def client_argv(self, server_address, parameters, direction="client-to-server"):
        return ("spin", server_address)

    def duration(self, parameters):
        return parameters["duration"]

    def timeout(self, parameters):
        return 20 + parameters["duration"]

    def version_argv(self):
        return ("spin", "--version")


TOOL = Spin()
'''
SUITE = """
description: goodput, by spinning
blocks: 2
benchmarks:
  - name: spun
    tool: spin
    parameters: {duration: 3 s}
    repetitions: 1
    warmups: 0
    placement: remote
    direction: client-to-server
"""
OVERLAY = """
name: gauze
title: Gauze
version: "1.0"
default_modes: [thin]
needs: {features: [link:vxlan], modules: [vxlan], commands: [ip]}
units: [overlaylab-weave.service]
range: 10.40.0.0/16
range_argument: overlay_gauze_range
ports: [4789/udp]
modes:
  thin:
    mode: thin
    encrypted: false
    arguments: {overlay_gauze_mode: thin}
    family: null
    header_bytes: 50
    wire: {filter: udp port 4789, marker: visible}
"""
THIN = Variant("gauze", "thin")
NONE = load_profile("none")


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder beside the project with one of each."""
    folders = {name: tmp_path / "added" / name for name in ("kinds", "tools", "suites", "roles")}
    meta = folders["roles"] / "overlay_gauze" / "meta"
    for folder in (*folders.values(), meta):
        folder.mkdir(parents=True, exist_ok=True)
    (folders["kinds"] / "paper.py").write_text(PROVIDER)
    (folders["tools"] / "spin.py").write_text(TOOL)
    (folders["suites"] / "spinning.yml").write_text(SUITE)
    (meta / "overlay.yml").write_text(OVERLAY)
    (meta / "argument_specs.yml").write_text("argument_specs: {main: {options: {}}}\n")
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folders["kinds"])])
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, str(folders["tools"])])
    monkeypatch.setattr(suite, "FOLDERS", [*suite.FOLDERS, folders["suites"]])
    monkeypatch.setattr(overlays, "FOLDERS", [*overlays.FOLDERS, folders["roles"]])
    yield folders
    for name in ("overlaylab.providers.kinds.paper", "overlaylab.tools.spin"):
        sys.modules.pop(name, None)


@pytest.fixture
def scissors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the new provider needs is installed; nothing else is known of this machine."""
    monkeypatch.setattr(requirements.packages, "find_program", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("added")
def test_a_provider_is_found_by_its_file() -> None:
    assert registry.names() == ("libvirt", "paper", "virtualbox", "lxc")
    registry.check("paper")
    assert registry.capabilities("paper").accelerator == "tcg"
    assert (registry.fallback(), registry.before_emulation(), registry.of_inventory()) == (
        "libvirt",
        "lxc",
        "hosts",
    )
    assert (
        refused("cluster", "down", PROVIDER="vmware").rule == "must be one of libvirt, paper, virtualbox, lxc"
    )


@pytest.mark.usefixtures("added")
def test_a_provider_is_chosen_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.packages, "find_program", lambda name: None)
    with pytest.raises(choice.UserError, match=r"no scissors\)\. Install Paper, or leave PROVIDER out"):
        choice.choose("paper", [THIN], NONE)
    monkeypatch.setattr(requirements.packages, "find_program", lambda name: f"/usr/bin/{name}")
    assert choice.choose("paper", [THIN], NONE) == ("paper", "provider paper, as asked")
    monkeypatch.setattr(choice.ready, "accelerator", lambda: "kvm")
    assert choice.choose(None, [THIN], NONE) == ("libvirt", "provider libvirt: KVM works here")


@pytest.mark.usefixtures("added", "scissors", "machine")
def test_the_doctor_shows_what_runs_on_it() -> None:
    row = next(row for row in requirements.survey() if row.title == "gauze thin")
    assert (row.overlay, row.mode) == ("gauze", "thin")
    assert row.verdicts["paper"] == requirements.Verdict(True)
    report = json.loads(lab("doctor", "--json").stdout)
    shown = {(one["overlay"], one["mode"]): one["providers"] for one in report["runs_on"]}
    assert list(shown["gauze", "thin"]) == ["libvirt", "paper", "virtualbox", "lxc"]
    assert shown["gauze", "thin"]["paper"]["runs"] is True


@pytest.mark.usefixtures("added")
def test_an_inventory_may_say_that_it_made_the_nodes(tmp_path: Path) -> None:
    path = tmp_path / "inventory.yml"
    write_inventory(path, replace(inventory("a", "b"), provider="paper"))
    assert registry.hosts(path, print).inventory.provider == "paper"


def test_an_overlay_is_found_by_its_role(added: dict[str, Path]) -> None:
    assert "gauze" in overlays.names() and "weave" in overlays.names()
    assert overlays.load("gauze").variant("thin") == THIN
    assert overlays.role("gauze") == added["roles"] / "overlay_gauze"
    before = overlays.role_digest("gauze"), overlays.role_digest("weave")
    (added["roles"] / "overlay_gauze" / "tasks.yml").write_text("[]")
    assert overlays.role_digest("gauze") != before[0]
    assert overlays.role_digest("weave") == before[1]


@pytest.mark.usefixtures("added")
def test_a_tool_and_a_suite_are_found_by_their_files() -> None:
    assert "spin" in base.names()
    assert base.load("spin").version_argv() == ("spin", "--version")
    spinning = suite.load_suite("spinning")
    assert [(one.name, one.parameters) for one in spinning.benchmarks] == [("spun", {"duration": 3})]
    assert suite.load_suite("quick").benchmarks[0].tool == "iperf3"


@pytest.mark.usefixtures("added", "scissors", "machine")
def test_all_of_them_together_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    ready_for = []
    monkeypatch.setattr(registry.ready, "ensure", lambda needs, meanwhile: ready_for.append(needs))
    monkeypatch.setattr(measure, "on_nodes", lambda provider, profile: Shaper(profile))
    result = lab(
        "measure", "gauze", SUITE="spinning", PROVIDER="paper", PROFILE="azure-a1", SEED="1", BLOCKS="2"
    )
    assert result.exit_code == 0, result.output
    assert ready_for == [registry.capabilities("paper").needs] * 2
    # Nodes whose limits can be told while they run are not made for them.
    assert (
        "paper for host, gauze thin: {'underlay_mtu': 1500, 'role_arguments': {}, 'system': 'debian'}"
        in result.stderr
    )
    with Store.open(paths.database()) as store:
        rows = store.db.execute(
            "SELECT provider, overlay, tool, metric, value FROM result WHERE metric = 'goodput' ORDER BY overlay"
        ).fetchall()
        assert store.run(store.find_run(None)).state == "done"
    gauze = ("paper", "gauze", "spin", "goodput", 95e6)
    assert [tuple(row) for row in rows] == [
        gauze,
        gauze,
        ("paper", "host", *gauze[2:]),
        ("paper", "host", *gauze[2:]),
    ]


@pytest.mark.usefixtures("machine")
def test_without_their_files_nobody_knows_them() -> None:
    assert registry.names() == ("libvirt", "virtualbox", "lxc")
    assert refused("measure", "gauze").where == "overlay"
    assert refused("measure", "host", SUITE="spinning").where == "SUITE"
