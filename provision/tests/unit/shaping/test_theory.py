"""Header arithmetic against the published table of ratios."""

import pytest

from overlaylab.shaping.theory import goodput_theory, ratio_theory


@pytest.mark.parametrize(
    ("name", "encapsulation", "at_1500", "at_9001"),
    [
        ("VXLAN over IPv4, Weave fastdp, Geneve", 50, 0.9655, 0.9944),
        ("VXLAN over IPv6", 70, 0.9517, 0.9922),
        ("Weave sleeve", 62, 0.9572, 0.9931),
        ("Weave sleeve encrypted", 86, 0.9406, 0.9904),
        ("Weave fastdp encrypted", 84, 0.9420, 0.9906),
        ("IPIP", 20, 0.9862, 0.9978),
        ("flannel udp", 28, 0.9807, 0.9969),
        ("WireGuard over IPv4", 60, 0.9586, 0.9933),
        ("WireGuard over IPv6", 80, 0.9448, 0.9911),
        ("host", 0, 1.0, 1.0),
    ],
)
def test_ratio_at_the_largest_mtu_that_fits(name, encapsulation, at_1500, at_9001):
    assert ratio_theory(1500, encapsulation) == pytest.approx(at_1500, abs=5e-5), name
    assert ratio_theory(9001, encapsulation) == pytest.approx(at_9001, abs=5e-5), name


@pytest.mark.parametrize(
    ("underlay", "encapsulation", "overlay", "ratio"),
    [
        (1500, 50, 1410, 0.9633),  # fastdp of 2015
        (9001, 50, 1410, 0.9281),
        (1500, 50, 1376, 0.9614),  # fastdp of 2.6.5
        (1500, 62, 1438, 0.9572),  # sleeve's path MTU
        (1500, 86, 1414, 0.9406),
        (1500, 84, 1376, 0.9392),
    ],
)
def test_ratio_at_a_stated_overlay_mtu(underlay, encapsulation, overlay, ratio):
    assert ratio_theory(underlay, encapsulation, overlay) == pytest.approx(ratio, abs=5e-5)


@pytest.mark.parametrize(
    ("rate", "goodput"),
    [(5e6, 4.782e6), (100e6, 95.64e6), (200e6, 191.28e6), (400e6, 382.56e6), (972e6, 929.63e6)],
)
def test_goodput_of_the_host(rate, goodput):
    assert goodput_theory(rate, 1500, 0) == pytest.approx(goodput, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1e6, 1500, 62, 65535), "65535 + 62 bytes do not fit an underlay MTU of 1500: fragmented"),
        ((0, 1500, 0), "rate must be positive, not 0"),
        ((1e6, 1500, -1), "encapsulation cannot be -1 bytes"),
        ((1e6, 1500, 50, 52), "an MTU of 52 leaves no application byte after 52 of headers"),
    ],
)
def test_what_the_formula_does_not_hold_for_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        goodput_theory(*arguments)
