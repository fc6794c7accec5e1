"""SSH key pairs of this user and of builds."""

from __future__ import annotations

import stat

import pytest

from overlaylab.machine import ssh_keys


def test_the_users_key_is_made_once(own_cache) -> None:
    key = ssh_keys.ensure()
    assert key == own_cache / "ssh" / "id_ed25519"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    public, content = ssh_keys.public(key), key.read_bytes()
    assert public.startswith("ssh-ed25519 AAAA") and public.count(" ") == 1
    ssh_keys.public_file(key).unlink()
    assert ssh_keys.ensure().read_bytes() == content
    assert ssh_keys.public(key) == public


def test_a_comment_is_no_part_of_the_public_key(tmp_path) -> None:
    ssh_keys.make(tmp_path / "key", "somebody@somewhere")
    line = ssh_keys.public_file(tmp_path / "key").read_text()
    assert line == f"{ssh_keys.public(tmp_path / 'key')} somebody@somewhere\n"


@pytest.mark.parametrize("comment", ["", "again"])
def test_a_new_pair_takes_the_place_of_the_old(tmp_path, comment) -> None:
    ssh_keys.make(tmp_path / "key")
    before = ssh_keys.public(tmp_path / "key")
    ssh_keys.make(tmp_path / "key", comment)
    assert ssh_keys.public(tmp_path / "key") != before
