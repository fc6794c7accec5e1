"""Profiles. Wrong ones: test_documents_golden.py."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.core.documents import names_in
from overlaylab.core.errors import UserError
from overlaylab.core.paths import PROFILES, ROOT
from overlaylab.specs.cluster import load_cluster, read_cluster
from overlaylab.specs.profile import check_zones, load_profile, read_profile, unit_of, varied

RIGHT = Path(__file__).parents[2] / "golden" / "right"


FAST = "no-tunnel-offload"
AWS_PAIRS = {("a", "b"): 0.0005, ("a", "c"): 0.0015, ("any", "any"): 0.00082}
AZURE_PAIRS = {("any", "any"): 0.002}
TIERS = {
    # name: (cloud, instance), rate, sustained, within a zone, MTU, vCPUs, offloads, ingress metered
    "azure-a0": (("Azure", "A0"), 5e6, None, 0.000578, 1500, 1, "segmented", False),
    "azure-a1": (("Azure", "A1"), 100e6, None, 0.000966, 1500, 1, "segmented", False),
    "azure-a2": (("Azure", "A2"), 200e6, None, 0.000852, 1500, 2, "segmented", False),
    "azure-a3": (("Azure", "A3"), 400e6, None, 0.00093, 1500, 4, "segmented", False),
    "azure-a8": (("Azure", "A8"), 2593e6, None, 0.0001884, 1500, 8, FAST, False),
    "azure-d1": (("Azure", "D1"), 471e6, None, 0.000552, 1500, 1, FAST, False),
    "azure-d2": (("Azure", "D2"), 979e6, None, 0.000356, 1500, 2, FAST, False),
    "aws-t2.small": (("AWS", "t2.small"), 972e6, 125e6, 0.00031, 9001, 1, FAST, True),
    "aws-t2.medium": (("AWS", "t2.medium"), 972e6, 275e6, 0.00031, 9001, 2, FAST, True),
    "aws-m4.large": (("AWS", "m4.large"), 450e6, None, 0.00031, 9001, 2, "segmented", True),
    "aws-m4.xlarge": (("AWS", "m4.xlarge"), 915e6, None, 0.00031, 9001, 4, FAST, True),
    "digitalocean": (("DigitalOcean", None), 984.4e6, None, None, 1500, None, FAST, False),
    "packet-bare-metal": (("Packet", None), None, None, None, 1500, None, "default", False),
}


@pytest.mark.parametrize("name", TIERS)
def test_tiers(name: str) -> None:
    tier = load_profile(name)
    (cloud, instance), *numbers = TIERS[name]
    assert tier.stands_for == {"cloud": cloud, "instance": instance}
    assert numbers == [
        tier.rate, tier.sustained, tier.within_zone, tier.mtu, tier.vcpus, tier.offloads, tier.ingress_metered,
    ]  # fmt: skip
    assert tier.between_zones == {"AWS": AWS_PAIRS, "Azure": AZURE_PAIRS}.get(cloud, {})
    assert (tier.queue, tier.jitter, tier.loss, tier.quota) == (0.02, 0, 0, None)
    assert not tier.is_none


@pytest.mark.parametrize("name", ["azure-a0", "azure-a1", "azure-a2", "azure-a3"])
def test_a_documented_cap_is_the_rate_and_latency_is_twice_the_published_one(name: str) -> None:
    figures = load_profile(name).figures
    assert (figures["rate"].confidence, figures["latency.within_zone"].confidence) == (
        "documented",
        "derived",
    )
    assert "schaaf-2015" in figures["latency.within_zone"].source


@pytest.mark.parametrize(
    ("name", "mtu", "published"),
    [
        ("azure-d1", 1500, 450.4e6),
        ("azure-d2", 1500, 936e6),
        ("azure-a8", 1500, 2.48e9),
        ("aws-t2.medium", 9001, 964_689_920),
        ("aws-m4.xlarge", 1500, 875e6),  # through the public address
        ("aws-m4.large", 9001, 445e6),
        ("digitalocean", 1500, 942e6),
    ],
)
def test_a_rate_from_a_measurement_gives_the_goodput_that_was_measured(
    name: str, mtu: int, published: float
) -> None:
    tier = load_profile(name)
    assert tier.figures["rate"].confidence == "derived"
    goodput = tier.rate * (mtu - 52) / (mtu + 14 + tier.overhead)
    assert goodput == pytest.approx(published, rel=0.01)


@pytest.mark.parametrize(("name", "bucket"), [("aws-t2.small", 31.76e9), ("aws-t2.medium", 26.14e9)])
def test_a_full_bucket_lasts_five_minutes(name: str, bucket: float) -> None:
    tier = load_profile(name)
    assert tier.bucket == bucket
    assert bucket * 8 / (tier.rate - tier.sustained) == pytest.approx(300, rel=0.001)


def test_a_throttled_tier_holds_what_its_tier_comes_down_to() -> None:
    tier, throttled = load_profile("aws-t2.small"), load_profile("aws-t2.small-throttled")
    assert (throttled.rate, throttled.sustained, throttled.quota) == (tier.sustained, None, 0.2)
    assert throttled.segmented
    assert throttled.stands_for != tier.stands_for  # nothing was published of it


def test_the_baseline_is_uncapped_and_has_ethernets_mtu() -> None:
    tier = load_profile("datacentre")
    assert (tier.stands_for, tier.rate, tier.mtu, tier.rtt("a", "b")) == (None, None, 1500, None)
    assert not tier.is_none


def test_a_tier_is_spelled_as_its_published_numbers_are() -> None:
    with (ROOT / "db" / "published.csv").open(encoding="utf-8", newline="") as file:
        published = {(row["cloud"], row["instance"] or None) for row in csv.DictReader(file)}
    tiers = {place for place, *_ in TIERS.values()}
    assert published - tiers == set()
    assert tiers - published == {("AWS", "m4.large"), ("Packet", None)}


def test_the_clouds_words_and_a_price_with_its_date() -> None:
    tier = load_profile("aws-t2.small")
    assert (tier.wording.value, tier.wording.confidence) == ("Low to Moderate", "published")
    assert {name: tier.price[name] for name in ("value", "currency", "per", "date")} == {
        "value": 0.026,
        "currency": "USD",
        "per": "hour",
        "date": "2014-07",
    }
    assert load_profile("aws-m4.xlarge").wording.value == "High"
    assert (load_profile("none").wording, load_profile("none").price) == (None, None)


def test_none_holds_nothing_back() -> None:
    none = load_profile("none")
    assert none.is_none
    assert none.stands_for is None
    assert (none.rate, none.mtu, none.quota, none.rtt("a", "a"), none.rtt("a", "b")) == (None,) * 5


def test_a_tier_with_everything_reads_into_base_units() -> None:
    tier = read_profile(RIGHT / "profile.yml")
    assert (tier.rate, tier.sustained, tier.bucket, tier.burst) == (972e6, 125e6, 500e6, 972e3)
    assert (tier.mtu, tier.vcpus, tier.quota, tier.loss) == (9001, 1, 0.2, 0.001)
    assert tier.between_zones == {("a", "b"): 0.00082}
    assert (tier.rtt("a", "a"), tier.rtt("a", "b"), tier.rtt("b", "a")) == (0.00035, 0.00082, 0.00082)
    assert tier.rtt("a", "c") is None


@pytest.mark.parametrize(
    ("rate", "mtu", "burst"),
    [
        (100e6, 1500, 100_000),  # 8 ms at the rate
        (5e6, 1500, 5000),
        (5e6, 9001, 18_030),  # two frames: 8 ms would drop every packet
        (972e6, 9001, 972_000),
    ],
)
def test_burst(rate: float, mtu: int, burst: int) -> None:
    assert replace(load_profile("azure-a1"), rate=rate).burst_bytes(mtu) == burst


def test_a_stated_burst_counts() -> None:
    assert read_profile(RIGHT / "profile.yml").burst_bytes(9001) == 972_000


@pytest.mark.parametrize("name", names_in(PROFILES))
def test_every_profile_in_the_folder_is_right_and_fits_every_cluster(name: str) -> None:
    profile = load_profile(name)
    for cluster in ("pair", "pair-zones", "three-zones"):
        check_zones(profile, load_cluster(cluster))
    assert {f.confidence for f in profile.figures.values()} <= {
        "published", "documented", "measured", "derived", "estimate",
    }  # fmt: skip


def test_any_stands_for_every_other_pair(tmp_path: Path) -> None:
    text = (RIGHT / "profile.yml").read_text().replace("    a-b:", "    any:")
    path = tmp_path / "tier.yml"
    path.write_text(text)
    tier = read_profile(path)
    assert (tier.rtt("a", "b"), tier.rtt("c", "b"), tier.rtt("c", "c")) == (0.00082, 0.00082, 0.00035)
    check_zones(tier, read_cluster(RIGHT / "cluster.yml"))


def test_the_example_in_the_docs_is_right_and_its_table_names_every_field(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "adding-a-tier.md").read_text()
    path = tmp_path / "aws-t2.small.yml"
    path.write_text(page.split("```yaml\n")[1].split("```")[0])
    tier = read_profile(path)
    assert (tier.rate, tier.sustained, tier.bucket, tier.mtu, tier.quota) == (972e6, 125e6, 4e9, 9001, 0.2)
    fields = set(json.loads((PROFILES / "profile.schema.json").read_text())["properties"])
    table = page.split("## Fields")[1].split("## ")[0]
    assert {name.split(".")[0] for name in re.findall(r"`([a-z_.]+)`", table)} - NO_FIELDS == fields


NO_FIELDS = {"value", "null", "any", "segmented", "default", "a", "currency", "per", "date", "source"}


def test_digest_follows_the_numbers() -> None:
    digests = {load_profile(name).digest for name in names_in(PROFILES)}
    assert len(digests) == len(names_in(PROFILES))


@pytest.mark.parametrize(
    ("offloads", "segmented", "tunnels"),
    [("segmented", True, True), ("no-tunnel-offload", False, True), ("default", False, False)],
)
def test_what_is_cut_before_it_is_counted(offloads: str, segmented: bool, tunnels: bool) -> None:
    tier = replace(load_profile("none"), offloads=offloads)
    assert (tier.segmented, tier.tunnels_segmented) == (segmented, tunnels)
    assert tier.is_none is not tunnels


def test_a_number_of_vcpus_is_something_to_hold() -> None:
    assert not replace(load_profile("none"), vcpus=1).is_none


def test_figures_stand_in_the_order_of_the_document() -> None:
    assert list(load_profile("aws-t2.small").figures) == [
        "rate", "sustained", "bucket", "queue", "latency.within_zone", "latency.between_zones.a-b",
        "latency.between_zones.a-c", "latency.between_zones.any", "jitter", "loss", "mtu", "vcpus",
        "ingress_metered",
    ]  # fmt: skip


def test_units() -> None:
    assert (unit_of("rate"), unit_of("latency.between_zones.any"), unit_of("loss")) == ("bit/s", "s", None)


def test_a_variation_is_another_profile() -> None:
    tier = load_profile("aws-t2.small")
    small = varied(tier, "bucket/1000", bucket=tier.bucket / 1000)
    assert (small.name, small.bucket, small.sustained) == ("aws-t2.small bucket/1000", 31.76e6, 125e6)
    assert re.fullmatch(r"[0-9a-f]{64}", small.digest)
    others = [
        varied(tier, "bucket/1000", bucket=tier.bucket / 1000 + 1),
        varied(tier, "bucket/1k", bucket=tier.bucket / 1000),
        varied(load_profile("aws-t2.medium"), "bucket/1000", bucket=tier.bucket / 1000),
        tier,
    ]
    assert small.digest not in {other.digest for other in others}
    assert small.digest == varied(tier, "bucket/1000", bucket=tier.bucket / 1000).digest


def test_a_variation_may_change_several_fields_and_none_that_follow_from_them() -> None:
    tier = varied(load_profile("azure-a1"), "mtu=9001", mtu=9001, between_zones={("a", "b"): 0.005})
    assert (tier.mtu, tier.rtt("b", "a"), tier.rate) == (9001, 0.005, 100e6)
    with pytest.raises(ValueError, match="digest"):
        varied(tier, "x", digest="0")
    with pytest.raises(TypeError):
        varied(tier, "x", mut=1500)


def test_a_profile_may_name_zones_of_another_cluster_only(tmp_path: Path) -> None:
    text = (RIGHT / "profile.yml").read_text()
    path = tmp_path / "tier.yml"
    path.write_text(
        text.replace(
            "    a-b:", "    a-c: {value: 1.5 ms, source: made up for a test, confidence: estimate}\n    a-b:"
        )
    )
    check_zones(read_profile(path), load_cluster("pair-zones"))
    check_zones(read_profile(path), load_cluster("pair"))
    with pytest.raises(UserError, match=r"between_zones.b-c: is missing: three-zones has the zones a, b, c"):
        check_zones(read_profile(path), load_cluster("three-zones"))
    path.write_text(text.replace("    a-b:", "    a-z:"))
    with pytest.raises(
        UserError, match=r'must name zones of pair or of another cluster: a, b, c \(found: "z"\)'
    ):
        check_zones(read_profile(path), load_cluster("pair"))
