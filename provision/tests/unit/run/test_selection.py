"""Which overlays and modes a task means."""

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.model import Variant
from overlaylab.providers import requirements
from overlaylab.providers.requirements import Verdict
from overlaylab.run import experiment, selection
from overlaylab.run.options import Options
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile

TIER = load_profile("azure-a1")
EVERY = tuple(
    overlays.load(name).variant(key)
    for name in overlays.names()
    for key in overlays.load(name).modes
    if (name, key) != ("host", "again")  # for those who name it
)


@pytest.fixture
def cannot(monkeypatch: pytest.MonkeyPatch) -> dict[Variant, str]:
    """{variant: why it does not run}; asked for nodes that are VMs."""
    reasons: dict[Variant, str] = {}

    def verdict(variant, profile, provider):
        assert (profile, provider) == (TIER, "libvirt")
        return Verdict(variant not in reasons, reasons.get(variant))

    monkeypatch.setattr(requirements, "verdict", verdict)
    return reasons


def test_all_is_every_mode_of_every_overlay_that_runs(cannot) -> None:
    assert selection.select("all", None, None, TIER, None).variants == EVERY
    cannot[Variant("weave", "sleeve")] = "lacks a kernel"
    found = selection.select("all", None, None, TIER, "libvirt")
    assert found.variants == tuple(v for v in EVERY if v != Variant("weave", "sleeve"))
    assert found.left_out == {Variant("weave", "sleeve"): "lacks a kernel"}


def test_some_of_all_and_their_default_modes(cannot) -> None:
    found = selection.select("all", "default", "weave, host", TIER, None)
    assert found.variants == (Variant("weave", "fastdp"), Variant("weave", "sleeve"), Variant("host"))
    assert found.overlays == ("weave", "host")


def test_modes_may_name_their_overlays() -> None:
    found = selection.select("all", "weave/sleeve-encrypted, host/host", None, TIER, None)
    assert found.variants == (Variant("weave", "sleeve", encrypted=True), Variant("host"))


def test_what_was_named_is_not_left_out_in_silence(cannot) -> None:
    cannot[Variant("weave", "sleeve")] = "lacks a kernel"
    assert Variant("weave", "sleeve") in selection.select("all", None, "weave", TIER, None).variants
    assert selection.select("weave", "sleeve", None, TIER, None).variants == (Variant("weave", "sleeve"),)


@pytest.mark.parametrize(
    ("overlay", "modes", "only", "message"),
    [
        ("weave", None, "host", r"OVERLAYS: picks among all overlays \(found: host\)"),
        (
            "all",
            "fastdp",
            None,
            r'MODES: must be default, or modes with their overlays.* \(found: "fastdp"\)',
        ),
        ("all", "weave/fastdp,", None, r"MODES: must be default, or modes with their overlays"),
        ("all", "weave/fastdb", None, r'MODES: must be modes of weave \(found: "fastdb"\)'),
        ("all", "weeve/fastdp", None, r'overlay: .* \(found: "weeve"\)'),
        ("all", "weave/sleeve,weave/sleeve", None, r"MODES: must name each mode once"),
        ("all", "weave/sleeve", "weave", r"OVERLAYS: cannot be combined with MODES"),
        ("all", None, "weave,weeve", r'OVERLAYS: .* \(found: "weeve"\)'),
        ("all", None, "weave,", r"OVERLAYS: must be names with single commas between them"),
        ("all", None, "weave,weave", r"OVERLAYS: must name each overlay once"),
    ],
)
def test_what_is_meant_must_be_clear(overlay, modes, only, message) -> None:
    with pytest.raises(UserError, match=message):
        selection.select(overlay, modes, only, TIER, None)


def test_all_is_asked_for_again(own_cache) -> None:
    asked = experiment.request("all", Options(overlays="weave", modes="default", seed=7))
    assert asked.variants == (Variant("host"), Variant("weave", "fastdp"), Variant("weave", "sleeve"))
    assert experiment.again(asked.arguments(), "libvirt") == experiment.request(
        "all", Options(overlays="weave", modes="default", seed=7, provider="libvirt")
    )
    assert experiment.command_line(asked) == (
        "./task lab:all MODES=default CLUSTER=pair PROFILE=azure-a1 SUITE=quick BLOCKS=7 SCALE=1.0 SEED=7 OVERLAYS=weave"
    )


def test_arguments_are_one_overlays() -> None:
    with pytest.raises(UserError, match="ARGUMENTS: are one overlay's"):
        experiment.request("all", Options(arguments="overlay_weave_mtu=1410"))
