"""Errors: one paragraph that can be read, whatever was typed."""

from pathlib import Path

import pytest
from lab_commands import refused

from overlaylab.core.errors import UserError
from overlaylab.store.store import Store

LONG = "x" * 5000


@pytest.mark.parametrize(
    ("task", "variables"),
    [
        (("measure", LONG), {}),
        (("measure", "host"), {"PROFILE": LONG}),
        (("measure", "host"), {"PROFILES": LONG}),
        (("measure", "host"), {"CLUSTER": LONG}),
        (("measure", "host"), {"SUITE": LONG}),
        (("measure", "host"), {"PROVIDER": LONG}),
        (("measure", "weave"), {"MODES": LONG}),
        (("measure", "host"), {"INVENTORY": LONG}),
        (("measure", "host"), {"PRECISION": LONG}),
        (("measure", "host"), {"MARGIN": LONG}),
        (("measure", "weave"), {"ARGUMENTS": LONG}),
        (("profile", "show"), {"PROFILE": LONG}),
        (("cluster", "up"), {"CLUSTER": LONG}),
        (("results", "import", "--accelerator", "kvm", LONG), {}),
        (("results", "import", "--accelerator", "kvm", "/tmp/" + ("x" * 100 + "/") * 30), {}),
        (("results", "show"), {"LAB_DB": LONG}),
        (("policy", LONG), {}),
        (("mtu",), {"OVERLAY": LONG}),
    ],
    ids=lambda each: " ".join(each)[:30] if isinstance(each, tuple) else "".join(each),
)
def test_what_was_typed_is_not_repeated_whole(
    tmp_path: Path, own_cache: Path, task: tuple[str, ...], variables: dict[str, str]
) -> None:
    Store.open(tmp_path / "lab.sqlite").close()
    wrong = refused(*task, **{"LAB_DB": str(tmp_path / "lab.sqlite"), "OVERLAY": "host"} | variables)
    assert "x" * 100 in str(wrong)
    assert len(str(wrong)) < 1300


def test_the_last_words_of_a_program_are_whole() -> None:
    words = " ".join(["E: no such thing"] * 100)
    assert words in str(UserError("apt", "must work", seen=words, fix="Try again"))
    assert len(str(UserError("apt", "must work", seen=words * 9, fix="Try again"))) < 2100
    assert f"found: {'x' * 200}… (5000 characters)" in str(UserError("X", "is wrong", seen=LONG, fix="Y"))


def test_a_long_place_is_cut_too() -> None:
    wrong = UserError(f"/{'y/' * 2000}hosts.yml:3", "is wrong", fix="Correct it")
    assert len(str(wrong)) < 400
    assert wrong.where.endswith("hosts.yml:3")
