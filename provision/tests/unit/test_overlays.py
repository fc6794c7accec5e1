"""What overlay roles say about themselves. Wrong words: test_documents_golden.py."""

import shutil
from collections.abc import Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from overlaylab import overlays
from overlaylab.documents import parse_document
from overlaylab.model import Variant

GOLDEN = Path(__file__).parents[1] / "golden"
REAL = overlays.names()


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with one overlay role, ``example``."""
    folder = tmp_path / "roles"
    (folder / "overlay_example" / "meta").mkdir(parents=True)
    shutil.copy(overlays.ROLES / "overlay.schema.json", folder)
    shutil.copy(GOLDEN / "right" / "overlay.yml", folder / "overlay_example" / "meta")
    (folder / "overlay_common").mkdir()
    (tmp_path / "playbooks").mkdir()
    monkeypatch.setattr(overlays, "ROLES", folder)
    monkeypatch.setattr(overlays, "PROVISION", tmp_path)
    overlays.names.cache_clear()
    overlays.load.cache_clear()
    yield folder
    overlays.names.cache_clear()
    overlays.load.cache_clear()


def test_an_overlay_is_found_by_its_role(roles: Path) -> None:
    assert overlays.names() == ("example",)
    example = overlays.load("example")
    assert (example.name, example.title, example.version) == ("example", "Example", "1.0")
    assert example.range == IPv4Network("10.40.0.0/16")
    assert example.needs == overlays.Needs(features=("link:vxlan",), modules=("vxlan",), commands=("ip",))
    encrypted = example.modes["fast-encrypted"]
    assert encrypted == overlays.Mode(
        key="fast-encrypted",
        mode="fast",
        encrypted=True,
        arguments={"example_mode": "fast", "example_encrypted": True},
        family="fast",
        header_bytes=84,
        wire=overlays.Wire("ip proto 50", "absent"),
        features=("xfrm:esp",),
    )
    assert example.modes["fast"].features == ()
    assert example.variant("fast-encrypted") == Variant("example", "fast", True)


def test_modes_are_selected_in_the_order_given_or_by_default(roles: Path) -> None:
    assert overlays.select("example") == [Variant("example", "fast")]
    assert [v.key for v in overlays.select("example", "fast-encrypted, fast")] == ["fast-encrypted", "fast"]


def test_a_role_with_another_name_is_refused(roles: Path) -> None:
    (roles / "overlay_example").rename(roles / "overlay_other_one")
    with pytest.raises(overlays.UserError, match=r"must be the role's own name .*write other-one"):
        overlays.load("other-one")


def test_the_digest_follows_role_common_part_daemons_and_playbooks(roles: Path) -> None:
    digests = [overlays.role_digest("example")]
    daemons = roles.parent / "daemons" / "example"
    daemons.mkdir(parents=True)
    places = [roles / "overlay_example", roles / "overlay_common", daemons, roles.parent / "playbooks"]
    for folder in places:
        (folder / "new.yml").write_text("new")
        digests.append(overlays.role_digest("example"))
    (roles / "overlay_example" / "new.yml").write_text("changed")
    digests.append(overlays.role_digest("example"))
    assert len(set(digests)) == 6


def test_the_digest_does_not_follow_what_is_no_input(roles: Path) -> None:
    before = overlays.role_digest("example")
    (roles / "overlay_else").mkdir()
    (roles / "overlay_else" / "x.yml").write_text("x")
    (roles / "overlay_example" / "__pycache__").mkdir()
    (roles / "overlay_example" / "__pycache__" / "x.pyc").write_text("x")
    (roles / "overlay_example" / "main.yml~").write_text("x")
    assert overlays.role_digest("example") == before


@pytest.mark.parametrize("name", REAL)
def test_every_role_describes_modes_that_its_arguments_know(name: str) -> None:
    overlay = overlays.load(name)
    specs = parse_document(overlays.role(name) / "meta" / "argument_specs.yml").data["argument_specs"]
    options = {key for spec in specs.values() for key in spec.get("options", {})}
    for mode in overlay.modes.values():
        assert set(mode.arguments) <= options
    assert overlay.range_argument is None or overlay.range_argument in options
    assert [v.key for v in overlays.select(name)] == list(overlay.default_modes)
