"""What all overlays share: how one is converged and reset, in how many tasks, and that a new one needs none of its own."""

import hashlib
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from lab_roles import NODES, Play, Step, ansible, copy_provision, record

from overlaylab.core.model import Variant
from overlaylab.core.paths import PROVISION, ROLES
from overlaylab.image.daemons import load_recipe
from overlaylab.specs import overlays

SCRIPTS = "/opt/overlaylab/overlay"
STATE = "/run/overlaylab/overlay"
ALL = [Play(name, arguments=overlays.load(name).modes[overlays.load(name).default_modes[0]].arguments)
       for name in overlays.names()]  # fmt: skip
RESETS = [Play(name, "reset") for name in ("weave", "canal")]
LACKING = Play("weave", state="lacking")
OTHER = [Play(name, state="other") for name in ("weave", "wireguard", "docker-overlay")]
COMMON = [
    "Check the node",
    "Start the overlay",
    "Wait until the overlay is healthy",
    "Ping the peers' endpoints",
]
ONE = hashlib.sha256(b"1").hexdigest()
STOP = "Stop what runs with other settings"


def daemons(play: Play) -> dict[str, dict[str, str]]:
    """As image/daemons.py names them."""
    names = [name for recipe in overlays.recipes(play.overlay) for name in daemon_names(recipe)]
    return {name: {"archive": f"/cache/{name}.gz", "sha256": f"digest-of-{name}"} for name in names}


def daemon_names(recipe: str) -> list[str]:
    read = load_recipe(recipe)
    return [*read.binaries, *read.files]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Step]]:
    """All plays in one run of Ansible, whose start takes longest."""
    plays = [*ALL, *RESETS, LACKING, *OTHER]
    built = {play.name: daemons(play) for play in plays}
    return record(PROVISION, tmp_path_factory.mktemp("roles"), plays, built)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The filters that say what lies where on a node."""
    monkeypatch.syspath_prepend(str(ROLES / "overlay_common" / "filter_plugins"))
    return importlib.import_module("overlay_role")


def tasks(told: dict, play: Play, node: str = "node2") -> list[str]:
    return [step.task for step in told[play.name, node]]


@pytest.mark.parametrize("play", ALL, ids=lambda play: play.overlay)
def test_four_tasks_bring_an_overlay_to_fresh_nodes(told: dict, play: Play) -> None:
    """Each costs seconds on an emulated CPU. Two overlays tell their nodes of each other besides."""
    own = {"wireguard": "Make the node's key", "docker-overlay": "Join the swarm and attach the endpoint"}
    expected = list(COMMON)
    if play.overlay in own:
        expected.insert(1 if play.overlay == "wireguard" else 2, own[play.overlay])
    assert tasks(told, play) == expected


@pytest.mark.parametrize("play", OTHER, ids=lambda play: play.overlay)
def test_what_runs_in_another_mode_is_stopped_on_all_nodes_first(told: dict, play: Play) -> None:
    for node in NODES[:2]:
        names = tasks(told, play, node)
        assert names.index(STOP) == names.index("Start the overlay") - 1
    stop = next(step for step in told[play.name, "node2"] if step.task == STOP)
    assert stop.words == f"{SCRIPTS}/overlay-reset"


def test_daemons_that_a_node_lacks_are_copied_and_unpacked_as_the_overlay_starts(told: dict) -> None:
    steps = told[LACKING.name, "node1"]
    assert [step.arguments for step in steps if step.module == "copy"] == [
        {"src": f"/cache/{name}.gz", "dest": f"{SCRIPTS}/weave/", "mode": "0644"}
        for name in ("weaver", "weaveutil")
    ]
    start = next(step for step in steps if step.task == "Start the overlay")
    assert start.arguments["archives"] == {
        f"{SCRIPTS}/weave/{name}": f"digest-of-{name}" for name in ("weaver", "weaveutil")
    }


@pytest.mark.parametrize("play", ALL, ids=lambda play: play.overlay)
def test_the_reset_removes_all_that_was_written(told: dict, parts: ModuleType, play: Play) -> None:
    removed = set(parts.overlay_paths(overlays.load(play.overlay).source.data, str(ROLES)))
    written = {path for step in told[play.name, "node1"] for path in step.files}
    assert all({path, *map(str, Path(path).parents)} & removed for path in written)
    assert {f"{SCRIPTS}/overlay-{name}" for name in ("start", "status", "path", "reset")} <= written
    shared = {"/", "/run", "/run/overlaylab", "/run/systemd/system", SCRIPTS}
    assert not removed & shared


@pytest.mark.parametrize("play", RESETS, ids=lambda play: play.overlay)
def test_the_reset_is_the_nodes_own_script_and_leaves_no_file(
    told: dict, parts: ModuleType, play: Play
) -> None:
    (step,) = told[play.name, "node1"]
    paths = " ".join(parts.overlay_paths(overlays.load(play.overlay).source.data, str(ROLES)))
    assert step.words == (
        f'set -eu reset={SCRIPTS}/overlay-reset [ -x "$reset" ] || exit 0 "$reset" '
        f"rm -rf {paths} {SCRIPTS}/__pycache__ echo reset"
    )


def test_a_role_brings_what_it_takes_of_those_that_it_builds_on(told: dict) -> None:
    play = next(play for play in ALL if play.overlay == "canal")
    start = next(step for step in told[play.name, "node1"] if step.task == "Start the overlay")
    assert {
        path: mode for path, (_, mode) in start.files.items() if "calico" in path or "flannel" in path
    } == {
        "/run/systemd/system/overlaylab-calico-felix.service": "0644",
        "/run/systemd/system/overlaylab-flannel.service": "0644",
        f"{SCRIPTS}/calico.sh": "0644",
        f"{SCRIPTS}/calico_traces.py": "0644",
        f"{SCRIPTS}/calico/bin/arp": "0755",
        f"{SCRIPTS}/flannel.sh": "0644",
        f"{SCRIPTS}/flannel_traces.py": "0644",
        f"{STATE}/calico.env": "0644",
    }
    assert "CALICO_NETWORKING_BACKEND=vxlan\nNO_DEFAULT_POOLS=true\n" in start.files[f"{STATE}/calico.env"][0]


def test_what_only_the_first_node_has_is_on_no_other(told: dict) -> None:
    play = next(play for play in ALL if play.overlay == "romana")
    unit = "/run/systemd/system/overlaylab-romanad.service"
    has = [any(unit in step.files for step in told[play.name, node]) for node in NODES[:2]]
    assert has == [True, False]


def test_the_hosts_container_brings_docker_and_peers_keep_their_order(tmp_path: Path) -> None:
    plays = [Play("host"), Play("host", arguments={"overlay_host_container": True})]
    steps = record(PROVISION, tmp_path, plays, {}, NODES)
    brings = [
        {Path(path).name for step in steps[play.name, "node1"] for path in step.files if "docker" in path}
        for play in plays
    ]
    assert brings == [set(), {"docker_engine.py", "docker_traces.py", "overlaylab-docker.service"}]
    asked = [steps[play.name, "node1"][0].arguments["commands"] for play in plays]
    assert asked[0] == ["ip", "ping"] and set(asked[1]) > {"ip", "ping", "dockerd"}
    # Ansible's `difference` is a set: settings whose peers change places would restart an overlay.
    waits = [step.words.split() for step in steps[plays[0].name, "node2"] if step.task.startswith("Wait")]
    assert [words[-2:] for words in waits] == [["192.168.77.11", "192.168.77.13"]]


# -- a new overlay ------------------------------------------------------------------------------------

META = """name: trial-link
title: Trial
version: "1"
default_modes: [plain]
needs: {features: [link:vxlan], modules: [vxlan], commands: [ip]}
range: null
range_argument: null
ports: [4789/udp]
modes:
  plain:
    mode: plain
    encrypted: false
    arguments: {}
    family: null
    header_bytes: 50
    wire: {filter: udp port 4789, marker: visible}
"""


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the roles with one more: meta/overlay.yml and the four scripts."""
    provision = copy_provision(tmp_path / "provision")
    role = provision / "roles" / "overlay_trial_link"
    (role / "meta").mkdir(parents=True)
    (role / "files").mkdir()
    (role / "meta" / "overlay.yml").write_text(META)
    for name in ("start", "status", "path", "reset"):
        (role / "files" / f"overlay-{name}").write_text(f"#!/bin/sh\necho {name}\n")
    monkeypatch.setattr(overlays, "PROVISION", provision)
    monkeypatch.setattr(overlays, "ROLES", provision / "roles")
    monkeypatch.setattr(overlays, "FOLDERS", [provision / "roles"])
    return provision


def test_a_new_overlay_is_its_page_of_facts_and_its_scripts(trial: Path, tmp_path: Path) -> None:
    assert overlays.select("trial-link") == [Variant("trial-link", "plain")]
    assert overlays.options("trial-link") == {}
    playbook = str(trial / "playbooks" / "overlay.yml")
    for look, words in (("--syntax-check", "playbook: "), ("--list-tasks", "Run the verb")):
        done = ansible(trial, tmp_path, playbook, look, "-e", "overlay=trial-link", "-e", "verb=converge")
        assert (done.returncode, words in done.stdout) == (0, True), done.stderr

    play, reset = Play("trial-link"), Play("trial-link", "reset")
    steps = record(trial, tmp_path, [play, reset], {})
    assert tasks(steps, play) == COMMON
    check, start, *_ = steps[play.name, "node1"]
    asked = {name: check.arguments[name] for name in ("modules", "commands", "ports", "interface")}
    assert asked == {"modules": ["vxlan"], "commands": ["ip"], "ports": ["4789/udp"], "interface": "eth1"}
    assert start.files[f"{SCRIPTS}/overlay-start"] == ("#!/bin/sh\necho start\n", "0755")
    assert start.words == f"{SCRIPTS}/overlay-start"
    (only,) = steps[reset.name, "node1"]
    assert f"{SCRIPTS}/overlay-start" in only.words.split()


def test_its_digest_follows_what_all_overlays_share(trial: Path) -> None:
    before = overlays.role_digest("trial-link")
    verify = trial / "roles" / "overlay_common" / "tasks" / "verify.yml"
    verify.write_text(verify.read_text() + "# changed\n")
    assert overlays.role_digest("trial-link") != before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "takes: {bridge: {files: [docker_engine.py]}}\n",
            r'takes.bridge: must be an overlay of builds_on \(found: "bridge"\)',
        ),
        (
            "builds_on: [bridge]\ntakes: {bridge: {files: [docker_engin.py]}}\n",
            r'takes.bridge.files\[0\]: must be one of bridge\'s files \(found: "docker_engin.py"\).*"docker_engine.py"\?',
        ),
        ("converge: {etcd: v4}\n", r"converge.etcd: must be .*v2.*v3"),
    ],
)
def test_what_it_takes_of_others_must_be_there(trial: Path, line: str, message: str) -> None:
    (trial / "roles" / "overlay_trial_link" / "meta" / "overlay.yml").write_text(META + line)
    with pytest.raises(overlays.UserError, match=message):
        overlays.load("trial-link")


# -- the filters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "wanted", "stale"),
    [
        ({"a": None, "b": None}, {"a": "1", "b": None}, False),
        ({"a": ONE, "b": None}, {"a": "1", "b": None}, False),
        ({"a": ONE, "b": None}, {"a": "2", "b": None}, True),
        ({"a": ONE, "b": ONE}, {"a": "1", "b": None}, True),
        ({"a": ONE, "b": None}, {"a": "1", "b": "1"}, True),
    ],
    ids=["nothing there", "the same", "another", "one too many", "one more"],
)
def test_settings_are_stale_where_any_are_there_and_differ(
    parts: ModuleType, found: dict, wanted: dict, stale: bool
) -> None:
    assert parts.overlay_stale(found, wanted) is stale


def test_of_modes_that_fit_the_one_with_most_arguments_is_meant(parts: ModuleType) -> None:
    meta = overlays.load("host").source.data
    given = {"overlay_host_again": False, "overlay_host_container": True}
    assert parts.overlay_mode(meta, given) is meta["modes"]["container"]
    assert parts.overlay_mode(meta, dict.fromkeys(given, False)) is meta["modes"]["host"]


def test_arguments_that_select_no_mode_are_refused_by_name(parts: ModuleType) -> None:
    meta = overlays.load("weave").source.data
    given = {"overlay_weave_mode": "fastdp", "overlay_weave_encrypted": "true"}
    with pytest.raises(parts.AnsibleFilterError, match=r"no mode of weave has these arguments: .*'true'"):
        parts.overlay_mode(meta, given)


def test_a_role_is_sought_in_every_folder_of_roles(parts: ModuleType, tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for role in (own / "overlay_common", other / "overlay_common", other / "overlay_trial_link"):
        role.mkdir(parents=True)
    roles = f"{own}:{other}"
    assert parts.overlay_role("trial-link", roles) == str(other / "overlay_trial_link")
    assert parts.overlay_role("common", roles) == str(own / "overlay_common")


def test_what_an_editor_or_an_interpreter_left_is_no_file_of_the_role(
    parts: ModuleType, tmp_path: Path
) -> None:
    for name in (
        "overlay_x/files/__pycache__/a.pyc",
        "overlay_x/files/a~",
        "overlay_x/files/bin/b",
        "overlay_common/files/c.sh",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert parts.overlay_scripts({"name": "x"}, str(tmp_path), {}, first=True) == [
        {"path": f"{SCRIPTS}/c.sh", "content": "x", "mode": "0644"},
        {"path": f"{SCRIPTS}/x/bin/b", "content": "x", "mode": "0755"},
    ]
