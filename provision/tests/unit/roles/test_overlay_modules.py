"""The modules that overlay_common brings to the nodes."""

import gzip
import hashlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from lab_scripts import script

from overlaylab.core.paths import ROLES

LIBRARY = ROLES / "overlay_common" / "library"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Calls a module as Ansible does; what it answers, and the whole of what it printed."""

    def call(module: ModuleType, **arguments: Any) -> tuple[dict, str]:
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        printed = capsys.readouterr().out
        return json.loads(printed), printed

    return call


@pytest.fixture(scope="module")
def files() -> ModuleType:
    return script(LIBRARY / "overlay_files.py")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_files_are_written_once(run, files, tmp_path: Path) -> None:
    wanted = [{"path": str(tmp_path / "new" / "script"), "content": "one\n", "mode": "0755"}]
    answers = [run(files, files=wanted)[0] for _ in range(2)]
    assert [(answer["changed"], answer["written"]) for answer in answers] == [
        (True, [wanted[0]["path"]]),
        (False, []),
    ]
    assert (tmp_path / "new" / "script").read_text() == "one\n"
    assert (tmp_path / "new" / "script").stat().st_mode & 0o777 == 0o755


def test_a_secret_is_roots_alone_and_in_no_answer(run, files, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    command = ["sh", "-c", f"cat {path}; exit 3"]
    answer, printed = run(files, secrets={str(path): "the words\n"}, command=command)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("the words\n", 0o600)
    assert (answer["rc"], answer["failed"]) == (3, True)
    assert "the words" not in printed
    assert run(files, secrets={str(path): None})[0]["written"] == [str(path)]
    assert not path.exists()


@pytest.mark.parametrize(("says", "changed"), [("changed", True), ("unchanged", False)])
def test_what_the_command_says_is_whether_anything_changed(run, files, says: str, changed: bool) -> None:
    answer, _ = run(files, command=["sh", "-c", f"echo looking; echo {says}"])
    assert (answer["changed"], answer["stdout"]) == (changed, f"looking\n{says}\n")


def test_the_command_finds_the_files(run, files, tmp_path: Path) -> None:
    path = tmp_path / "start"
    wanted = [{"path": str(path), "content": "#!/bin/sh\necho why >&2\nexit 1\n", "mode": "0755"}]
    answer, _ = run(files, files=wanted, command=[str(path)])
    assert (answer["rc"], answer["stderr"]) == (1, "why\n")


def test_a_daemon_is_unpacked_where_it_arrived_whole(run, files, tmp_path: Path) -> None:
    path = tmp_path / "daemon"
    packed = tmp_path / "daemon.gz"
    packed.write_bytes(gzip.compress(b"program"))
    answer, _ = run(
        files, archives={str(path): sha256("another")}, command=["touch", str(tmp_path / "started")]
    )
    assert (
        answer["msg"]
        == f"{packed} did not arrive whole: its content has another SHA-256 than {sha256('another')}"
    )
    assert [file.name for file in tmp_path.iterdir()] == ["daemon.gz"]
    assert run(files, archives={str(path): sha256("program")})[0]["written"] == [str(path)]
    assert (path.read_text(), path.stat().st_mode & 0o777, packed.exists()) == ("program", 0o755, False)


def test_the_check_says_what_of_the_overlay_is_there(run, monkeypatch, tmp_path: Path) -> None:
    check = script(LIBRARY / "overlay_check.py")
    monkeypatch.setattr(check, "underlay", lambda *_: [])
    for name in ("whole", "broken", "settings"):
        (tmp_path / name).write_text(name)
    there, absent = str(tmp_path / "settings"), str(tmp_path / "absent")
    digests = {str(tmp_path / name): sha256("whole") for name in ("whole", "broken", "absent")}
    answer, _ = run(check, address="192.0.2.1", interface="eth1", digests=digests, settings=[there, absent])
    assert answer["missing"] == [str(tmp_path / "broken"), absent]
    assert answer["settings"] == {there: sha256("settings"), absent: None}
    assert answer["changed"] is False
