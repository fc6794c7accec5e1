"""The command line: what each command says, prints and refuses."""

import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest
from lab_builders import inventory
from lab_commands import lab, refused

from overlaylab.cli import main
from overlaylab.core import paths
from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.lock import cluster_lock
from overlaylab.core.model import Variant
from overlaylab.machine import packages, ready, services, ssh_keys
from overlaylab.providers import registry, virsh
from overlaylab.providers.kinds import libvirt, lxc
from overlaylab.specs.inventory import write_inventory

FIXTURES = Path(__file__).parents[2] / "fixtures" / "commands"


pytestmark = pytest.mark.usefixtures("machine")


# -- all commands -----------------------------------------------------------------------------------


def every_command() -> list[tuple[str, ...]]:
    found = []
    context = click.Context(main.cli)
    for name in main.cli.list_commands(context):
        command = main.cli.get_command(context, name)
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, sub) for sub in command.list_commands(context)]
    return found


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_says_what_it_does(words) -> None:
    result = lab(*words, "--help")
    assert result.exit_code == 0
    usage, _, told, *_ = result.output.splitlines()
    assert usage.startswith("Usage: cli " + " ".join(words))
    assert told.strip()
    assert lab(*words, "-h").output == result.output


def test_the_core_has_these_commands() -> None:
    assert {
        *(("measure",), ("resume",)),
        *(("cluster", verb) for verb in ("up", "status", "ssh", "down", "destroy")),
        *(("profile", verb) for verb in ("list", "show", "apply", "verify", "clear")),
    } <= set(every_command())


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UserError("X", "must be y", seen="z", fix="Do w"), 2, "overlaylab: X: must be y (found: z). Do w\n"),
        (NodeError("node1: gone"), 1, "overlaylab: node1: gone. ./task lab:status shows the nodes\n"),
        (KeyboardInterrupt(), 130, "overlaylab: interrupted\n"),
        (click.Abort(), 130, "overlaylab: interrupted\n"),
        (click.exceptions.Exit(3), 3, ""),
    ],
)
def test_exit_codes_and_one_paragraph(monkeypatch, capsys, error, code, text) -> None:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(main, "cli", fail)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == code
    assert capsys.readouterr().err == text


@pytest.mark.parametrize("there", [True, False])
def test_the_last_words_are_kept_while_task_is_there_to_print_them(
    monkeypatch, capsys, tmp_path, there
) -> None:
    def fail(**_):
        assert "OVERLAYLAB_LAST_WORDS" not in os.environ  # what it starts has an end of its own
        raise UserError("X", "must be y", fix="Do w")

    kept = tmp_path / "kept" if there else tmp_path / "gone" / "kept"
    monkeypatch.setenv("OVERLAYLAB_LAST_WORDS", str(kept))
    monkeypatch.setattr(main, "cli", fail)
    with pytest.raises(SystemExit):
        main.main()
    said = "overlaylab: X: must be y. Do w\n"
    assert (kept.read_text() if there else "", capsys.readouterr().err) == (
        (said, "") if there else ("", said)
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["mesure"], "No such command 'mesure'"),
        (["measure", "weave", "--bloks", "2"], "No such option '--bloks'"),
        (["measure"], "overlaylab: OVERLAY: must be given. "),
        (["profile", "show"], "overlaylab: PROFILE: must be given. "),
        (
            ["measure", "weave", "--blocks", "many"],
            "overlaylab: BLOCKS: must be a whole number (found: many). ",
        ),
        (
            ["measure", "weave", "--scale", "it's"],
            "overlaylab: SCALE: must be a number (found: it's). Stretch ",
        ),
        (
            ["results", "prune", "--keep", "-1"],
            "overlaylab: KEEP: must be a whole number from 0 on (found: -1). ",
        ),
        (["policy", "weave", "--rules", "0"], "RULES: must be a whole number from 1 to 10000 (found: 0). "),
        (
            ["bench", "statistics", "--trials", "0"],
            "overlaylab: TRIALS: must be a whole number from 1 to 1000000 (found: 0). ",
        ),
        (
            ["bench", "statistics", "--intervals", "-1"],
            "INTERVALS: must be a whole number from 1 to 1000000 (found: -1). ",
        ),
        (["bench", "statistics", "--seed", "-1"], "SEED: must be a whole number from 0 on (found: -1). "),
        (["results", "export", "xml"], "overlaylab: FORMAT: must be one of csv, json (found: xml). "),
    ],
)
def test_what_click_refuses_is_wrong_input(monkeypatch, capsys, words, text) -> None:
    monkeypatch.setattr(sys, "argv", ["lab", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["BLOCKS", "SCALE", "SEED", "FRESH"])
def test_a_variable_that_is_no_number_is_named_as_it_was_typed(monkeypatch, capsys, variable) -> None:
    monkeypatch.setattr(sys, "argv", ["lab", "measure", "weave"])
    monkeypatch.setenv(variable, "abc")
    with pytest.raises(SystemExit) as ended:
        main.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert re.fullmatch(rf"overlaylab: {variable}: must be a (whole )?number \(found: abc\)\. .+\n", told)


# -- measure: the plan ------------------------------------------------------------------------------


def test_a_dry_run_prints_plan_order_and_cost_and_starts_nothing(golden, own_cache) -> None:
    result = lab("measure", "weave", SEED="7", BLOCKS="2", DRY_RUN="1")
    assert result.exit_code == 0
    golden(FIXTURES / "measure-weave-dry-run.txt", result.stdout)
    assert not own_cache.exists()
    assert not paths.database().exists()


def test_a_dry_run_on_ssh_hosts(golden, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hosts.yml"
    write_inventory(path, replace(inventory("a", "a"), name="hosts", provider="external"))
    result = lab("measure", "weave", SEED="7", BLOCKS="1", DRY_RUN="1", INVENTORY="hosts.yml", SCALE="2")
    golden(FIXTURES / "measure-weave-hosts-dry-run.txt", result.stdout.replace(str(tmp_path), "/checkout"))


def test_variables_that_are_empty_count_as_not_typed() -> None:
    """As the tasks hand them on."""
    empty = dict.fromkeys(("MODES", "ARGUMENTS", "PROFILE", "BLOCKS", "INVENTORY"), "")
    first = lab("measure", "weave", SEED="7", DRY_RUN="1").stdout
    assert lab("measure", "weave", SEED="7", DRY_RUN="1", **empty).stdout == first
    assert "42 trials in 7 blocks, seed 7, accelerator tcg" in first
    assert "seed" in lab("measure", "weave", SEED="", DRY_RUN="1").stdout


@pytest.mark.parametrize(
    ("words", "variables", "where"),
    [
        (["weve"], {}, "overlay"),
        (["weave"], {"PROFILE": "azure-a9"}, "PROFILE"),
        (["weave"], {"CLUSTER": "pear"}, "CLUSTER"),
        (["weave"], {"SUITE": "quik"}, "SUITE"),
        (["weave"], {"MODES": "fast"}, "MODES"),
        (["weave"], {"BLOCKS": "0"}, "BLOCKS"),
        (["weave"], {"SCALE": "0"}, "SCALE"),
        (["weave"], {"INVENTORY": "absent.yml"}, "INVENTORY"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_made(own_cache, words, variables, where) -> None:
    assert refused("measure", *words, **variables).where == where
    assert not own_cache.exists()
    assert not paths.database().exists()


# -- profile ----------------------------------------------------------------------------------------


def test_profiles_are_listed_with_what_they_cap() -> None:
    lines = lab("profile", "list").stdout.splitlines()
    (a1,) = (number for number, line in enumerate(lines) if line.split()[:1] == ["azure-a1"])
    assert lines[a1].split()[1:] == ["100", "0.966", "2", "1500", "1", "off", "4/9"]
    assert "Azure A1" in lines[a1 + 1]
    (none,) = (line.split() for line in lines if line.split()[:1] == ["none"])
    assert none[1] == "uncapped"


def test_a_profile_is_shown_with_the_source_of_each_number() -> None:
    text = lab("profile", "show", PROFILE="azure-a1").stdout
    assert "100 Mbit/s" in text and "documented" in text and "latency.within_zone" in text
    assert refused("profile", "show", PROFILE="azure-a9").where == "PROFILE"


# -- cluster ----------------------------------------------------------------------------------------


def test_unknown_clusters_are_refused_before_anything_is_installed(monkeypatch) -> None:
    monkeypatch.setattr(ready, "ensure", lambda: pytest.fail("nothing may be set up yet"))
    for verb in ("up", "status", "down"):
        assert refused("cluster", verb, CLUSTER="pear").where == "CLUSTER"


def test_variants_have_names_for_people() -> None:
    assert str(Variant("host")) == "host"
    assert str(Variant("weave", "fastdp", True)) == "weave fastdp-encrypted"


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ([], ()),
        (["--containers"], (packages.CONTAINERS, *packages.MAKING)),
        (["--tests"], (*packages.OPTIONAL, *packages.MAKING)),
    ],
)
def test_setting_up_takes_what_is_asked_for_in_one_installation(monkeypatch, options, groups) -> None:
    asked = []
    monkeypatch.setattr(ready, "ensure", lambda groups: asked.append(groups))
    monkeypatch.setattr(ssh_keys, "ensure", lambda: None)
    assert lab("setup", *options).exit_code == 0
    assert asked == [groups]


@pytest.fixture
def removed(monkeypatch, own_cache) -> list[str]:
    """What is removed, of a machine with nodes of `pair` (VMs and containers) and of a cluster without a file."""
    removed: list[str] = []

    class Fake:
        def __init__(self, spec, say) -> None:
            self.name = spec.name

        async def remove_nodes(self) -> None:
            removed.append(self.name)

        async def down(self) -> None:
            removed.append(f"{self.name} off")

    async def remove_pool(name: str) -> None:
        removed.append(f"pool {name}")

    monkeypatch.setattr(services, "is_installed", lambda: True)
    monkeypatch.setattr(services, "ensure_running", lambda: None)
    monkeypatch.setattr(services, "stop_services", lambda: [])

    async def remove_forgotten(name: str) -> None:
        removed.append(f"forgotten {name}")

    monkeypatch.setattr(
        libvirt, "PROVIDER", registry.Kind(libvirt.CAPABILITIES, Fake, remove_forgotten, libvirt.remove_pool)
    )
    monkeypatch.setattr(lxc, "PROVIDER", registry.Kind(lxc.CAPABILITIES, Fake))
    (own_cache / "clusters" / "pair" / "lxc").mkdir(parents=True)
    (own_cache / "clusters" / "pair" / "lxc" / "state.json").touch()
    monkeypatch.setattr(virsh, "remove_pool", remove_pool)
    for name in ("pair", "deleted"):  # the second has no file in vagrant/clusters any more
        (own_cache / "clusters" / name / "vagrant").mkdir(parents=True)
    return removed


def test_destroying_takes_all_clusters_and_passes_over_folders_that_hold_a_lock_only(
    removed, own_cache
) -> None:
    with cluster_lock("hosts", "measuring weave"):  # of an inventory: it has no file in vagrant/clusters
        pass
    result = lab("cluster", "destroy")
    assert result.exit_code == 0, result.exception
    # No pool was ever made in this cache folder.
    assert removed == ["forgotten deleted", "pair", "pair"]
    assert not own_cache.exists()


def test_a_cluster_is_destroyed_alone(removed, own_cache) -> None:
    result = lab("cluster", "destroy", "--cluster", "pair")
    assert (result.exit_code, removed) == (0, ["pair", "pair"])
    removed.clear()
    result = lab("cluster", "destroy", "--cluster", "three-zones")
    assert (result.exit_code, removed) == (0, [])
    assert "there are no nodes of cluster three-zones" in result.output
    assert own_cache.exists()


def test_nodes_of_a_system_that_is_gone_are_destroyed_by_what_was_noted(
    monkeypatch, removed, own_cache
) -> None:
    forgotten = libvirt.PROVIDER.remove_forgotten
    monkeypatch.setattr(libvirt, "PROVIDER", registry.Kind(libvirt.CAPABILITIES, libvirt.Libvirt, forgotten))
    (own_cache / "clusters" / "pair" / "state.json").write_text('{"system": "of-yesterday"}')
    monkeypatch.setattr(ready, "ensure", lambda needs, meanwhile: None)
    result = lab("cluster", "down", "--provider", "libvirt")
    assert "of-yesterday, which has none any more" in str(result.exception)
    assert "./task lab:destroy CLUSTER=pair" in str(result.exception)
    result = lab("cluster", "destroy", "--cluster", "pair")
    assert (result.exit_code, removed) == (0, ["forgotten pair", "pair"])


def test_nodes_of_every_provider_are_switched_off(monkeypatch, removed) -> None:
    monkeypatch.setattr(ready, "ensure", lambda needs, meanwhile: None)
    result = lab("cluster", "down")
    assert (result.exit_code, removed) == (0, ["pair off", "pair off"])
    assert "nodes are off (libvirt, lxc)" in result.output
    removed.clear()
    assert "nodes are off (lxc)" in lab("cluster", "down", PROVIDER="lxc").output
    assert removed == ["pair off"]
    assert "there are no nodes of cluster three-zones" in lab("cluster", "down", CLUSTER="three-zones").output
    assert "no nodes of cluster pair (virtualbox)" in lab("cluster", "down", PROVIDER="virtualbox").output
    assert refused("cluster", "down", PROVIDER="vmware").where == "PROVIDER"
    assert removed == ["pair off"]


def test_destroying_starts_libvirt_where_it_has_something_to_remove(monkeypatch, removed, own_cache) -> None:
    monkeypatch.setattr(services, "is_installed", lambda: True)
    monkeypatch.setattr(services, "ensure_running", lambda: removed.append("libvirt started"))
    (own_cache / "pool").mkdir()
    (own_cache / "clusters" / "deleted" / "vagrant").rmdir()
    assert lab("cluster", "destroy", KEEP_CACHE="1").exit_code == 0
    assert removed == ["libvirt started", "pair", "pair", "libvirt started", "pool overlaylab-test"]
    assert own_cache.exists() and not (own_cache / "pool").exists()


def test_destroying_again_does_what_is_left_to_do(monkeypatch, own_cache) -> None:
    monkeypatch.setattr(services, "is_installed", lambda: True)
    monkeypatch.setattr(services, "ensure_running", lambda: pytest.fail("nothing of libvirt's is left"))
    assert lab("cluster", "destroy", KEEP_CACHE="1").exit_code == 0
    assert lab("cluster", "destroy").exit_code == 0
    assert not own_cache.exists()


def test_destroying_without_libvirt_forgets_its_nodes_and_removes_the_others(
    monkeypatch, removed, own_cache
) -> None:
    monkeypatch.setattr(services, "is_installed", lambda: False)
    assert lab("cluster", "destroy").exit_code == 0
    assert removed == ["pair"]  # the containers
    assert not own_cache.exists()


def test_a_provider_that_fails_keeps_no_other_from_being_removed(monkeypatch, removed, own_cache) -> None:
    def silent() -> None:
        raise UserError("libvirt", "must answer", fix="Read its log")

    monkeypatch.setattr(services, "ensure_running", silent)
    wrong = refused("cluster", "destroy")
    assert (wrong.where, removed) == ("lab:destroy", ["pair"])
    assert (
        wrong.seen
        == "deleted (libvirt): libvirt: must answer. Read its log; pair (libvirt): libvirt: must answer. Read its log"
    )
    assert own_cache.exists()
