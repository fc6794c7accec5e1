"""From what was typed to a stored plan, and what stands in the way of it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from lab_builders import inventory

from overlaylab.cli import main
from overlaylab.cli.commands import measure
from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.machine import checkout, ready
from overlaylab.providers import registry
from overlaylab.run import experiment
from overlaylab.run.options import Options
from overlaylab.specs import overlays
from overlaylab.specs.inventory import Inventory, write_inventory
from overlaylab.specs.profile import load_profile

ROUTES: list[dict] = [
    {"dst": "default", "gateway": "10.0.2.2", "dev": "eth0"},
    {"dst": "10.0.2.0/24", "dev": "eth0"},
]


@pytest.fixture(autouse=True)
def routes(monkeypatch: pytest.MonkeyPatch, own_cache) -> list[dict]:
    """The routes of this machine, as a test says."""
    found = list(ROUTES)
    monkeypatch.setattr(experiment.routes, "known", lambda: found)
    return found


@pytest.fixture
def hosts(tmp_path) -> Path:
    """An inventory of two SSH hosts."""
    path = tmp_path / "hosts.yml"
    write_inventory(path, replace(inventory("a", "a"), name="hosts", provider="external"))
    return path


# -- right ------------------------------------------------------------------------------------------


def test_what_counts_where_nothing_is_typed() -> None:
    asked = experiment.request("weave")
    assert (asked.profile.name, asked.suite.name, asked.cluster) == ("azure-a1", "quick", "pair")
    assert (asked.blocks, asked.options.scale, asked.inventory) == (7, 1.0, None)
    assert asked.variants == (Variant("host"), Variant("weave", "fastdp"), Variant("weave", "sleeve"))
    assert 0 <= asked.seed < 2**31
    assert experiment.request("weave").seed != asked.seed


def test_the_host_alone_is_one_variant() -> None:
    assert experiment.request("host").variants == (Variant("host"),)


def test_ssh_hosts_are_not_shaped_unless_asked(hosts) -> None:
    assert experiment.request("weave", Options(inventory=str(hosts))).profile.is_none
    assert (
        experiment.request("weave", Options(inventory=str(hosts), profile="azure-a2")).profile.rate == 200e6
    )


def test_everything_that_is_typed_counts() -> None:
    asked = experiment.request(
        "weave",
        Options(
            modes="sleeve-encrypted,fastdp",
            arguments="overlay_weave_mtu=1410",
            profile="azure-a3",
            suite="schaaf-2015",
            blocks=2,
            scale=4,
            seed=42,
        ),
    )
    assert [v.key for v in asked.variants] == ["host", "bridge", "sleeve-encrypted", "fastdp"]
    assert [b.parameters.get("duration") for b in asked.suite.benchmarks] == [8, 8, None]
    assert (asked.blocks, asked.seed, asked.profile.name) == (2, 42, "azure-a3")
    assert asked.role_arguments == {"weave": {"overlay_weave_mtu": 1410}}


def test_what_is_stored_asks_for_the_same_plan_again(hosts) -> None:
    for asked in (
        experiment.request("weave", Options(modes="fastdp", blocks=3, scale=2, profile="azure-a0")),
        experiment.request("weave", Options(arguments="overlay_weave_mtu=1410")),
        experiment.request("weave", Options(margin=0.03, precision=0.01)),
        experiment.request("host", Options(inventory=str(hosts), suite="schaaf-2015")),
    ):
        stored = json.loads(json.dumps(asked.arguments()))
        again = experiment.again(stored, "libvirt" if asked.provider is None else asked.provider)
        again = replace(again, options=replace(again.options, provider=asked.provider))
        assert again.arguments() == asked.arguments()
        assert again.variants == asked.variants
        where = experiment.planning_inventory(asked)
        assert experiment.plan(again, where) == experiment.plan(asked, where)


def test_the_command_line_asks_for_the_same_again(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    path = folder / "hosts.yml"
    write_inventory(path, replace(inventory("a", "a"), name="hosts", provider="external"))
    typed = "overlay_weave_mtu=1410 overlay_weave_range=10.200.0.0/16"
    asked = experiment.request("weave", Options(inventory=str(path), modes="fastdp", arguments=typed, seed=7))
    line = experiment.command_line(asked)
    assert line == (
        f"./task lab:weave MODES=fastdp ARGUMENTS='{typed}' CLUSTER=pair INVENTORY='{path}'"
        " PROFILE=none SUITE=quick BLOCKS=6 SCALE=1.0 SEED=7"
    )
    # As ./task hands it on: each word in the environment, where click finds it.
    words = subprocess.run(["sh", "-c", f"printf '%s\\0' {line}"], capture_output=True, text=True).stdout
    _, task, *variables = words.rstrip("\0").split("\0")
    for variable in variables:
        monkeypatch.setenv(*variable.split("=", 1))
    names = main.cli.context_settings["help_option_names"]
    words = [task.removeprefix("lab:")]
    with measure.command.make_context("measure", words, help_option_names=names) as context:
        typed_again = dict(context.params)
    assert experiment.request(typed_again.pop("overlay"), Options(**typed_again)) == asked


def test_planning_takes_no_nodes(hosts) -> None:
    found = experiment.planning_inventory(experiment.request("host"))
    assert [(n.name, str(n.underlay_address), n.zone) for n in found.nodes] == [
        ("node1", "192.168.77.11/24", "a"),
        ("node2", "192.168.77.12/24", "a"),
    ]
    asked = experiment.request("host", Options(inventory=str(hosts)))
    assert experiment.planning_inventory(asked).name == "hosts"


# -- wrong ------------------------------------------------------------------------------------------


def test_an_overlay_without_a_role_is_named() -> None:
    with pytest.raises(UserError, match="overlay: must be an overlay that has a role"):
        experiment.request("weve")


@pytest.mark.parametrize(
    ("typed", "where", "rule"),
    [
        ({"modes": "fastpd"}, "MODES", "must be modes of weave"),
        ({"modes": ""}, "MODES", "must be names with single commas between them"),
        ({"profile": "azure-a9"}, "PROFILE", None),
        ({"suite": "quik"}, "SUITE", None),
        ({"cluster": "pear"}, "CLUSTER", None),
        ({"inventory": "absent.yml"}, "INVENTORY", "must name an inventory file"),
        ({"blocks": 0}, "BLOCKS", "must lie between 1 and 1000"),
        ({"blocks": -1}, "BLOCKS", "must lie between 1 and 1000"),
        ({"blocks": 1001}, "BLOCKS", "must lie between 1 and 1000"),
        ({"seed": -1}, "SEED", "must lie between 0 and 2^63 - 1"),
        ({"seed": 2**63}, "SEED", "must lie between 0 and 2^63 - 1"),
        ({"scale": 0}, "SCALE", "must lie between 0.1 and 1000"),
        ({"scale": float("nan")}, "SCALE", "must lie between 0.1 and 1000"),
        ({"arguments": "overlay_weave_mtu"}, "ARGUMENTS", "must be name=value, with spaces between several"),
    ],
)
def test_what_is_typed_wrong_is_named(typed, where, rule) -> None:
    with pytest.raises(UserError) as wrong:
        experiment.request("weave", Options(**typed))
    assert wrong.value.where == where
    assert rule is None or wrong.value.rule == rule
    assert wrong.value.fix


@pytest.mark.parametrize(
    ("route", "where", "seen"),
    [
        ({"dst": "192.168.77.0/24", "dev": "eth1"}, "underlay.network", "192.168.77.0/24, and a route to 192.168.77.0/24 (dev eth1)"),
        ({"dst": "192.168.0.0/16", "dev": "tun0"}, "underlay.network", "192.168.77.0/24, and a route to 192.168.0.0/16 (dev tun0)"),
        ({"dst": "10.0.0.0/8", "dev": "tun0"}, "range", "10.32.0.0/12, and a route to 10.0.0.0/8 (dev tun0)"),
        ({"dst": "10.33.1.1", "dev": "tun0"}, "range", "10.32.0.0/12, and a route to 10.33.1.1 (dev tun0)"),
    ],
)  # fmt: skip
def test_addresses_that_the_operator_uses_otherwise_are_refused(routes, route, where, seen) -> None:
    routes.append(route)
    with pytest.raises(UserError) as wrong:
        experiment.request("weave")
    assert wrong.value.where.endswith(where)
    assert wrong.value.seen == seen


def test_the_labs_own_bridge_and_ranges_that_nobody_asked_for_are_no_overlap(routes) -> None:
    routes += [
        {"dst": "192.168.77.0/24", "dev": "virbr7", "protocol": "kernel"},
        {"type": "broadcast", "dst": "192.168.77.255", "dev": "virbr7", "table": "local"},
        {"dst": "fe80::/64", "dev": "eth0"},
    ]
    experiment.request("weave")
    routes.append({"dst": "10.0.0.0/8", "dev": "tun0"})
    experiment.request("host")  # it brings no range of its own


def test_an_argument_moves_the_range_out_of_the_way(routes) -> None:
    routes.append({"dst": "10.32.0.0/16", "dev": "tun0"})
    experiment.request("weave", Options(arguments="overlay_weave_range=10.200.0.0/16"))
    with pytest.raises(UserError, match=r"10\.200\.0\.0/16, and a route to 10\.200\.1\.0/24"):
        routes.append({"dst": "10.200.1.0/24", "dev": "tun1"})
        experiment.request("weave", Options(arguments="overlay_weave_range=10.200.0.0/16"))


def test_hosts_whose_underlay_is_the_overlays_range_are_refused(tmp_path) -> None:
    lab = inventory("a", "a")
    nodes = tuple(
        replace(n, underlay_address=type(n.underlay_address)(f"10.33.0.1{i}/24"))
        for i, n in enumerate(lab.nodes)
    )
    path = tmp_path / "hosts.yml"
    write_inventory(path, Inventory("hosts", "external", nodes))
    with pytest.raises(UserError, match="must not overlap the underlay network"):
        experiment.request("weave", Options(inventory=str(path)))


def test_one_host_is_no_network(tmp_path) -> None:
    path = tmp_path / "hosts.yml"
    write_inventory(path, replace(inventory("a"), name="hosts", provider="external"))
    with pytest.raises(UserError, match=r"hosts\.yml"):
        experiment.request("weave", Options(inventory=str(path)))


def test_every_number_of_a_profile_can_be_put_in_force(monkeypatch) -> None:
    tier = replace(
        load_profile("azure-a1"), vcpus=1, quota=0.5, sustained=1e6, bucket=1e8, ingress_metered=True
    )
    monkeypatch.setattr(experiment.profile, "load_profile", lambda name: tier)
    assert experiment.request("weave").profile == tier
    assert experiment.request("weave", Options(provider="lxc")).profile == tier


def test_a_provider_and_an_inventory_exclude_each_other(hosts) -> None:
    with pytest.raises(UserError, match="PROVIDER: cannot be combined with INVENTORY"):
        experiment.request("weave", Options(provider="lxc", inventory=str(hosts)))


def test_what_no_node_here_can_carry_is_refused_before_anything_starts(hosts) -> None:
    with pytest.raises(UserError, match=r"sr-iov: needs a network card with virtual functions"):
        experiment.request("sr-iov")
    assert experiment.request("sr-iov", Options(inventory=str(hosts))).variants == (
        Variant("host"),
        Variant("sr-iov"),
    )
    assert experiment.request("all").left_out[Variant("sr-iov")].startswith("not on this machine: ")


# -- what a run is about ----------------------------------------------------------------------------


class Provider:
    name, cluster, accelerator, image = "libvirt", "pair", "tcg", "0123"
    system, kit = "debian", "d1"
    capabilities = registry.capabilities(name)
    inventory = inventory("a", "b")

    def describe(self) -> dict:
        return {n.name: {"cpus": 1, "cpu": None, "memory_mib": 1024} for n in self.inventory.nodes}


def test_the_record_names_everything_that_decides_a_result() -> None:
    asked = experiment.request("weave", Options(modes="fastdp", seed=7))
    found = experiment.record(asked, Provider())
    assert (found.cluster, found.provider, found.accelerator, found.image) == (
        "pair",
        "libvirt",
        "tcg",
        "0123",
    )
    assert found.machine == ready.machine()
    assert (found.profile_digest, found.suite_digest) == (asked.profile.digest, asked.suite.digest)
    assert found.stands_for == {"cloud": "Azure", "instance": "A1"}
    assert found.role_digests == {name: overlays.role_digest(name) for name in ("host", "weave")}
    assert found.zones == {"node1": "a", "node2": "b"}
    assert (found.seed, found.blocks, found.scale) == (7, 6, 1.0)
    assert found.arguments == asked.arguments()
    assert found.lab_version == str(checkout.described())
    assert found.lab_version.startswith("0.1.0")


def test_hosts_are_described_by_their_kind_and_not_by_name() -> None:
    provider = Provider()
    provider.capabilities = registry.capabilities("hosts")
    found = experiment.record(experiment.request("host"), provider)
    assert found.machine == "1 CPUs, CPU unknown, 1024 MiB"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, []),
        ({"profile_digest": "other"}, ["the profile azure-a1 has changed"]),
        ({"suite_digest": "other"}, ["the suite quick has changed"]),
        ({"role_digests": {"host": "other", "weave": "same"}}, ["the role of host has changed"]),
        ({"role_digests": {"weave": "same"}}, ["the role of host has changed"]),
        ({"accelerator": "kvm"}, ["accelerator was tcg and is kvm"]),
        ({"image": "4567"}, ["image was 0123 and is 4567"]),
        ({"machine": "4 cores"}, ["machine was 2 cores and is 4 cores"]),
        ({"provider": "hosts"}, ["provider was libvirt and is hosts"]),
        (
            {"suite_digest": "other", "image": None},
            ["the suite quick has changed", "image was 0123 and is None"],
        ),
        (
            {"nodes": {"node1": {"cpus": 2}}},
            [
                "node1 is another node: {'cpus': 1, 'cpu': None, 'memory_mib': 1024} before, {'cpus': 2} now",
                "node2 is another node: {'cpus': 1, 'cpu': None, 'memory_mib': 1024} before, {} now",
            ],
        ),
        ({"seed": 8, "scale": 2.0}, []),  # these come from the run itself
    ],
)
def test_what_has_changed_since_a_run_began(change, words) -> None:
    stored = replace(
        experiment.record(experiment.request("weave", Options(seed=7)), Provider()),
        role_digests={"host": "same", "weave": "same"},
        machine="2 cores",
    )
    assert experiment.changes(stored, replace(stored, **change)) == words


# -- blocks and what they are judged by -------------------------------------------------------------


def test_a_suite_gets_the_blocks_that_its_comparisons_take() -> None:
    assert [
        experiment.request("weave", Options(modes=modes)).blocks for modes in ("fastdp", "fastdp,sleeve")
    ] == [
        6,
        7,
    ]
    assert (
        experiment.request("weave", Options(modes="fastdp,fastdp-encrypted,sleeve,sleeve-encrypted")).blocks
        == 8
    )
    assert experiment.request("weave", Options(blocks=2)).blocks == 2
    assert experiment.request("weave", Options(suite="schaaf-2015")).blocks == 3, "as its author repeated it"


def test_precision_settles_its_looks_before_the_run() -> None:
    asked = experiment.request("weave", Options(precision=0.02))
    assert (asked.rules.looks, asked.blocks, asked.rules.margin) == ((8, 16, 32), 32, 0.02)
    assert " BLOCKS=32 " in experiment.command_line(asked)
    assert experiment.command_line(asked).endswith(" PRECISION=2%")
    asked = experiment.request("weave", Options(precision=0.005, margin=0.05, blocks=20))
    assert (asked.rules.looks, asked.blocks) == ((10, 20), 20)
    assert experiment.command_line(asked).endswith(" MARGIN=5% PRECISION=0.5%")
    with pytest.raises(UserError, match=r"BLOCKS: must be at least 8 with PRECISION and 2 comparisons"):
        experiment.request("weave", Options(precision=0.02, blocks=7))
    for typed in ({"margin": 0.0}, {"precision": 0.6}):
        with pytest.raises(UserError, match=r"must lie between 0.05 % and 50 %"):
            experiment.request("weave", Options(**typed))
