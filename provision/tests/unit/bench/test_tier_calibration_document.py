"""What was measured, as a profile that reads back to the same values."""

from dataclasses import replace

import pytest

from overlaylab.bench import calibration
from overlaylab.bench.calibration import Carried
from overlaylab.bench.calibration_document import Label, document, text, written
from overlaylab.bench.calibration_nodes import Datagrams, Measured, Transfer
from overlaylab.cli.calibrate import write
from overlaylab.core.errors import UserError
from overlaylab.specs.profile import read_profile

ONE = Carried(95.64e6, 95.5e6, 95.7e6, None, None, None, 0.0, 60.0, 717e6)
TWO = Carried(929.7e6, 920e6, 935e6, 119.6e6, 4e9, None, 0.0, 120.0, 5.2e9)
LABEL = Label("my-cloud", "2026-11-20", "hosts.yml")
RTTS = (0.00096, 0.00097) * 250


def measured(*carried: Carried, lost: int = 0, **changes) -> Measured:
    ends = (("node1", "node2"), ("node2", "node1"))
    transfers = tuple(
        Transfer(*pair, one, None) for pair, one in zip(ends, carried or (ONE, ONE), strict=True)
    )
    datagrams = tuple(Datagrams(*pair, 48.7e6, calibration.loss(80000, lost), 0) for pair in ends)
    known = {
        "pair": ("node1", "node2"),
        "zones": ("a", "a"),
        "cpus": {"node1": 4, "node2": 2},
        "links": {"node1": 9001, "node2": 1500},
        "mtu": 1500,
        "rtts": RTTS,
        "transfers": transfers,
        "datagrams": datagrams,
        "shaped": (),
    }
    return Measured(**(known | changes))


def read(tmp_path, found: Measured, label: Label = LABEL):
    path = tmp_path / "my-cloud.yml"
    write(path, text(found, label))
    return read_profile(path)


def test_one_rate_reads_back(tmp_path) -> None:
    tier = read(tmp_path, measured())
    assert tier.rate == pytest.approx(95.64e6 * 1514 / 1448, rel=5e-4)
    assert (tier.name, tier.sustained, tier.bucket, tier.stands_for) == ("my-cloud", None, None, None)
    assert (tier.within_zone, tier.loss, tier.mtu, tier.vcpus) == (0.000965, 0, 1500, 2)
    assert tier.jitter == pytest.approx(calibration.jitter(RTTS), rel=1e-3)
    assert (tier.offloads, tier.ingress_metered, tier.quota) == ("segmented", False, None)
    confidence = {name: figure.confidence for name, figure in tier.figures.items()}
    assert confidence.pop("ingress_metered") == "estimate"
    assert set(confidence.values()) == {"measured"}


def test_two_rates_read_back(tmp_path) -> None:
    tier = read(tmp_path, measured(TWO, TWO))
    assert tier.rate == pytest.approx(929.7e6 * 1514 / 1448, rel=5e-4)
    assert tier.sustained == pytest.approx(119.6e6 * 1514 / 1448, rel=5e-4)
    assert tier.bucket == pytest.approx(4e9 * 1514 / 1448, rel=5e-4)


def test_the_source_tells_how_and_what_each_direction_did() -> None:
    found = document(measured(ONE, replace(TWO, sustained=None, bucket=None)), LABEL)
    assert found["rate"]["value"] == "100 Mbit/s"
    source = found["rate"]["source"]
    assert source.startswith(
        "measured on 2026-11-20 by profile:calibrate between node1 and node2 of hosts.yml: "
    )
    assert "goodput × 1514/1448" in source
    told = (
        "node1→node2 100 Mbit/s (99.85 Mbit/s to 100.1 Mbit/s each second), no drop seen in 60 s and 749.7 MB"
    )
    assert told in source
    assert "node2→node1 972.1 Mbit/s" in source
    assert "that it is a cap is not shown" in source


def test_a_drop_at_the_end_is_told_and_not_written() -> None:
    found = document(measured(replace(ONE, late=10e6), ONE), LABEL)
    assert "and 10.46 Mbit/s at the very end: DURATION was too short" in found["rate"]["source"]
    assert "sustained" not in found


def test_a_first_second_with_more_is_told() -> None:
    found = document(measured(replace(ONE, head=50e6), ONE), LABEL)
    assert "and 52.28 MB more at the beginning" in found["rate"]["source"]


def test_a_busy_cpu_is_told() -> None:
    busy = measured()
    first, second = busy.transfers
    busy = replace(busy, transfers=(replace(first, bound="3% of node1's CPU was idle"), second))
    source = document(busy, LABEL)["rate"]["source"]
    assert "(3% of node1's CPU was idle)" in source
    assert source.endswith("CPU-bound, the NIC may carry more")
    assert "CPU-bound" not in document(measured(), LABEL)["rate"]["source"]


def test_no_loss_is_zero_with_its_bound() -> None:
    figure = document(measured(), LABEL)["loss"]
    assert figure["value"] == 0
    assert figure["source"].endswith("none of 160000 lost; below 2.3e-05 at 95 %")


def test_a_loss_has_its_interval(tmp_path) -> None:
    figure = document(measured(lost=41), LABEL)["loss"]
    assert figure["value"] == 0.0005125
    assert figure["source"].endswith("both: 82 of 160000, 0.00041 to 0.00064 at 95 %")
    assert read(tmp_path, measured(lost=41)).loss == 0.0005125


def test_what_the_receiver_did_not_read_is_told_apart() -> None:
    found = measured()
    first, second = found.datagrams
    found = replace(found, datagrams=(replace(first, unread=7), second))
    assert "and 7 arrived that the receiver did not read in time" in document(found, LABEL)["loss"]["source"]


def test_jitter_is_at_most_half_of_the_rtt(tmp_path) -> None:
    """What is written must pass the profile's own rule, rounded as both are."""
    wild = measured(rtts=(0.0003, 0.0009637, 0.0017) * 166)
    tier = read(tmp_path, wild)
    assert tier.jitter <= tier.within_zone / 2
    assert tier.jitter == pytest.approx(tier.within_zone / 2, rel=3e-3)
    assert "that gave 1.2 ms, and more than half of the RTT cannot be" in tier.figures["jitter"].source


def test_the_standard_deviation_is_told_beside_the_jitter() -> None:
    """One reply of 30 ms among 500 makes 1.3 ms, and no jitter."""
    figure = document(measured(rtts=(0.00096, 0.00097) * 249 + (0.00096, 0.03)), LABEL)["jitter"]
    assert figure["value"] == "0.008535 ms"
    assert figure["source"].endswith("the standard deviation of the RTTs is 1.3 ms")


def test_hosts_in_two_zones_have_an_rtt_between_them(tmp_path) -> None:
    tier = read(tmp_path, measured(zones=("b", "a")))
    assert tier.between_zones == {("a", "b"): 0.000965}
    assert tier.figures["latency.between_zones.a-b"].confidence == "measured"
    within = tier.figures["latency.within_zone"]
    assert within.confidence == "estimate"
    assert "not measured, the hosts are in zones b and a" in within.source


def test_a_profile_that_was_in_force_is_told_of() -> None:
    found = document(measured(shaped=("node1",)), LABEL)
    assert found["rate"]["source"].endswith("; with a profile of the lab in force on node1")


def test_what_it_stands_for_is_what_was_typed(tmp_path) -> None:
    tier = read(tmp_path, measured(), replace(LABEL, cloud="AWS", instance="c5.large"))
    assert tier.stands_for == {"cloud": "AWS", "instance": "c5.large"}
    assert tier.description == "AWS c5.large, as measured between two hosts"


def test_what_cannot_be_a_profile_is_refused_and_kept(tmp_path) -> None:
    slow = replace(ONE, rate=1000.0)
    with pytest.raises(UserError) as wrong:
        read(tmp_path, measured(slow, slow))
    assert "rate" in wrong.value.where
    assert "at least 8 kbit/s" in wrong.value.rule
    (refused,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert refused == tmp_path / "my-cloud.refused" / "my-cloud.yml"


@pytest.mark.parametrize(
    ("value", "unit", "spelling", "expected"),
    [
        (99.9987e6, "bit/s", None, "100 Mbit/s"),
        (104.623e6, "bit/s", None, "104.6 Mbit/s"),
        (4.94e6, "bit/s", None, "4.94 Mbit/s"),
        (12.34567e9, "bit/s", None, "12.35 Gbit/s"),
        (1234567e9, "bit/s", None, "1235000 Gbit/s"),
        (800, "bit/s", None, "800 bit/s"),
        (5.4321e9, "bytes", None, "5.432 GB"),
        (1999.96e6, "bytes", None, "2 GB"),
        (0.000966, "s", "ms", "0.966 ms"),
        (0.01234567, "s", "ms", "12.35 ms"),
        (0.0, "s", "ms", "0 ms"),
    ],
)
def test_four_digits_and_a_unit(value, unit, spelling, expected) -> None:
    assert written(value, unit, spelling) == expected
