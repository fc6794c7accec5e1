"""docs/overlays.md, and the page of each role that it is written from."""

import re
from dataclasses import replace

import pytest

from overlaylab.live import overlay_pages
from overlaylab.specs import overlays

NAMES = overlays.names()


def test_the_document_is_what_the_roles_say() -> None:
    assert overlay_pages.path().read_text() == overlay_pages.text(), "write it: ./task docs:overlays"


@pytest.mark.parametrize("name", NAMES)
def test_every_role_has_a_page_with_the_four_sections_and_no_other_headings(name: str) -> None:
    page = re.sub(r"```.*?```", "", overlay_pages.page(name), flags=re.DOTALL)
    assert tuple(re.findall(r"^#+ .*$", page, flags=re.MULTILINE)) == overlay_pages.SECTIONS
    assert not re.findall(r"\]\((?![a-z]+:)", page), "relative links lead nowhere elsewhere"


@pytest.mark.parametrize("name", NAMES)
def test_every_role_says_what_the_tables_ask(name: str) -> None:
    overlay = overlays.load(name)
    assert overlay.control_plane and overlay.policy
    for mode in overlay.modes.values():
        assert mode.encapsulation and mode.default_mtu is not None


def test_a_role_without_a_page_says_what_to_write(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(overlays, "role", lambda name: tmp_path / "overlay_x")
    with pytest.raises(overlays.UserError, match=r"must have a page \(found: no README.md in overlay_x\)"):
        overlay_pages.page("x")


def test_tables_hold_what_belongs_to_modes_and_overlays() -> None:
    text = overlay_pages.text()
    assert (
        "| weave | sleeve-encrypted | UDP (6783/udp) by weaver itself, sealed with NaCl | 86 | underlay − 86 | yes |\n"
        in text
    )
    assert "| host | – | none | 0 | underlay | no |\n" in text
    ports = "6783/tcp, 6783/udp, 6784/udp, protocol 50"
    assert f"| {ports} | bridge, veth, openvswitch, vport_vxlan, vxlan, dummy |\n" in text
    assert text.index("## Weave Net\n\nA router on every node") > text.index(
        "## Host network\n\nThe node's own"
    )


def test_a_stroke_in_a_cell_is_none_of_the_tables() -> None:
    assert overlay_pages.table(("a",), [("x|y",)]) == "| a |\n|---|\n| x\\|y |\n"


def test_what_is_not_stated_is_a_dash() -> None:
    weave = overlays.load("weave")
    mode = replace(weave.modes["fastdp"], encapsulation=None, default_mtu=None)
    bare = replace(weave, control_plane=None, policy=None, modes={"fastdp": mode})
    assert next(iter(overlay_pages._modes(bare)))[2:5] == ("–", "50", "–")
    assert overlay_pages._overlay(bare)[2:4] == ("–", "–")


def test_what_would_be_started() -> None:
    lines = overlay_pages.would_start(overlays.load("weave"))
    assert lines[0] == (
        "./task lab:weave converges fastdp, sleeve; known are fastdp, fastdp-encrypted, sleeve, sleeve-encrypted (MODES)"
    )
    assert (
        lines[1]
        == "  fastdp: VXLAN (6784/udp) by the kernel's Open vSwitch, 50 bytes of headers, default MTU 1376"
    )
    assert "  daemons: overlaylab-weave.service" in lines
    assert "  endpoints' addresses: 10.32.0.0/12" in lines
    assert (
        "  ARGUMENTS=overlay_weave_mtu=…: MTU of bridge and endpoint in bytes; weaver's own default where it is not given"
        in lines
    )
    assert any(line.endswith("come from (default 10.32.0.0/12)") for line in lines)
    assert not any("overlay_weave_mode" in line for line in lines)  # modes have names
