"""Profiles. Wrong ones: test_documents_golden.py."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from overlaylab.cluster import load_cluster, read_cluster
from overlaylab.documents import names_in
from overlaylab.paths import PROFILES, ROOT
from overlaylab.profile import check_zones, load_profile, read_profile

RIGHT = Path(__file__).parents[1] / "golden" / "right"


@pytest.mark.parametrize(
    ("name", "rate", "rtt"),
    [
        ("azure-a0", 5e6, 0.000578),
        ("azure-a1", 100e6, 0.000966),
        ("azure-a2", 200e6, 0.000852),
        ("azure-a3", 400e6, 0.00093),
    ],
)
def test_azure_tiers_have_the_documented_caps_and_twice_the_published_latency(name, rate, rtt) -> None:
    profile = load_profile(name)
    assert profile.stands_for == {"cloud": "Azure", "instance": name.removeprefix("azure-").upper()}
    assert (profile.rate, profile.within_zone, profile.mtu) == (rate, rtt, 1500)
    assert profile.figures["rate"].confidence == "documented"
    assert profile.figures["latency.within_zone"].confidence == "derived"
    assert "schaaf-2015" in profile.figures["latency.within_zone"].source
    assert (profile.queue, profile.jitter, profile.loss) == (0.02, 0, 0)
    assert profile.segmented and not profile.ingress_metered and not profile.is_none


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
def test_every_profile_in_the_folder_is_right_and_fits_the_smallest_cluster(name: str) -> None:
    profile = load_profile(name)
    check_zones(profile, load_cluster("pair"))
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


NO_FIELDS = {"value", "null", "any", "segmented", "default", "a"}


def test_digest_follows_the_numbers() -> None:
    digests = {load_profile(name).digest for name in names_in(PROFILES)}
    assert len(digests) == len(names_in(PROFILES))
