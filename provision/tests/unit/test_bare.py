"""The bare machine that CI walks: what counts as left behind, which walk it is, what runs share."""

from __future__ import annotations

from pathlib import Path

import bare_caches
import bare_first
import bare_settings
import bare_walk
import pytest
import remains

NOTHING: dict[str, list[str]] = {
    kind: [] for kind in ("files", "named", "links", "rules", "groups", "members", "processes")
}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OVERLAYLAB_BARE", str(tmp_path / "bare"))
    return tmp_path / "bare"


# -- what is left behind ----------------------------------------------------------------------------


def test_what_the_readme_lists_may_stay_and_nothing_else() -> None:
    after = {
        **NOTHING,
        "named": [
            "/etc/libvirt/storage/overlaylab-newcomer.xml",
            "/var/log/libvirt/qemu/overlaylab-pair-node1.log",
        ],
        "groups": ["/sys/fs/cgroup/cpu/lxc.payload.overlaylab-pair-node1", "/sys/fs/cgroup/cpu/machine"],
        "files": ["/etc/ld.so.cache", "/srv/forgotten"],
        "links": ["ovlab-mgmt"],
        "members": ["docker: newcomer", "libvirt: newcomer"],
    }
    assert bare_walk.left(NOTHING, after) == {
        "named": ["/etc/libvirt/storage/overlaylab-newcomer.xml"],
        "groups": ["/sys/fs/cgroup/cpu/lxc.payload.overlaylab-pair-node1"],
        "files": ["/srv/forgotten"],
        "links": ["ovlab-mgmt"],
        "members": ["docker: newcomer"],
    }


def test_what_was_there_before_is_not_left_behind() -> None:
    before = {**NOTHING, "links": ["lo", "tap0"]}
    assert bare_walk.left(before, {**NOTHING, "links": ["lo"]}) == {}


def test_the_look_names_what_there_is_on_this_machine() -> None:
    assert "lo" in remains.links()
    assert "/proc" in remains.mounts()


def test_what_a_program_keeps_in_a_home_or_below_tmp_and_run_is_named_and_the_checkout_is_one_path(
    tmp_path: Path,
) -> None:
    listing = tmp_path / "var/lib/dpkg/info/base-files.list"
    for file in (
        listing,
        tmp_path / "etc/forgotten/settings",
        tmp_path / "home/newcomer/.config/go/env",
        tmp_path / "home/newcomer/.cache/biome/log",
        tmp_path / "home/newcomer/.local/share/overlaylab/lab.sqlite",
        tmp_path / "home/newcomer/.npm/_logs/today",
        tmp_path / "home/newcomer/overlaylab/results/lab.sqlite",
        tmp_path / "root/.ansible/tmp/one",
        tmp_path / "run/libvirt/network/pair.pid",
        tmp_path / "tmp/node-compile-cache/one",
        tmp_path / "proc/1/status",
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    listing.write_text("/.\n/etc\n/home\n/root\n/run\n/tmp\n/var\n/var/lib\n/var/lib/dpkg\n")
    assert remains.files(str(tmp_path)) == [
        "/etc/forgotten",
        "/home/newcomer/.cache/biome",
        "/home/newcomer/.config/go",
        "/home/newcomer/.local/share/overlaylab",
        "/home/newcomer/.npm",
        "/home/newcomer/overlaylab",
        "/root/.ansible",
        "/run/libvirt",
        "/tmp/node-compile-cache",
        "/var/lib/dpkg/info",
    ]


def test_of_a_home_and_of_tmp_and_run_only_what_is_listed_may_stay() -> None:
    rest = ["/home/newcomer/.npm", "/home/newcomer/.vagrant.d", "/run/libvirtd.pid", "/tmp/go-build1"]
    may = ["/home/newcomer/.ansible", "/root/.ssh", "/run/dbus", "/tmp/pytest-of-newcomer"]
    assert bare_walk.left(NOTHING, {**NOTHING, "files": rest + may}) == {"files": rest}
    pid, test = "/run/overlaylab-pair.pid", "/tmp/pytest-of-newcomer/pytest-0/overlaylab"
    assert bare_walk.left(NOTHING, {**NOTHING, "named": [pid, test]}) == {"named": [pid]}


# -- which walk -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "walks"),
    [
        (None, [("cold",), ("warm",), ("systemd", "warm"), ("warm",), ("offline", "warm")]),
        ("cold", [("cold",)] * 5),
        ("warm", [("warm",)] * 5),
        ("systemd", [("systemd",)] * 5),
        ("offline", [("offline",)] * 5),
    ],
)
def test_what_is_asked_for_is_walked_alone_and_else_commits_take_turns(
    asked: str | None, walks: list[tuple[str, ...]]
) -> None:
    assert [bare_walk.chosen(asked, turn) for turn in range(bare_walk.TURNS)] == walks


# -- commands typed first ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "code", "told", "came", "sudo", "wrong"),
    [
        (("./task setup", 0), 0, "done", 300, True, []),
        (("./task", 0, bare_first.FREE), 0, "tasks", 0, False, []),
        (("./task", 0, bare_first.FREE), 0, "tasks", 1, False, ["no package may come"]),
        (("./task", 0, bare_first.FREE), 0, "tasks", 0, True, ["sudo may not be used"]),
        (("./task lab:mtu", 2), 2, "overlaylab: cluster pair: has no nodes yet\n\n", 0, False, []),
        (("./task lab:mtu", 2), 2, "task: failed", 0, False, ["its last line is no message of ours"]),
        (("./task lab:mtu", 2), 0, "overlaylab: so", 0, False, ["expected 2"]),
        (("./task doctor", 1), 1, "Traceback (most recent call last):", 0, False, ["a traceback"]),
    ],
)
def test_a_first_command_is_judged_by_its_end_its_words_and_what_it_took(
    first: tuple, code: int, told: str, came: int, sudo: bool, wrong: list[str]
) -> None:
    assert bare_first.faults(bare_first.First(*first), code, told, came, sudo) == wrong


def test_a_line_that_is_typed_is_judged_as_the_one_of_the_list() -> None:
    free, own = bare_first.rows(["./task lab:mtu", "./task own"])
    assert (free.code, free.free, own.code, own.free) == (2, True, 0, False)
    assert len(bare_first.rows([])) == len(bare_first.COMMANDS)


# -- what runs share --------------------------------------------------------------------------------


def test_only_finished_builds_are_kept_and_lent(state: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    daemons = root / bare_caches.OWN / "daemons"
    for name, finished in (("weave-0123", True), ("flannel-4567", False), (".weave-89.building", True)):
        (daemons / name).mkdir(parents=True)
        if finished:
            (daemons / name / "manifest.json").write_text("{}")
    bare_caches.collect(root)
    again = tmp_path / "again"
    bare_caches.lend(again)
    assert [path.name for path in (again / bare_caches.OWN / "daemons").iterdir()] == ["weave-0123"]


def test_an_image_is_copied_as_the_box_for_containers_is_added_to_it_later(
    state: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    image = root / bare_caches.OWN / "images" / "debian-0123"
    image.mkdir(parents=True)
    (image / "manifest.json").write_text("{}")
    bare_caches.collect(root)
    (image / "manifest.json").write_text("written again")
    assert (bare_caches.folder() / "images" / "debian-0123" / "manifest.json").read_text() == "{}"


def test_the_newest_runs_wheels_take_the_place_of_the_earlier_ones(state: Path, tmp_path: Path) -> None:
    for run, names in (("cold", ("x1", "y1")), ("colder", ("x2",)), ("without", ())):
        for name in names:
            (tmp_path / run / bare_caches.OWN / "uv/archive-v0" / name).mkdir(parents=True)
        bare_caches.collect(tmp_path / run)
    assert [path.name for path in (bare_caches.folder() / "uv/archive-v0").iterdir()] == ["x2"]


def test_a_copy_that_was_killed_is_not_whole_and_is_made_good(state: Path, tmp_path: Path) -> None:
    image = tmp_path / "root" / bare_caches.OWN / "images" / "debian-0123"
    image.mkdir(parents=True)
    (image / "manifest.json").write_text("{}")
    (image / "overlaylab.box").write_text("box")
    kept = bare_caches.folder() / "images" / "debian-0123"
    kept.mkdir(parents=True)
    (kept / ".overlaylab.box.copying").write_text("b")
    bare_caches.lend(tmp_path / "early")
    assert not (tmp_path / "early" / bare_caches.OWN / "images").exists()
    bare_caches.collect(tmp_path / "root")
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        "manifest.json": "{}",
        "overlaylab.box": "box",
    }


def test_a_certificate_that_a_setting_names_is_there_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.pem"
    own.write_text("certificate")
    for name in bare_settings.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    monkeypatch.setenv("PIP_INDEX_URL", "https://own.example/simple")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "root/etc/apt/apt.conf.d").mkdir(parents=True)
    (tmp_path / "root/home").mkdir()
    bare_settings.write(tmp_path / "root", tmp_path / "root/home")
    assert (tmp_path / "root" / own.relative_to("/")).read_text() == "certificate"
