"""A disk that fills in the middle is told as that, whoever meets it, and nothing half made is taken for whole."""

import errno
import shutil
import sys
from types import SimpleNamespace

import pytest
from test_daemons import recipes  # noqa: F401
from test_viewer_modules import checkout, ran  # noqa: F401

from overlaylab.cli import main
from overlaylab.core import disk_full
from overlaylab.core.errors import UserError
from overlaylab.desktop import modules
from overlaylab.image import daemons, process
from overlaylab.machine import ssh_keys

FIX = (
    "Free some disk, or set OVERLAYLAB_CACHE to a folder on another disk (outside your home), then type the command "
    "again; nothing half made is used"
)


@pytest.fixture
def full(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=4096))


def test_an_error_of_our_own_is_a_paragraph(own_cache, monkeypatch, capsys):
    def fail(**options):
        raise OSError(errno.ENOSPC, "No space left on device", "/cache/images/x")

    monkeypatch.setattr(main, "cli", fail)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"overlaylab: /cache/images/x: must find room on the disk, with its cache folder {own_cache} (found: No space "
        f"left on device). {FIX}\n"
    )


def test_another_error_is_not_hidden(monkeypatch):
    def fail(**options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(main, "cli", fail)
    with pytest.raises(OSError, match="Input/output"):
        main.main()


def test_a_compiler_that_finds_no_room_leaves_nothing(recipes, own_cache, tmp_path):  # noqa: F811
    (tmp_path / "calls.fails").write_text("compile: writing output: write /x: no space left on device\n")
    with pytest.raises(UserError) as error:
        daemons.ensure("net")
    assert (error.value.where, error.value.fix) == ("daemons of net", FIX)
    assert [path.name for path in (own_cache / "daemons").iterdir()] == [".net.lock"]
    (tmp_path / "calls.fails").unlink()
    assert sorted(daemons.ensure("net")["binaries"]) == ["net-cni", "netd"]


def test_a_build_that_finds_no_room_for_its_result_is_not_taken_for_one(recipes, monkeypatch):  # noqa: F811
    def fail(*given, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(daemons.gzip, "GzipFile", fail)
        with pytest.raises(UserError) as error:
            daemons.ensure("net")
        assert (error.value.where, error.value.seen) == ("daemons of net", "No space left on device")
    assert not daemons.cached("net")
    daemons.ensure("net")
    assert daemons.cached("net")


def test_a_key_without_room_is_not_taken_for_one(own_cache, monkeypatch, tmp_path):
    (tmp_path / "ssh-keygen").write_text(
        '#!/bin/sh\nfor key; do :; done\n: >"$key"; echo "Saving key failed: No space left on device" >&2; exit 1\n'
    )
    (tmp_path / "ssh-keygen").chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path), prepend=":")
        with pytest.raises(UserError) as error:
            ssh_keys.ensure()
    assert (error.value.seen, error.value.fix) == ("Saving key failed: No space left on device", FIX)
    assert ssh_keys.public(ssh_keys.ensure()).startswith("ssh-ed25519 ")


def test_npm_without_room_is_tried_again(checkout, ran, full):  # noqa: F811
    ran.append("broken")
    with pytest.raises(UserError) as error:
        modules.ensure_modules()
    assert (error.value.where, error.value.seen, error.value.fix) == (
        "npm ci in viewer/",
        "exit code 7, disk full",
        FIX,
    )
    ran.remove("broken")
    modules.ensure_modules()
    assert ran == ["npm-cli.js", "npm-cli.js"]


def test_a_log_that_had_no_room_either_does_not_mislead(tmp_path, full):
    with pytest.raises(UserError) as error:
        process.run([sys.executable, "-c", "raise SystemExit(1)"], tmp_path / "log", {}, what="base disk")
    assert error.value.fix.startswith("Free some disk, or set OVERLAYLAB_CACHE")


@pytest.mark.parametrize(
    ("text", "told"), [("npm error ENOSPC", True), ("write x: disk quota exceeded", True), ("", False)]
)
def test_words(text, told):
    assert disk_full.is_reported(text) is told
