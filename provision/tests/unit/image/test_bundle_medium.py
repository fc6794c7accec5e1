"""A bundle on a medium that nobody can write to: ./task works in a copy of the checkout, in the cache folder."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from lab_bundle import unpacked

from overlaylab.core.paths import ROOT

LOCK = "provision/toolchain/requirements.txt"
BIND = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@pytest.fixture
def medium(tmp_path) -> Path:
    """The top folder of an unpacked bundle, with this checkout's ./task."""
    top = unpacked(tmp_path)
    shutil.copy(ROOT / "task", top)
    shutil.copy(ROOT / LOCK, top / LOCK)
    return top


@pytest.fixture
def cache(tmp_path, medium) -> Path:
    """A cache folder whose toolchain is there."""
    folder = tmp_path / "cache"
    key = hashlib.sha256((medium / LOCK).read_bytes()).hexdigest()[:16]
    (folder / "toolchain" / key).mkdir(parents=True)
    (folder / "toolchain" / key / ".complete").touch()
    return folder


def door(top: Path, cache: Path, line: str, before: str = ":") -> subprocess.CompletedProcess[str]:
    """./task --with-tools sh -c LINE, with `top` read-only: for root, who may write anywhere, by a mount."""
    argv = ["sh", "-c", f'{before}; exec "$0/task" --with-tools sh -c "$1" word "2 3"', str(top), line]
    if os.geteuid() == 0:
        argv = ["unshare", "--mount", "sh", "-c", BIND, str(top), *argv]
    else:
        for path in [top, *top.rglob("*")]:
            path.chmod(path.stat().st_mode & ~0o222)
    environment = {"PATH": "/usr/bin:/bin", "OVERLAYLAB_CACHE": str(cache), "HOME": str(cache.parent)}
    return subprocess.run(argv, env=environment, capture_output=True, text=True)


def test_a_checkout_that_cannot_be_written_to_works_in_a_copy(medium, cache):
    line = (
        'cd "$OVERLAYLAB_ROOT" && pwd -P && echo "$LAB_DB" && echo "$1" && touch new && cat bundle/SHA256SUMS'
    )
    for said in (2, 0):
        done = door(medium, cache, line)
        assert done.returncode == 0, done.stderr
        copy, results, word, *sums = done.stdout.splitlines()
        assert Path(copy).parent == cache / "checkout"
        assert (results, word) == (f"{cache.parent}/.local/share/overlaylab/lab.sqlite", "2 3")
        assert sums == (medium / "bundle/SHA256SUMS").read_text().splitlines()
        assert (Path(copy) / "bundle").readlink() == medium / "bundle"
        assert (Path(copy) / "provision/a/b.txt").read_text() == "b"
        assert len(done.stderr.splitlines()) == said, done.stderr
    assert not (medium / "new").exists()


def test_a_copy_that_failed_half_way_is_not_used(medium, cache):
    (medium / "zz").write_bytes(bytes(1 << 20))
    done = door(medium, cache, "echo used", before="trap '' XFSZ; ulimit -f 200")
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be copied from" in done.stderr.splitlines()[-1]
    assert door(medium, cache, "echo used").stdout == "used\n"


def test_what_tar_unpacked_half_is_not_copied(medium, cache):
    key = medium / "bundle/packages/key.asc"
    (medium / "provision/a/b.txt").rename(medium / "away")
    key.rename(medium / "key")
    done = door(medium, cache, "echo used")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{medium}: must hold all files of the bundle (found: 2 are missing" in done.stderr
    for path in [medium, *medium.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    (medium / "away").rename(medium / "provision/a/b.txt")
    (medium / "key").rename(key)
    assert door(medium, cache, 'cat "$OVERLAYLAB_ROOT/provision/a/b.txt"').stdout == "b"
