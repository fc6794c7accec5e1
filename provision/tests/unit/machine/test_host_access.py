"""Groups, the cache folder's permissions, and who may open /dev/kvm."""

import grp
import pwd
import stat
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import access


@pytest.fixture
def open_folder():
    """A folder that others may search up to the root; pytest's own are closed."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="overlaylab-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_the_uppermost_closed_folder_is_named(open_folder):
    home, cache = open_folder / "home", open_folder / "home" / "cache"
    cache.mkdir(parents=True)
    cache.chmod(0o700)
    home.chmod(0o700)
    assert access.unsearchable_folder(cache) == home
    home.chmod(0o711)
    assert access.unsearchable_folder(cache) == cache
    cache.chmod(0o755)
    assert access.unsearchable_folder(cache) is None


def test_a_folder_that_does_not_exist_yet_is_no_obstacle(open_folder):
    assert access.unsearchable_folder(open_folder / "not" / "yet") is None


def test_prepare_cache_makes_a_folder_that_qemu_may_search(open_folder, monkeypatch):
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(open_folder / "cache"))
    assert access.prepare_cache() == open_folder / "cache"
    (open_folder / "cache").chmod(0o700)
    access.prepare_cache()
    assert stat.S_IMODE((open_folder / "cache").stat().st_mode) == 0o755


def test_a_cache_below_a_closed_home_is_refused_with_the_fix(open_folder, monkeypatch):
    home = open_folder / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(home / "cache"))
    monkeypatch.setattr(access, "user_name", lambda: "mona")
    with pytest.raises(UserError) as error:
        access.prepare_cache()
    assert str(error.value) == (
        f"OVERLAYLAB_CACHE={home}/cache: must lie where QEMU's own user may search every folder (found: {home} "
        "has mode 0700). Unset OVERLAYLAB_CACHE (then /var/tmp/overlaylab-mona is used), or choose a folder "
        f"outside {home}"
    )
    assert not (home / "cache").exists()


def test_a_relative_cache_is_refused(monkeypatch):
    monkeypatch.setenv("OVERLAYLAB_CACHE", "cache")
    with pytest.raises(UserError) as error:
        access.prepare_cache()
    assert str(error.value) == (
        "OVERLAYLAB_CACHE: must be an absolute path (found: cache). Write it from / on, or unset it"
    )


def test_somebody_elses_cache_is_refused(open_folder, monkeypatch):
    (open_folder / "cache").mkdir()
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(open_folder / "cache"))
    owner = (open_folder / "cache").stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    monkeypatch.setattr(access, "user_name", lambda: "mona")
    with pytest.raises(UserError) as error:
        access.prepare_cache()
    assert error.value.rule == "must belong to mona"
    assert error.value.seen == f"user id {owner}"


@pytest.fixture
def people(monkeypatch):
    """A user database: mona (1000) is in libvirt and not in kvm; the process holds her own group only."""
    groups = {
        "libvirt": grp.struct_group(("libvirt", "x", 107, ["mona"])),
        "kvm": grp.struct_group(("kvm", "x", 108, [])),
    }
    mona = pwd.struct_passwd(("mona", "x", 1000, 1000, "", "/home/mona", "/bin/sh"))
    monkeypatch.setattr("grp.getgrnam", groups.__getitem__)
    monkeypatch.setattr("grp.getgrgid", {1000: grp.struct_group(("mona", "x", 1000, []))}.__getitem__)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: mona)
    monkeypatch.setattr("os.getgroups", lambda: [1000])
    monkeypatch.setattr("os.getegid", lambda: 1000)
    monkeypatch.setattr(access, "is_root", lambda: False)
    return groups


@pytest.fixture
def kvm_device(monkeypatch):
    """/dev/kvm with a group and a mode; openable or not for this process."""

    def device(gid, mode, openable=False, uid=0):
        status = SimpleNamespace(st_gid=gid, st_uid=uid, st_mode=stat.S_IFCHR | mode)
        monkeypatch.setattr(access, "KVM_DEVICE", SimpleNamespace(stat=lambda: status))
        monkeypatch.setattr("os.access", lambda path, mode: openable)

    return device


def test_root_needs_no_groups(people, monkeypatch):
    monkeypatch.setattr(access, "is_root", lambda: True)
    assert access.needed_groups() == []


@pytest.mark.parametrize(
    ("gid", "mode", "openable", "wanted"),
    [
        (108, 0o660, False, ["libvirt", "kvm"]),
        (108, 0o660, True, ["libvirt"]),  # logind's access list lets whoever sits here in
        (0, 0o600, False, ["libvirt"]),  # the group kvm would not help
        (108, 0o600, False, ["libvirt"]),
    ],
)
def test_the_group_kvm_is_wanted_only_where_it_decides(people, kvm_device, gid, mode, openable, wanted):
    kvm_device(gid, mode, openable)
    assert access.needed_groups() == wanted


def test_membership_and_holding_are_two_things(people, kvm_device):
    kvm_device(108, 0o660)
    assert access.missing_memberships() == ["kvm"]
    assert access.outside_groups() == ["libvirt"]


def test_a_user_joins_what_is_missing(people, kvm_device, monkeypatch):
    kvm_device(108, 0o660)
    calls = []
    monkeypatch.setattr(access, "user_name", lambda: "mona")
    monkeypatch.setattr(
        access,
        "run_as_root",
        lambda argv, why: calls.append((argv, why)) or SimpleNamespace(returncode=0),
    )
    access.join_groups()
    assert calls == [(["usermod", "--append", "--groups", "kvm", "mona"], "adding mona to the group kvm")]


def test_the_command_is_wrapped_once_per_group_and_ends_in_the_own_one():
    assert access.group_command(["lab", "x"], ["libvirt", "kvm"], "mona") == [
        "sg",
        "kvm",
        "-c",
        """exec sg libvirt -c 'exec sg mona -c '"'"'exec lab x'"'"''""",
    ]


def test_quotes_in_an_argument_reach_the_command(tmp_path, monkeypatch):
    """Through as many shells as there are groups; sg's part is played by a script."""
    (tmp_path / "sg").write_text('#!/bin/sh\n[ "$2" = -c ] && exec sh -c "$3"\n')
    (tmp_path / "sg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    argv = access.group_command(["printf", "%s|", "it's", 'a "b" $HOME'], ["libvirt", "kvm"], "mona")
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == 'it\'s|a "b" $HOME|'


def test_nothing_is_started_again_inside_the_groups(people, kvm_device, monkeypatch):
    kvm_device(0, 0o600)
    monkeypatch.setattr("os.getgroups", lambda: [1000, 107])
    monkeypatch.setattr("os.execv", lambda *argv: pytest.fail("started again"))
    access.enter_groups()


@pytest.mark.parametrize(
    ("egid", "held", "command"),
    [
        (1000, [1000], "exec sg mona -c 'exec /venv/python -m overlaylab setup'"),
        # As after `sg libvirt`: newuidmap refuses a process whose group is not its user's.
        (107, [1000, 107], "exec /venv/python -m overlaylab setup"),
    ],
)
def test_the_same_command_is_started_again_in_the_groups(
    people, kvm_device, monkeypatch, egid, held, command
):
    kvm_device(0, 0o600)
    monkeypatch.setattr("os.getegid", lambda: egid)
    monkeypatch.setattr("os.getgroups", lambda: held)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("sys.executable", "/venv/python")
    monkeypatch.setattr("sys.orig_argv", ["python", "-m", "overlaylab", "setup"])
    environment = {}
    monkeypatch.setattr("os.environ", environment)
    started = []
    monkeypatch.setattr("os.execv", lambda path, argv: started.append((path, argv)))
    access.enter_groups()
    assert started == [("/usr/bin/sg", ["/usr/bin/sg", "libvirt" if egid == 1000 else "mona", "-c", command])]
    assert environment == {"OVERLAYLAB_IN_GROUPS": "1"}


def test_a_second_attempt_to_enter_groups_ends_instead_of_looping(people, kvm_device, monkeypatch):
    kvm_device(0, 0o600)
    monkeypatch.setenv("OVERLAYLAB_IN_GROUPS", "1")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(UserError) as error:
        access.enter_groups()
    assert str(error.value) == (
        "groups libvirt, mona: must be held by this process, the last as its own (found: sg(1) did not give "
        "them). Log out and in again, then repeat the command"
    )


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "closed_to"),
    [
        (0, 108, 0o660, None),
        (0, 0, 0o600, "libvirt-qemu"),
        (0, 0, 0o666, None),
        (0, 108, 0o640, "libvirt-qemu"),
        (64055, 0, 0o600, None),
    ],
)
def test_whether_the_nodes_user_may_open_kvm(monkeypatch, kvm_device, uid, gid, mode, closed_to):
    kvm_device(gid, mode, uid=uid)
    user = pwd.struct_passwd(("libvirt-qemu", "x", 64055, 108, "", "/", "/bin/false"))
    monkeypatch.setattr("pwd.getpwnam", {"libvirt-qemu": user}.__getitem__)
    monkeypatch.setattr("os.getgrouplist", lambda name, gid: [gid])
    assert access.qemu_user_without_access() == closed_to


def test_without_such_a_user_qemu_runs_as_root(monkeypatch, kvm_device):
    kvm_device(0, 0o600)
    monkeypatch.setattr("pwd.getpwnam", {}.__getitem__)
    assert access.qemu_user_without_access() is None


@pytest.mark.parametrize(
    ("uid", "gid", "mode", "untouched"),
    [(0, 0, 0o600, True), (0, 108, 0o660, False), (0, 0, 0o666, False), (0, 108, 0o600, False)],
)
def test_kvm_that_nobody_has_looked_at_is_as_the_kernel_made_it(
    people, kvm_device, uid, gid, mode, untouched
):
    kvm_device(gid, mode, uid=uid)
    assert access.kvm_is_untouched() is untouched


def test_without_a_device_or_the_group_there_is_nothing_to_open(people, kvm_device, monkeypatch, tmp_path):
    kvm_device(0, 0o600)
    monkeypatch.setattr(access, "_group", lambda name: None)
    assert not access.kvm_is_untouched()
    monkeypatch.setattr(access, "KVM_DEVICE", tmp_path / "kvm")
    assert not access.kvm_is_untouched()


def test_kvm_is_opened_as_udev_would_and_closed_again(own_cache, monkeypatch):
    calls = []
    monkeypatch.setattr(access, "run_as_root", lambda argv, why: calls.append(argv[-1]))
    assert not access.close_kvm()
    access.open_kvm()
    assert access.close_kvm()
    assert not access.close_kvm()
    assert calls == [
        "chgrp kvm /dev/kvm && chmod 0660 /dev/kvm",
        "chgrp root /dev/kvm && chmod 0600 /dev/kvm",
    ]


def test_what_was_opened_before_a_reboot_is_not_closed(own_cache, monkeypatch):
    calls = []
    monkeypatch.setattr(access, "run_as_root", lambda argv, why: calls.append(argv[-1]))
    access.open_kvm()
    monkeypatch.setattr(access, "boot_id", lambda: "the next boot")
    assert not access.close_kvm()
    assert len(calls) == 1
