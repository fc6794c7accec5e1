"""The kit's tree, out of this machine's own programs and libraries laid out as packages have them."""

import hashlib
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import kit_tree
from overlaylab.image.kit_tree import LOADER, Part, Tree

MACHINES_LOADER = Path("/lib64") / LOADER


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What a few packages unpack to: sleep(1), its libraries, a script, licences."""
    if not MACHINES_LOADER.exists():
        pytest.skip("the kit is for amd64 alone")
    made = tmp_path / "root"
    library = made / "lib/x86_64-linux-gnu"
    for folder in (
        library,
        made / "usr/bin",
        made / "usr/share/doc/coreutils",
        made / "usr/share/common-licenses",
    ):
        folder.mkdir(parents=True)
    shutil.copy(MACHINES_LOADER.resolve(), library / LOADER)
    for name in ("libc.so.6", "libgcc_s.so.1"):
        found = next(path for path in Path("/usr/lib/x86_64-linux-gnu").glob(name))
        shutil.copy(found.resolve(), library / name)
    shutil.copy(Path("/bin/sleep").resolve(), made / "usr/bin/sleep")
    (made / "usr/bin/script").write_text("#!/bin/sh\n")
    (made / "usr/share/doc/coreutils/copyright").write_text("GPL\n")
    (made / "usr/share/common-licenses/GPL-3").write_text("the text\n")
    return made


def part(**programs: str | None) -> Part:
    return Part("userland", "what scripts call", ("coreutils",), programs)


def filled(root: Path, home: Path, **programs: str | None) -> Tree:
    tree = Tree(root, home)
    (home / "libexec/launch").write_bytes(b"launcher")
    tree.add(part(**programs), "launch")
    tree.add_libraries()
    return tree


def test_a_program_brings_its_libraries_and_loader_and_leaves_this_machines_alone(
    root: Path, tmp_path: Path
) -> None:
    # The loader is named by a path that is this machine's own as well: it was written over once, by root.
    before = MACHINES_LOADER.stat()
    home = tmp_path / "home"
    filled(root, home, sleep=None, pause="usr/bin/sleep")
    after = MACHINES_LOADER.stat()
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    assert sorted(path.name for path in (home / "lib").iterdir()) == [LOADER, "libc.so.6", "libgcc_s.so.1"]
    assert (home / "bin/sleep").readlink() == Path("../libexec/launch")
    assert (home / "libexec/as/pause").readlink() == Path(f"../../lib/{LOADER}")
    assert (home / "libexec/pause").readlink() == Path("sleep")
    ran = subprocess.run(
        [
            home / "libexec/as/sleep",
            "--inhibit-cache",
            "--library-path",
            home / "lib",
            home / "libexec/sleep",
            "0",
        ],
        check=False,
    )
    assert ran.returncode == 0


def test_nothing_is_written_outside_the_kit(root: Path, tmp_path: Path) -> None:
    tree = Tree(root, tmp_path / "home")
    with pytest.raises(ValueError, match="is not in the kit"):
        tree._copy(root / "usr/bin/sleep", str(tmp_path / "elsewhere"))
    with pytest.raises(ValueError, match="is not in the kit"):
        tree._copy(root / "usr/bin/sleep", "../elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_sizes_are_told_by_part(root: Path, tmp_path: Path) -> None:
    tree = filled(root, tmp_path / "home", sleep=None)
    tree.add_licences(["coreutils"])
    libraries = sum(
        (root / "lib/x86_64-linux-gnu" / name).stat().st_size
        for name in (LOADER, "libc.so.6", "libgcc_s.so.1")
    )
    assert tree.sizes == {
        "userland": (root / "usr/bin/sleep").stat().st_size,
        "libraries": libraries,
        "licences": len("GPL\nthe text\n"),
    }


def test_what_the_packages_lack_is_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"program iperf3: must be in the packages.*usr/bin/iperf3, usr/sbin/iperf3"
    ):
        filled(root, tmp_path / "a", iperf3=None)
    with pytest.raises(UserError, match=r"program script: must be a program, not a script"):
        filled(root, tmp_path / "b", script=None)
    (root / "lib/x86_64-linux-gnu/libc.so.6").unlink()
    with pytest.raises(UserError, match=r"library libc.so.6: must be in the packages: sleep needs it"):
        filled(root, tmp_path / "c", sleep=None)


def test_a_package_without_a_licence_is_refused(root: Path, tmp_path: Path) -> None:
    tree = filled(root, tmp_path / "home", sleep=None)
    with pytest.raises(UserError, match=r"licence of iperf3: must be in the package"):
        tree.add_licences(["iperf3"])


def test_links_lead_within_the_root(root: Path, tmp_path: Path) -> None:
    (root / "etc/alternatives").mkdir(parents=True)
    (root / "etc/alternatives/nap").symlink_to("/usr/bin/sleep")
    (root / "usr/bin/nap").symlink_to("/etc/alternatives/nap")
    (root / "usr/bin/sleep").write_bytes((root / "usr/bin/sleep").read_bytes() + b"ours")
    filled(root, tmp_path / "home", nap=None)
    assert (tmp_path / "home/libexec/sleep").read_bytes().endswith(b"ours")


def test_the_same_tree_is_the_same_tar_whenever_and_whoever(root: Path, tmp_path: Path) -> None:
    digests = []
    for name, mode, moment in (("a", 0o700, 1), ("b", 0o755, 2_000_000_000)):
        home = tmp_path / name
        filled(root, home, sleep=None)
        for path in home.rglob("*"):
            os.utime(path, (moment, moment), follow_symlinks=False)
            if not path.is_symlink():
                path.chmod(mode)
        packed = io.BytesIO()
        digests.append(kit_tree.pack(home, packed))
        assert digests[-1] == hashlib.sha256(packed.getvalue()).hexdigest()
    assert digests[0] == digests[1]


def test_a_tool_that_prints_no_version_is_an_error(tmp_path: Path) -> None:
    for name, line in (("good", "echo tool; echo tool 1.2"), ("mute", ":"), ("absent", "exit 127")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    assert kit_tree.version(tmp_path, ["good"]) == "tool 1.2"
    for name in ("mute", "absent"):
        with pytest.raises(UserError, match="must run and print its version"):
            kit_tree.version(tmp_path, [name])
