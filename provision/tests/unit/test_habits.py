"""What a forge, an editor and pre-commit are told: it is what the lab's own tasks do, and nothing is fetched for it."""

import re
import shlex

import pytest
from ruamel.yaml import YAML

from overlaylab.cli.task_help import definitions
from overlaylab.core.paths import ROOT

CHECKOUT = "actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8"


def document(name: str):
    return YAML(typ="safe", pure=True).load((ROOT / name).read_text(encoding="utf-8"))


# -- the workflow -----------------------------------------------------------------------------------

WORKFLOW = ".github/workflows/ci.yml"


def test_the_workflow_runs_on_pushes_and_requests_and_may_read_alone() -> None:
    ci = document(WORKFLOW)
    assert ci["on"] == {"push": {"branches": ["main"]}, "pull_request": None}
    assert ci["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in ci["jobs"].values())


@pytest.mark.parametrize(
    ("job", "image", "steps"),
    [
        ("ubuntu", None, [CHECKOUT, "sudo .ci/run"]),
        (
            "debian",
            {"image": "debian:12", "options": "--privileged"},
            [
                "apt-get update && apt-get install --yes --no-install-recommends ca-certificates git python3",
                CHECKOUT,
                ".ci/run",
            ],
        ),
    ],
)
def test_each_job_types_what_ci_is(job, image, steps) -> None:
    told = document(WORKFLOW)["jobs"][job]
    assert (told["runs-on"], told.get("container")) == ("ubuntu-24.04", image)
    assert [step.get("uses") or step["run"] for step in told["steps"]] == steps
    (checkout,) = (step for step in told["steps"] if "uses" in step)
    # The number of commits says which slow tests have their turn.
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}


def test_what_the_workflow_calls_can_be_called() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert set(document(WORKFLOW)["jobs"]) == {"ubuntu", "debian"}


def test_page_and_workflow_say_that_it_has_never_run() -> None:
    page = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert "has never run" in (ROOT / WORKFLOW).read_text(encoding="utf-8").partition("name:")[0]
    assert "has never run" in page.partition("### On a forge")[2].partition("###")[0]


# -- pre-commit -------------------------------------------------------------------------------------


def hooks() -> dict[str, dict]:
    repositories = document(".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    return {hook["id"]: hook for one in repositories for hook in one["hooks"]}


def test_no_hook_installs_anything() -> None:
    assert {hook["language"] for hook in hooks().values()} == {"system"}
    assert not any("additional_dependencies" in hook for hook in hooks().values())


def test_each_hook_asks_what_lint_asks() -> None:
    lint = [cmd for cmd in definitions()["test:lint"]["cmds"] if isinstance(cmd, str)]
    asked = {hook["entry"] for hook in hooks().values()}
    assert asked - {"./task test:lint"} == {
        "./task --with-tools ruff check --force-exclude",
        "./task --with-tools ruff format --check --force-exclude",
        "./task --with-tools lint-imports --no-cache",
        "./task --with-tools mypy --cache-dir=/dev/null",
        "./task --with-tools yamllint --strict",
        "./task --with-tools shellcheck",
    }
    for entry in asked - {"./task test:lint"}:
        words = set(shlex.split(entry)) - {"./task", "--with-tools", "--force-exclude"}
        assert any(words <= set(cmd.split()) for cmd in lint), entry


def test_all_of_lint_stands_before_a_push() -> None:
    whole = hooks()["test-lint"]
    assert (whole["entry"], whole["stages"], whole["always_run"]) == ("./task test:lint", ["pre-push"], True)
    told = document(".pre-commit-config.yaml")
    assert told["default_install_hook_types"] == ["pre-commit", "pre-push"]


# -- editors ----------------------------------------------------------------------------------------


def test_editors_are_told_what_the_linters_hold() -> None:
    text = (ROOT / ".editorconfig").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^\[(.+)\]\n((?:(?!\[).*\n)*)", text, flags=re.MULTILINE))
    assert text.partition("[")[0].endswith("root = true\n\n")
    assert "indent_size = 4" in sections["*"] and "end_of_line = lf" in sections["*"]
    ruff = re.search(r"^line-length = (\d+)", (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert ruff and f"max_line_length = {ruff[1]}" in sections["*.{py,sh}"]
