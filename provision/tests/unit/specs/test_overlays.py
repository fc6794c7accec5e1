"""What overlay roles say about themselves. Wrong words: test_documents_golden.py."""

import shutil
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from overlaylab.core.documents import parse_document
from overlaylab.core.model import Variant
from overlaylab.specs import overlays

GOLDEN = Path(__file__).parents[2] / "golden"
REAL = overlays.names()


@pytest.fixture
def roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one overlay role, ``example``."""
    folder = tmp_path / "roles"
    (folder / "overlay_example" / "meta").mkdir(parents=True)
    shutil.copy(GOLDEN / "right" / "overlay.yml", folder / "overlay_example" / "meta")
    (folder / "overlay_common").mkdir()
    (tmp_path / "playbooks").mkdir()
    monkeypatch.setattr(overlays, "FOLDERS", [folder])
    monkeypatch.setattr(overlays, "PROVISION", tmp_path)
    return folder


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


def add_role(roles: Path, name: str, **keys: list[str]) -> None:
    """Another role, which says the same of itself as ``example`` but for its name and these keys."""
    text = (GOLDEN / "right" / "overlay.yml").read_text().replace("name: example", f"name: {name}")
    (roles / f"overlay_{name}" / "meta").mkdir(parents=True)
    extra = "".join(f"{key}: [{', '.join(value)}]\n" for key, value in keys.items())
    (roles / f"overlay_{name}" / "meta" / "overlay.yml").write_text(text + extra)


def add_recipe(roles: Path, name: str) -> Path:
    folder = roles.parent / "daemons" / name
    folder.mkdir(parents=True)
    (folder / "build.yml").write_text("")
    return folder


def test_the_digest_follows_all_that_a_role_is_made_of(roles: Path) -> None:
    daemon, shared = add_recipe(roles, "own"), add_recipe(roles, "shared")
    add_role(roles, "base", daemons=["shared"])
    add_role(roles, "upper", daemons=["own"], builds_on=["base"])
    digests = [overlays.role_digest("upper")]
    role, below, common = (roles / f"overlay_{name}" for name in ("upper", "base", "common"))
    for folder in (role, below, common, daemon, shared, roles.parent / "playbooks"):
        (folder / "new.yml").write_text("new")
        digests.append(overlays.role_digest("upper"))
    (role / "new.yml").write_text("changed")
    digests.append(overlays.role_digest("upper"))
    assert len(set(digests)) == 8


def test_a_role_takes_the_daemons_of_those_it_builds_on_once(roles: Path) -> None:
    for name in ("first", "second", "third"):
        add_recipe(roles, name)
    add_role(roles, "base", daemons=["second", "third"], units=["base.service"])
    add_role(roles, "upper", daemons=["first", "second"], builds_on=["base", "example"])
    assert [overlay.name for overlay in overlays.foundations("upper")] == ["upper", "base", "example"]
    assert overlays.recipes("upper") == ("first", "second", "third")
    assert overlays.recipes("example") == ()
    assert overlays.load("base").units == ("base.service",)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"daemons": ["onw"]},
            r'daemons\[0\]: must be a recipe in provision/daemons/ \(found: "onw"\).*"own"\?',
        ),
        (
            {"builds_on": ["example", "other"]},
            r'builds_on\[1\]: must be another overlay that has a role \(found: "other"\)',
        ),
    ],
)
def test_what_a_role_is_made_of_must_be_there(roles: Path, keys: dict, message: str) -> None:
    add_recipe(roles, "own")
    add_role(roles, "upper", **keys)
    with pytest.raises(overlays.UserError, match=message):
        overlays.load("upper")


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
    options = set(specs["main"]["options"])
    for mode in overlay.modes.values():
        assert set(mode.arguments) <= options
    assert overlay.range_argument is None or overlay.range_argument in options
    assert [v.key for v in overlays.select(name)] == list(overlay.default_modes)


def test_a_variants_modules_are_those_of_all_modes_its_own_and_what_is_used_where_it_is_there() -> None:
    assert overlays.modules_of(Variant("weave", "sleeve")) == ("bridge", "veth", "dummy")
    fast = ("bridge", "veth", "openvswitch", "vport_vxlan", "vxlan", "dummy")
    assert overlays.modules_of(Variant("weave", "fastdp")) == fast
