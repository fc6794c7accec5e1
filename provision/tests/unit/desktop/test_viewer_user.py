"""Whom the viewer runs as, and what that user is given."""

import os
import pwd
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.core.errors import UserError
from overlaylab.desktop import user as viewer_user
from overlaylab.desktop.user import STRANGER, User

OWN = User(os.getuid(), os.getgid(), "operator")


@pytest.fixture
def root(monkeypatch):
    """This process as root; root.refused are words that setpriv does not accept, root.tried its calls."""
    root = SimpleNamespace(refused=set(), tried=[])

    def run(argv, **_):
        root.tried.append(argv)
        return subprocess.CompletedProcess(argv, 1 if root.refused & set(argv) else 0)

    monkeypatch.setattr(viewer_user, "is_root", lambda: True)
    monkeypatch.setattr(viewer_user.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(viewer_user, "subprocess", SimpleNamespace(run=run))
    monkeypatch.delenv("SUDO_UID", raising=False)
    return root


def test_an_ordinary_user_stays_that_user(monkeypatch):
    monkeypatch.setattr(viewer_user, "is_root", lambda: False)
    user = viewer_user.viewing()
    assert (user.uid, user.gid, user.prefix, user.is_self) == (os.getuid(), os.getgid(), (), True)


def test_root_becomes_a_stranger_who_may_read_what_root_may(root):
    user = viewer_user.viewing()
    assert (user.uid, user.gid, user.name, user.home) == (STRANGER, STRANGER, "user 65529", None)
    assert user.prefix == (
        "setpriv",
        "--reuid=65529",
        "--regid=65529",
        "--clear-groups",
        "--securebits=+no_setuid_fixup",
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=-all,+dac_read_search",
    )
    with pytest.raises(KeyError):
        pwd.getpwuid(STRANGER)


def test_under_sudo_root_becomes_whoever_typed_it(root, monkeypatch):
    nobody = pwd.getpwnam("nobody")
    monkeypatch.setenv("SUDO_UID", str(nobody.pw_uid))
    user = viewer_user.viewing()
    assert (user.uid, user.gid, user.name, user.home) == (
        nobody.pw_uid,
        nobody.pw_gid,
        "nobody",
        Path(nobody.pw_dir),
    )
    assert "--init-groups" in user.prefix


def test_root_that_typed_sudo_is_no_ordinary_user(root, monkeypatch):
    monkeypatch.setenv("SUDO_UID", "0")
    assert viewer_user.viewing().uid == STRANGER


def test_root_without_that_capability_does_without(root):
    root.refused = {"--ambient-caps=-all,+dac_read_search"}
    assert viewer_user.viewing().prefix == ("setpriv", "--reuid=65529", "--regid=65529", "--clear-groups")


def test_in_a_test_that_user_has_no_privilege_unless_the_checkout_takes_it(root):
    file = Path("/checkout/viewer/package.json")
    plain = ("setpriv", "--reuid=65529", "--regid=65529", "--clear-groups")
    assert viewer_user.testing(file).prefix == plain
    assert root.tried[-1] == [*plain, "test", "-r", str(file)]
    root.refused = {"test"}
    assert viewer_user.testing(file).prefix == (*plain, *viewer_user._READING)


def test_root_that_cannot_become_anybody_is_told_to_start_as_a_user(root):
    root.refused = {"setpriv"}
    with pytest.raises(UserError) as error:
        viewer_user.viewing()
    assert error.value.seen == "setpriv cannot become user 65529"
    assert error.value.fix == "Start it as an ordinary user"


def test_nothing_of_roots_own_reaches_the_other_user(tmp_path):
    given = {
        "PATH": "/bin",
        "LC_ALL": "de_DE.UTF-8",
        "DISPLAY": ":0",
        "VIEWER_OUT": "/out",
        "HOME": "/root",
        "XAUTHORITY": "/root/.Xauthority",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    assert viewer_user.environment(User(STRANGER, STRANGER, "user 65529"), tmp_path, given) == {
        "PATH": "/bin",
        "LC_ALL": "de_DE.UTF-8",
        "DISPLAY": ":0",
        "VIEWER_OUT": "/out",
        "HOME": f"{tmp_path}",
        "USER": "user-65529",
        "LOGNAME": "user-65529",
        "XDG_CONFIG_HOME": f"{tmp_path}/config",
        "XDG_CACHE_HOME": f"{tmp_path}/cache",
        "XDG_DATA_HOME": f"{tmp_path}/data",
        "XDG_RUNTIME_DIR": f"{tmp_path}/runtime",
        "TMPDIR": f"{tmp_path}/tmp",
    }


def test_somebody_with_a_home_keeps_it(tmp_path):
    user = User(1000, 1000, "kim", ("setpriv",), Path("/home/kim"))
    assert viewer_user.environment(user, tmp_path, {})["HOME"] == "/home/kim"


def test_a_home_is_nobody_elses_to_read(tmp_path):
    home = viewer_user.make_home(tmp_path / "home", OWN)
    assert {stat.S_IMODE(path.stat().st_mode) for path in [home, *home.iterdir()]} == {0o700}
    viewer_user.make_home(home, OWN)  # again, as with every start


def test_the_key_to_the_screen_is_handed_over_to_nobody_else(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(b"cookie")
    (tmp_path / ".Xauthority").write_bytes(b"that of yesterday")
    given = {"DISPLAY": ":0", "XAUTHORITY": str(key)}
    assert viewer_user.hand_over_display(OWN, tmp_path, given) == {"XAUTHORITY": f"{tmp_path}/.Xauthority"}
    copy = tmp_path / ".Xauthority"
    assert (copy.read_bytes(), stat.S_IMODE(copy.stat().st_mode)) == (b"cookie", 0o600)


def test_a_link_in_the_others_home_is_not_followed(tmp_path):
    key, target = tmp_path / "key", tmp_path / "target"
    key.write_bytes(b"cookie")
    target.write_bytes(b"roots own")
    (tmp_path / ".Xauthority").symlink_to(target)
    viewer_user.hand_over_display(OWN, tmp_path, {"DISPLAY": ":0", "XAUTHORITY": str(key)})
    assert target.read_bytes() == b"roots own"


def test_a_screen_without_a_key_needs_none(tmp_path):
    assert (
        viewer_user.hand_over_display(OWN, tmp_path, {"DISPLAY": ":0", "HOME": str(tmp_path / "none")}) == {}
    )


def test_wayland_admits_nobody_else(tmp_path):
    with pytest.raises(UserError) as error:
        viewer_user.hand_over_display(OWN, tmp_path, {"WAYLAND_DISPLAY": "wayland-0"})
    assert error.value.seen == "WAYLAND_DISPLAY=wayland-0, no DISPLAY"


def test_what_can_be_read(tmp_path):
    (tmp_path / "file").write_text("x")
    assert viewer_user.may_read(OWN, tmp_path / "file")
    assert not viewer_user.may_read(OWN, tmp_path / "absent")
