"""The tasks: each overlay has one, each says what it does, and what is typed reaches the command."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from overlaylab.cli.task_help import definitions
from overlaylab.core.paths import ROOT
from overlaylab.live import overlay_tasks
from overlaylab.run.options import declared
from overlaylab.run.selection import ALL
from overlaylab.specs import overlays

pytestmark = pytest.mark.skipif(not shutil.which("task"), reason="takes go-task: run through ./task")

# Tasks without a namespace.
PLAIN = {"default", "setup", "doctor", "version", "dev", "test", "view"}
NAMESPACES = {
    *(
        "bundle",
        "image",
        "kit",
        "lab",
        "hosts",
        "profile",
        "results",
        "viewer",
        "test",
        "bench",
        "docs",
        "drill",
    )
}


HANDED_ON = sorted(
    {name for one in definitions().values() for name in one.get("env", ()) if "LAB" in str(one)}
)
# A `lab` that says what reached it.
SAY = f"""#!/bin/sh
printf '%s\\n' "$*"
for name in {" ".join(HANDED_ON)}; do
    eval "printf '%s=%s\\n' $name \\"\\$$name\\""
done
exit ${{FAIL:-0}}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The Taskfiles alone, with a `lab` that only talks: no task of a test may touch this machine."""
    folder = tmp_path_factory.mktemp("a checkout")
    for path in (*ROOT.glob("*/Taskfile*.y*ml"), ROOT / "Taskfile.yml"):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    lab = folder / "provision" / "bin" / "lab"
    lab.parent.mkdir()
    lab.write_text(SAY)
    lab.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def task(checkout: Path):
    """task(word, …, VARIABLE=…): go-task on that checkout, with these variables in the environment."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        argv = ["task", "--exit-code", "--dir", str(checkout), *words]
        clean = {k: os.environ[k] for k in ("PATH", "HOME") if k in os.environ}
        return subprocess.run(
            argv, env=clean | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )

    return run


@pytest.fixture(scope="module")
def tasks(task) -> dict[str, dict]:
    """Every task that is not internal, as go-task lists it."""
    listed = json.loads(task("--list-all", "--json").stdout)["tasks"]
    return {one["name"]: one for one in listed}


# -- names ------------------------------------------------------------------------------------------


def test_each_overlay_has_a_task_and_each_task_that_measures_an_overlay(tasks) -> None:
    measured = {
        name: call["vars"]["OVERLAY"]
        for name, one in definitions().items()
        for call in one.get("cmds", ())
        if isinstance(call, dict) and call.get("task") == "measure"
    }
    assert measured == {f"lab:{name}": name for name in (*overlays.names(), ALL)}
    assert set(measured) <= set(tasks)


def test_tasks_of_overlays_are_written_from_options(golden) -> None:
    golden(overlay_tasks.path(), overlay_tasks.text())


def test_every_public_task_says_what_it_does_in_one_line(tasks) -> None:
    for name, one in tasks.items():
        if name != "default":
            assert re.fullmatch(r"[A-Z][^\n]{10,190}[^.\s]", one["desc"]), f"{name}: {one['desc']!r}"


def test_tasks_are_namespaced_and_in_kebab_case(tasks) -> None:
    assert set(tasks) >= PLAIN
    for name in set(tasks) - PLAIN:
        namespace, _, rest = name.partition(":")
        assert namespace in NAMESPACES, name
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rest), name


def test_what_the_user_is_promised_is_there(tasks) -> None:
    assert {
        *("image:build", "lab:up", "lab:status", "lab:ssh", "lab:down", "lab:destroy", "lab:resume"),
        *("profile:list", "profile:show", "profile:apply", "profile:verify", "profile:clear"),
        *("results:show", "results:list", "results:export", "test:unit", "test:lint", "bench:harness"),
    } <= set(tasks)


def test_without_a_name_the_public_tasks_are_listed(task, tasks) -> None:
    listed = task("--list").stdout
    for name in set(tasks) - {"default"}:
        assert f"* {name}:" in listed
    assert "measure:" not in listed.replace("lab:", "")


# -- what is typed reaches the command --------------------------------------------------------------


@pytest.fixture
def lab(task):
    """lab(task, …): the words that reached `lab`, and the variables that were not empty."""

    def run(*words: str, **variables: str) -> tuple[str, dict[str, str]]:
        done = task(*words, **variables)
        assert done.returncode == 0, done.stderr
        first, *rest = done.stdout.splitlines()
        return first, {k: v for k, v in (line.split("=", 1) for line in rest) if v}

    return run


@pytest.mark.parametrize("overlay", overlays.names())
def test_measuring_passes_everything_on(lab, overlay) -> None:
    typed = {option.variable: f"my '{option.name}'" for option in declared().values()}
    assert lab(f"lab:{overlay}", *(f"{k}={v}" for k, v in typed.items())) == (f"measure {overlay}", typed)


def test_what_is_not_typed_is_empty(lab) -> None:
    assert lab("lab:weave") == ("measure weave", {})
    assert lab("lab:resume") == ("resume", {})


def test_variables_may_stand_in_the_environment_too(lab) -> None:
    assert lab("lab:weave", BLOCKS="2")[1]["BLOCKS"] == "2"


def test_values_are_no_shell_text(lab, tmp_path) -> None:
    mean = f"$(touch {tmp_path}/made); `touch {tmp_path}/made` 'x' \"y\""
    assert lab("lab:weave", f"MODES={mean}")[1]["MODES"] == mean
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("words", "command", "variables"),
    [
        (["lab:up"], "cluster up", {}),
        (["lab:up", "CLUSTER=trio"], "cluster up", {"CLUSTER": "trio"}),
        (["lab:status"], "cluster status", {}),
        (["lab:down"], "cluster down", {}),
        (["lab:resume", "RUN=7f3a"], "resume", {"RUN": "7f3a"}),
        (["lab:resume", "CLUSTER=trio"], "resume", {"CLUSTER": "trio"}),
        (["results:show", "RUN=7f3a"], "results show 7f3a", {}),
        (["results:show", "GROUP=newest"], "results show", {"GROUP": "newest"}),
        (["results:compare", "RUN_A=7f3a"], "results compare", {"RUN_A": "7f3a"}),
        (
            ["results:compare", "FAIL_OVER=5%", "MARGIN=1%", "--", "7f3a", "c0de"],
            "results compare 7f3a c0de",
            {"FAIL_OVER": "5%", "MARGIN": "1%"},
        ),
        (["profile:list"], "profile list", {}),
        (["profile:show", "PROFILE=azure-a1"], "profile show", {"PROFILE": "azure-a1"}),
        (
            ["profile:apply", "PROFILE=azure-a1", "INVENTORY=hosts.yml"],
            "profile apply",
            {"PROFILE": "azure-a1", "INVENTORY": "hosts.yml"},
        ),
        (
            ["profile:verify", "PROFILE=azure-a1"],
            "profile verify",
            {"PROFILE": "azure-a1"},
        ),
        (["profile:clear"], "profile clear", {}),
        (
            ["lab:mtu", "OVERLAY=weave", "MODES=fastdp", "ARGUMENTS=overlay_weave_mtu=1410", "PROFILE=none"],
            "mtu",
            {"OVERLAY": "weave", "MODES": "fastdp", "ARGUMENTS": "overlay_weave_mtu=1410", "PROFILE": "none"},
        ),
        (["lab:mtu", "INVENTORY=hosts.yml"], "mtu", {"INVENTORY": "hosts.yml"}),
        (["lab:explain"], "explain", {}),
        (
            ["lab:explain", "OVERLAY=weave", "CLUSTER=trio"],
            "explain",
            {"OVERLAY": "weave", "CLUSTER": "trio"},
        ),
        (["docs:overlays"], "docs overlays", {}),
        (["doctor"], "doctor", {}),
        (["setup"], "setup", {}),
        (["version"], "version", {}),
    ],
)
def test_each_task_calls_its_command(lab, words, command, variables) -> None:
    said, seen = lab(*words)
    assert (said.strip(), seen) == (command, variables)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("test", "setup --tests"),
        ("test:lab", "setup --tests"),
        ("test:overlays", "setup --containers"),
        ("test:faults", "setup --containers"),
        ("test:viewer", "viewer prepare --screen --browser"),
    ],
)
def test_a_test_begins_with_one_installation_for_all_of_it(task, name, first) -> None:
    done = task(name)  # ends where it first calls a tool, which that checkout lacks
    assert done.stdout.splitlines()[0].strip() == first


def test_words_after_the_dashes_reach_the_node(lab) -> None:
    assert lab("lab:ssh", "--", "node1", "ip", "-br", "address")[0] == "cluster ssh node1 ip -br address"


def test_exit_codes_are_passed_on(task) -> None:
    for code in (1, 2, 130):
        assert task("lab:weave", FAIL=str(code)).returncode == code


# -- refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["measure", "OVERLAY=weave"], "internal"),
        (["lab:weeve"], "lab:weave"),
    ],
)
def test_what_is_unknown_is_named_and_nothing_is_run(task, words, text) -> None:
    done = task(*words)
    assert done.returncode != 0
    assert "PROFILE=" not in done.stdout  # as `lab` would have said
    assert text in done.stderr


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["profile:show"], "profile show"),
        (["profile:apply"], "profile apply"),
        (["results:export"], "results export"),
        (["results:export", "FORMAT=xml"], "results export xml"),
        (["results:report"], "results report"),
        (["results:void", "WHY=x", "TRIALS=3 4"], "results void --why x --  3 4"),
        (["lab:ssh"], "cluster ssh"),
    ],
)
def test_what_is_missing_is_left_to_the_command(task, words, called) -> None:
    """go-task's own refusal says no more than that a variable is missing, and nothing stands after it."""
    done = task(*words)
    assert done.returncode == 0, done.stderr
    assert called in done.stdout.splitlines()
    assert "PROFILE=" in done.stdout.splitlines()


def test_removing_everything_asks_first(task) -> None:
    done = task("lab:destroy")  # nobody is there to answer
    assert done.returncode != 0
    assert "cluster destroy" not in done.stdout
    lines = task("--yes", "lab:destroy", "KEEP_CACHE=1").stdout.splitlines()
    assert "cluster destroy" in lines and "KEEP_CACHE=1" in lines and "CLUSTER=" in lines
    assert "CLUSTER=pair" in task("--yes", "lab:destroy", "CLUSTER=pair").stdout.splitlines()


@pytest.mark.parametrize(
    ("typed", "stays"), [("1", True), ("yes", True), ("0", False), ("No", False), ("", False)]
)
def test_the_question_says_what_the_command_will_do_to_the_cache_folder(task, typed, stays):
    done = task("--yes", "lab:destroy", f"KEEP_CACHE={typed}")
    assert ("the cache folder with images and tools stays" in done.stdout + done.stderr) is stays


def test_this_checkout_has_its_own_lab() -> None:
    assert (ROOT / "provision" / "bin" / "lab").stat().st_mode & 0o111


def test_a_quoted_command_reaches_a_node(task):
    done = task("lab:ssh", "--", "node1", "echo 'a  b'")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "cluster ssh node1 echo 'a  b'"
