"""What proving every profile consists of: steps, their variations, buckets and sockets."""

import pytest

from overlaylab.bench import profiles_plan
from overlaylab.bench.profiles_judge import Cap
from overlaylab.bench.profiles_probe import streams_for
from overlaylab.specs.profile import load_profile

A0, A1, T2, NONE = (load_profile(name) for name in ("azure-a0", "azure-a1", "aws-t2.small", "none"))


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path / "cache"))


def test_the_plan_has_each_tier_before_its_variations_and_variations_on_the_pair_only() -> None:
    steps = profiles_plan.plan([A1, T2, NONE], ["pair", "three-zones"])
    assert [(s.cluster, s.profile.name, s.kind) for s in steps] == [
        ("pair", "azure-a1", "tier"),
        ("pair", "azure-a1 mtu=9001", "mtu"),
        ("pair", "azure-a1 loss=1%", "loss"),
        ("pair", "azure-a1 loss=0.1%", "loss"),
        ("pair", "azure-a1 jitter=0.3ms rtt=2ms", "jitter"),
        ("pair", "aws-t2.small", "tier"),
        ("pair", "aws-t2.small mtu=1500", "mtu"),
        ("pair", "aws-t2.small bucket/30", "two-rates"),
        ("pair", "none", "tier"),
        ("three-zones", "azure-a1", "tier"),
        ("three-zones", "aws-t2.small", "tier"),
        ("three-zones", "none", "tier"),
    ]
    assert [s.profile.mtu for s in steps[:2]] == [1500, 9001]
    assert len({s.profile.digest for s in steps[:9]}) == 9
    assert steps[0].seconds() == 75.0 and steps[9].seconds() == 110.0


def test_every_capped_tier_is_checked_at_both_mtus() -> None:
    steps = profiles_plan.plan([A0, T2, NONE], ["pair", "three-zones"], ["mtu"])
    assert [(s.cluster, s.profile.name, s.profile.mtu) for s in steps] == [
        ("pair", "azure-a0 mtu=9001", 9001),
        ("pair", "aws-t2.small mtu=1500", 1500),
    ]


def test_a_bucket_is_scaled_to_empty_in_ten_seconds_at_what_is_carried() -> None:
    full = profiles_plan.with_bucket(T2, T2.rate)
    assert full.bucket == pytest.approx(T2.bucket / 30) and full.name == "aws-t2.small bucket/30"
    assert full.bucket * 8 / (T2.rate - T2.sustained) == pytest.approx(10, rel=0.02)
    slow = profiles_plan.with_bucket(T2, 600e6)
    assert slow.bucket * 8 / (600e6 - T2.sustained) == pytest.approx(10, rel=0.02)


def test_udp_takes_as_many_sockets_as_fill_the_queue() -> None:
    assert streams_for(Cap(5e6, 5000, 12_500, 1500)) == 2
    assert streams_for(Cap(100e6, 100_000, 250_000, 1500)) == 6
