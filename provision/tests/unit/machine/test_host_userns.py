"""What forbids user namespaces, and the remedy: settings in, words out."""

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import node_image
from overlaylab.machine import userns
from overlaylab.machine.userns import APPARMOR, MMDEBSTRAP, explain, remedy

CLONE, MAXIMUM = "kernel.unprivileged_userns_clone", "user.max_user_namespaces"
UBUNTU = {APPARMOR: "1", CLONE: "1", MAXIMUM: "63489"}
DEBIAN = {CLONE: "1", MAXIMUM: "63489"}
PROFILE = (
    "Allow it to this program alone: printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile mmdebstrap "
    "\"/usr/bin/mmdebstrap\" flags=(unconfined) {' '  userns,' '}' | sudo tee "
)


@pytest.fixture
def etc(tmp_path):
    (tmp_path / "subuid").write_text("mona:100000:65536\n")
    (tmp_path / "subgid").write_text("mona:100000:65536\n")
    (tmp_path / "apparmor.d").mkdir()
    return tmp_path


def test_settings_are_read_where_the_kernel_has_them(tmp_path):
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/apparmor_restrict_unprivileged_userns").write_text("1\n")
    assert userns.settings(tmp_path) == {APPARMOR: "1"}


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        ({}, ""),
        (DEBIAN, ""),
        (UBUNTU, f"{APPARMOR} is 1"),
        ({**DEBIAN, CLONE: "0"}, f"{CLONE} is 0"),
        ({**UBUNTU, MAXIMUM: "0"}, f"{APPARMOR} is 1, {MAXIMUM} is 0"),
    ],
)
def test_what_forbids_is_named_by_its_setting(values, reasons):
    assert userns.reasons(values) == reasons


def test_apparmor_takes_a_profile_for_the_one_program(etc):
    folder = etc / "apparmor.d"
    file = folder / "mmdebstrap"
    assert remedy(UBUNTU, MMDEBSTRAP, folder) == f"{PROFILE}{file} && sudo apparmor_parser --replace {file}"


def test_a_profile_that_is_there_is_to_be_loaded(etc):
    file = etc / "apparmor.d/mmdebstrap"
    file.touch()
    assert remedy(UBUNTU, MMDEBSTRAP, file.parent) == (
        f"Allow it to this program alone: sudo apparmor_parser --replace {file}"
    )


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ({**DEBIAN, CLONE: "0"}, f"{CLONE}=1"),
        ({**DEBIAN, MAXIMUM: "0"}, f"{MAXIMUM}=1000"),
        ({CLONE: "0", MAXIMUM: "0"}, f"{CLONE}=1 {MAXIMUM}=1000"),
    ],
)
def test_the_whole_machine_s_settings_are_changed_where_nothing_narrower_helps(values, lines, etc):
    assert remedy(values, MMDEBSTRAP, etc) == (
        f"Allow it on this machine: printf '%s\\n' {lines} | sudo tee /etc/sysctl.d/60-overlaylab.conf && "
        "sudo sysctl --load /etc/sysctl.d/60-overlaylab.conf"
    )


def test_two_causes_take_two_remedies(etc):
    told = remedy({**UBUNTU, MAXIMUM: "0"}, MMDEBSTRAP, etc / "apparmor.d")
    assert told.startswith(PROFILE)
    assert "mmdebstrap. Allow it on this machine: printf '%s\\n' user.max_user_namespaces=1000 | sudo" in told


def test_a_user_without_subordinate_ids_gets_free_ones(etc):
    (etc / "subuid").write_text("other:100000:65536\nlate:231072:65536\n")
    trouble = explain("E: newuidmap failed", DEBIAN, "mona", etc)
    assert trouble.found == "mona has no range in /etc/subuid"
    assert trouble.fix == "Give mona one: sudo usermod --add-subuids 296608-362143 mona"
    (etc / "subuid").unlink()
    (etc / "subgid").unlink()
    trouble = explain("E: newuidmap failed", DEBIAN, "mona", etc)
    assert trouble.fix == (
        "Give mona one: sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 mona"
    )


def test_where_no_setting_forbids_the_programs_own_words_are_told(etc):
    trouble = explain("E: unable to create a new user namespace", DEBIAN, "mona", etc)
    assert trouble.found == "E: unable to create a new user namespace"
    assert "a container or its runtime may" in trouble.fix


@pytest.fixture
def ordinary(monkeypatch, tmp_path):
    """ordinary(text of mmdebstrap): an ordinary user on Ubuntu's settings."""
    monkeypatch.setattr(userns, "is_root", lambda: False)
    monkeypatch.setattr(userns, "user_name", lambda: "mona")
    monkeypatch.setattr(userns, "settings", lambda: UBUNTU)

    def use(text):
        (tmp_path / "mmdebstrap").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "mmdebstrap").chmod(0o755)
        monkeypatch.setattr(userns, "find_program", lambda name: str(tmp_path / name))

    return use


def test_a_setting_alone_is_no_refusal(ordinary):
    ordinary('[ "$*" = "--unshare-helper true" ]')  # by the profile that Ubuntu's apparmor brings
    assert userns.mmdebstrap_trouble() is None


def test_an_image_is_not_begun_without_user_namespaces(ordinary, monkeypatch):
    ordinary('echo "E: cannot" >&2; exit 1')
    monkeypatch.setattr(node_image, "find_program", lambda name: name)
    with pytest.raises(UserError) as error:
        node_image._preflight("debian")
    assert error.value.rule == "must be allowed to mmdebstrap, which makes the image's disk as mona"
    assert error.value.seen == f"{APPARMOR} is 1"
    assert error.value.fix.endswith("Then type the command again")


def test_root_needs_none(monkeypatch):
    monkeypatch.setattr(userns, "is_root", lambda: True)
    assert userns.mmdebstrap_trouble() is None
