"""``./task version``, and what a checkout says of itself: in a repository, out of a bundle, and of neither."""

import hashlib
import subprocess

import pytest
from lab_bundle import manifest
from lab_commands import lab

from overlaylab.core import paths
from overlaylab.machine import bundle_manifest, checkout
from overlaylab.machine.checkout import Checkout
from overlaylab.store import database

COMMIT = "a9ab4705823100000000000000000000000000ff"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A checkout of version 1.2.3, without a repository."""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "overlaylab"\nversion = "1.2.3"\n')
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    return tmp_path


def git(root, *words: str) -> str:
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@example", "-C", str(root), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def test_a_repository_tells_commit_and_changes(root) -> None:
    git(root, "init", "--quiet")
    assert checkout.described() == Checkout("1.2.3", None, True)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message=x")
    head = git(root, "rev-parse", "HEAD")
    assert checkout.described() == Checkout("1.2.3", head, False)
    (root / "role.yml").touch()
    assert checkout.described() == Checkout("1.2.3", head, True)


def test_a_bundle_tells_its_commit_and_without_one_nothing_does(root) -> None:
    assert checkout.described() == Checkout("1.2.3", None, None)
    (root / bundle_manifest.NAME).parent.mkdir()
    (root / bundle_manifest.NAME).write_text(bundle_manifest.to_json(manifest([], commit=COMMIT)))
    assert checkout.described() == Checkout("1.2.3", COMMIT, None)


def test_a_damaged_bundle_tells_none(root) -> None:
    (root / bundle_manifest.NAME).parent.mkdir()
    (root / bundle_manifest.NAME).write_text("{}")
    assert checkout.described() == Checkout("1.2.3", None, None)


def test_without_git_the_commit_is_unknown(root, monkeypatch) -> None:
    git(root, "init", "--quiet")
    monkeypatch.setenv("PATH", str(root))
    assert checkout.described() == Checkout("1.2.3", None, None)


@pytest.mark.parametrize(
    ("commit", "changed", "text"),
    [
        (COMMIT, False, "1.2.3+a9ab47058231"),
        (COMMIT, True, "1.2.3+a9ab47058231.changed"),
        (COMMIT, None, "1.2.3+a9ab47058231"),
        (None, None, "1.2.3"),
        (None, True, "1.2.3+changed"),
    ],
)
def test_in_one_word(commit, changed, text) -> None:
    assert str(Checkout("1.2.3", commit, changed)) == text


@pytest.mark.parametrize(
    ("commit", "changed", "line"),
    [
        (COMMIT, False, f"commit     {COMMIT}"),
        (COMMIT, True, f"commit     {COMMIT}, changed since"),
        (None, None, "commit     unknown"),
    ],
)
def test_the_command_prints_four_lines(monkeypatch, commit, changed, line) -> None:
    monkeypatch.setattr(checkout, "described", lambda: Checkout("1.2.3", commit, changed))
    lock = (paths.PROVISION / "toolchain" / "requirements.txt").read_bytes()
    result = lab("version")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "overlaylab 1.2.3",
        line,
        f"schema     {database.migrations()[-1].version}",
        f"toolchain  {hashlib.sha256(lock).hexdigest()[:16]}",
    ]


def test_the_command_tells_of_this_checkout() -> None:
    first = lab("version").output.splitlines()[0]
    assert first == f"overlaylab {checkout.described().version}" == "overlaylab 0.1.0"
