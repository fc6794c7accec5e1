"""The MTU doctor: every verdict, and how what passes is found."""

from dataclasses import replace

import pytest

from overlaylab.live import mtu
from overlaylab.live.mtu import Direction, Facts, judge
from overlaylab.live.mtu_probe import (
    ON_NODE,
    SMALLEST,
    Try,
    fragments_script,
    largest,
    ping_script,
    read_fragments,
    read_ping,
)
from overlaylab.shaping import theory

# -- judging ----------------------------------------------------------------------------------------


def facts(
    passes: int | None,
    *,
    device: int | None = None,
    underlay: int = 1500,
    headers: int = 50,
    back: int | None = -1,
    senders_learn: bool = True,
    fragments: bool = False,
    underlay_passes: int | None = -1,
    set_by: str | None = "ARGUMENTS=overlay_tunnel_mtu",
) -> Facts:
    """Two nodes; back: what passes in the other direction, the same unless said otherwise."""
    below = underlay if underlay_passes == -1 else underlay_passes
    ways = (("node1", "node2", passes), ("node2", "node1", passes if back == -1 else back))
    return Facts(
        overlay="tunnel",
        mode="fast",
        encapsulation="VXLAN (4789/udp)",
        header_bytes=headers,
        underlay_mtu=underlay,
        device="eth-in",
        device_mtu=device or passes or 1450,
        directions=tuple(Direction(a, b, size, senders_learn, fragments, below) for a, b, size in ways),
        set_by=set_by,
    )


def test_weaves_1410_on_a_jumbo_underlay_is_wasted() -> None:
    found = judge(replace(facts(1410, underlay=9001), set_by="ARGUMENTS=overlay_weave_mtu"))
    assert found.verdict == mtu.WASTED
    assert found.says == (
        "the underlay would carry 8951 bytes, 7541 more than the 1410 that pass: that costs 6.7% of goodput in headers "
        "alone, and 6.6 times the packets, which is what a CPU pays for"
    )
    assert found.advice == "Set ARGUMENTS=overlay_weave_mtu=8951"


def test_what_is_wasted_is_the_header_arithmetic() -> None:
    lost = 1 - theory.goodput_theory(1e8, 9001, 50, 1410) / theory.goodput_theory(1e8, 9001, 50)
    assert lost == pytest.approx(0.0667, abs=1e-4)


@pytest.mark.parametrize(
    ("given", "verdict", "says", "advice"),
    [
        (facts(1450), mtu.RIGHT, "1450 bytes pass in both directions and in one piece", None),
        # Weave's default: too little to be worth a word of warning.
        (
            facts(1376),
            mtu.RIGHT,
            "1376 bytes pass in both directions and in one piece; 74 bytes stay unused, 0.4% of goodput",
            None,
        ),
        (facts(1500, headers=0), mtu.RIGHT, "1500 bytes pass in both directions and in one piece", None),
        # Sleeve: the device promises everything, and its daemon says what passes.
        (
            facts(1438, device=65535, headers=62),
            mtu.RIGHT,
            "1438 bytes pass in both directions and in one piece; eth-in says 65535, and senders learn of the 1438 by "
            "path MTU discovery",
            None,
        ),
        # ESP pads: a little more than the arithmetic's worst case may pass.
        (facts(1418, headers=84), mtu.RIGHT, "1418 bytes pass in both directions and in one piece", None),
        (
            facts(1450, device=1500, senders_learn=False),
            mtu.BLACK_HOLE,
            "packets of 1451 to 1500 bytes vanish, and nobody tells the sender: eth-in promises more than passes, so "
            "small requests work and large answers hang",
            "Set ARGUMENTS=overlay_tunnel_mtu=1450",
        ),
        # The smaller direction counts.
        (
            facts(1450, device=1450, back=1400, senders_learn=False),
            mtu.BLACK_HOLE,
            "packets of 1401 to 1450 bytes vanish, and nobody tells the sender: eth-in promises more than passes, so "
            "small requests work and large answers hang",
            "Set ARGUMENTS=overlay_tunnel_mtu=1400",
        ),
        (
            facts(1500, fragments=True),
            mtu.FRAGMENTED,
            "1500 bytes pass, but not in one piece: with 50 of headers they exceed the underlay's 1500, so every full "
            "packet crosses it as two",
            "Set ARGUMENTS=overlay_tunnel_mtu=1450",
        ),
        (
            facts(1450, underlay_passes=1400),
            mtu.UNDERLAY,
            "the underlay itself is the trouble: its devices say 1500, and no more than 1400 bytes with DF passes "
            "between the nodes",
            "Set the MTU of the nodes' underlay devices to 1400, or repair the path; then converge the overlay again",
        ),
        (
            facts(1450, underlay_passes=None),
            mtu.UNDERLAY,
            "the underlay itself is the trouble: its devices say 1500, and nothing with DF passes between the nodes",
            None,
        ),
        (
            facts(1450, back=None),
            mtu.UNREACHABLE,
            "nothing passes from node2 to node1, whatever its size: that is no question of MTU",
            "See what the overlay says of itself: ./task lab:explain",
        ),
        (
            facts(1450, device=1500, senders_learn=False, set_by=None),
            mtu.BLACK_HOLE,
            "packets of 1451 to 1500 bytes vanish, and nobody tells the sender: eth-in promises more than passes, so "
            "small requests work and large answers hang",
            "Set 1450: the role of tunnel has no argument for it and follows the underlay's MTU when it is converged, "
            "so converge it again",
        ),
    ],
)
def test_verdicts(given, verdict, says, advice) -> None:
    found = judge(given)
    assert (found.verdict, found.says, found.advice) == (verdict, says, advice)
    assert (verdict in mtu.SOUND) == (verdict in ("right", "wasted"))


def test_an_argument_that_means_the_underlays_mtu_is_set_to_that() -> None:
    given = replace(facts(1450, underlay=9001), set_of_underlay=True)
    assert judge(given).advice == "Set ARGUMENTS=overlay_tunnel_mtu=9001"


@pytest.mark.parametrize(("passes", "verdict"), [(1306, mtu.RIGHT), (1240, mtu.WASTED), (68, mtu.WASTED)])
def test_one_per_cent_of_goodput_is_what_counts_as_wasted(passes, verdict) -> None:
    lost = 1 - theory.goodput_theory(1.0, 1500, 50, passes) / theory.goodput_theory(1.0, 1500, 50)
    assert (lost >= 0.01) == (verdict == mtu.WASTED)
    assert judge(facts(passes)).verdict == verdict


def test_rows_lead_from_the_underlay_to_what_passes() -> None:
    given = facts(1438, device=65535, headers=62, back=1400, senders_learn=False, underlay_passes=1490)
    assert mtu.rows(given) == [
        ("underlay MTU", "1500", "of the nodes' devices; 1490 pass"),
        ("headers", "62", "VXLAN (4789/udp)"),
        ("fits", "1438", "1500 - 62"),
        ("device MTU", "65535", "of eth-in in the endpoints"),
        ("passes", "1438", "node1 to node2, with DF; more vanishes"),
        ("passes", "1400", "node2 to node1, with DF; more vanishes"),
    ]
    assert mtu.rows(facts(1500, fragments=True))[-1] == (
        "passes",
        "1500",
        "node2 to node1, with DF; in pieces",
    )
    assert mtu.rows(facts(1450, device=1500))[-1][2] == "node2 to node1, with DF; more is refused"
    assert mtu.rows(facts(None))[-1] == ("passes", "nothing", "node2 to node1, with DF")


# -- finding what passes ----------------------------------------------------------------------------

ANSWERED = "2 packets transmitted, 2 received, 0% packet loss, time 201ms\n"
LOST = "2 packets transmitted, 0 received, 100% packet loss, time 203ms\n"


@pytest.mark.parametrize(
    ("printed", "tried"),
    [
        (ANSWERED, Try(True)),
        ("2 packets transmitted, 1 received, 50% packet loss, time 201ms\n", Try(True)),
        (LOST, Try(False)),
        ("ping: connect: Network is unreachable\n", Try(False)),
        (
            f"ping: local error: message too long, mtu=1400\n{LOST}",
            Try(False, True, 1400),
        ),
        (
            f"From 10.32.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1438)\nping: local error: message too long, mtu: 1438\n{LOST}",
            Try(False, True, 1438),
        ),
        (f"ping: sendmsg: Message too long\n{LOST}", Try(False, True, None)),
        # The first was too long, then the kernel knew: what came back counts.
        (f"From 10.32.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1438)\n{ANSWERED}", Try(True)),
    ],
)
def test_what_became_of_a_ping(printed, tried) -> None:
    assert read_ping(printed) == tried


def test_pings_have_df_and_the_size_of_the_whole_packet() -> None:
    assert ping_script("ip netns exec endpoint ping", "10.32.0.2", 1376) == (
        "LC_ALL=C ip netns exec endpoint ping -n -c 2 -i 0.2 -W 1 -M do -s 1348 10.32.0.2 2>&1"
    )
    assert ping_script(ON_NODE, "192.168.77.12", 68).startswith("LC_ALL=C ping ")


@pytest.mark.parametrize(
    ("true", "limit", "hints", "found", "tries"),
    [
        (1376, 1376, [1376, 1450], 1376, 1),
        (1438, 65535, [1438, 1438], 1438, 3),
        (1350, 1410, [1376], 1350, 13),
        (68, 1410, [], 68, 10),
        (67, 1410, [], None, 6),
        (0, 1410, [1376, 1450, 20], None, 7),
        (1409, 1410, [1410, 9000], 1409, 12),
    ],
)
async def test_the_largest_is_found_with_few_tries(true, limit, hints, found, tries) -> None:
    seen: list[int] = []

    async def attempt(size: int) -> Try:
        assert SMALLEST <= size <= limit
        seen.append(size)
        return Try(size <= true)

    assert (await largest(attempt, limit, hints))[0] == found
    assert len(seen) == len(set(seen)) <= tries


@pytest.mark.parametrize("named", [None, 1438])
async def test_what_a_refusal_names_is_tried_next(named) -> None:
    seen: list[int] = []

    async def attempt(size: int) -> Try:
        seen.append(size)
        return Try(True) if size <= 1438 else Try(False, True, named)

    assert await largest(attempt, 9000, []) == (1438, True)
    assert (seen == [9000, 1438, 1439]) == (named is not None)


async def test_one_packet_that_vanishes_is_enough_to_say_that_senders_are_not_told() -> None:
    async def attempt(size: int) -> Try:
        return Try(True) if size <= 1000 else Try(False, size > 1200, None)

    assert await largest(attempt, 1500, []) == (1000, False)


SNMP = "Ip: Forwarding InDelivers FragOKs FragFails FragCreates\nIp: 1 99 3 0 {}\nIcmp: InMsgs\nIcmp: 7\n"


def test_fragments_are_counted_on_the_nodes_own_network() -> None:
    script = fragments_script("ip netns exec endpoint ping", "10.32.0.2", 1500)
    assert script.startswith("cat /proc/net/snmp; ") and script.endswith("; cat /proc/net/snmp")
    assert "-s 1472 10.32.0.2 2>&1; } >/dev/null" in script
    cut = script.partition("echo '")[2].partition("'")[0]
    assert read_fragments(f"{SNMP.format(6)}{cut}\n{SNMP.format(10)}") == 4
    with pytest.raises(ValueError, match="stopped early"):
        read_fragments(SNMP.format(6))
