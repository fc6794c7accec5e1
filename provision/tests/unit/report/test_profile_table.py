"""Profiles as people read them."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from overlaylab.core.documents import names_in
from overlaylab.core.paths import PROFILES
from overlaylab.core.quantities import quantity, readable
from overlaylab.report import profile_table
from overlaylab.specs.profile import Figure, load_profile


def printed(table: Table, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (972e6, "bit/s", "972 Mbit/s"),
        (2593e6, "bit/s", "2593 Mbit/s"),
        (8000.0, "bit/s", "8000 bit/s"),
        (0.000966, "s", "0.966 ms"),
        (0.0001884, "s", "0.1884 ms"),
        (0.0, "s", "0 ms"),
        (1.5, "s", "1.5 s"),
        (1500.0, "bytes", "1500 bytes"),
        (972_000.0, "bytes", "972000 bytes"),
        (31.76e9, "bytes", "31.76 GB"),
        (500e6, "bytes", "500 MB"),
    ],
)
def test_a_quantity_is_written_as_people_write_it_and_reads_back(value: float, unit: str, text: str) -> None:
    assert readable(value, unit) == text
    assert quantity(text, unit) == value


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rate", None, "uncapped"),
        ("latency.between_zones.a-b", 0.0005, "0.5 ms"),
        ("loss", 0.001, "0.1 %"),
        ("quota", 0.2, "20 %"),
        ("vcpus", 2, "2"),
        ("ingress_metered", False, "no"),
    ],
)
def test_a_figure_in_words(name: str, value: float | None, text: str) -> None:
    assert profile_table.in_words(name, Figure(value, "made up for a test", "estimate")) == text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_every_tier_has_one_row_at_usual_widths(width: int) -> None:
    lines = printed(profile_table.listing(map(load_profile, names_in(PROFILES))), width)
    assert max(map(len, lines)) <= width
    firsts = [words[0] for words in map(str.split, lines) if words]
    assert [word for word in firsts if word in names_in(PROFILES)] == list(names_in(PROFILES))


@pytest.mark.parametrize(
    ("name", "row", "below"),
    [
        ("aws-t2.small", "972, 125 0.310 0.5–1.5 9001 1 no tunnels 5/13", "AWS t2.small, “Low to Moderate”"),
        (
            "aws-t2.small-throttled",
            "125 0.310 0.5–1.5 9001 1 off 5/12",
            "AWS t2.small, used up, “Low to Moderate” 20 %",
        ),
        ("azure-a3", "400 0.930 2 1500 4 off 4/9", "Azure A3, “High”"),
        ("digitalocean", "984.4 – – 1500 – no tunnels 4/6", "DigitalOcean"),
        ("none", "uncapped – – – – as is 0/2", ""),
    ],
)
def test_a_row(name: str, row: str, below: str) -> None:
    lines = [" ".join(line.split()) for line in printed(profile_table.listing([load_profile(name)]), 120)]
    at = lines.index(f"{name} {row}")
    assert lines[at + 1] == below


def test_a_tier_with_its_words_price_and_sources() -> None:
    tier = load_profile("aws-t2.small")
    lines = [" ".join(line.split()) for line in printed(profile_table.details(tier), 320)]
    assert "queue 20 ms estimate " + tier.figures["queue"].source in lines
    assert "bucket 31.76 GB derived " + tier.figures["bucket"].source in lines
    stands, words, price, offloads, rtt = profile_table.remarks(tier)
    assert stands == "stands for: AWS t2.small"
    assert words.startswith('the cloud\'s words: "Low to Moderate" (published: EC2')
    assert price.startswith("price: 0.026 USD per hour, 2014-07 (https://")
    assert offloads == "offloads: no-tunnel-offload"
    assert rtt == profile_table.SPARSE
    assert list(profile_table.remarks(load_profile("none"))) == ["offloads: default"]


def test_an_rtt_is_said_to_be_that_of_dense_traffic() -> None:
    assert profile_table.SPARSE in profile_table.LEGEND
    assert profile_table.SPARSE in tuple(profile_table.remarks(load_profile("azure-a1")))
    assert profile_table.SPARSE not in tuple(profile_table.remarks(load_profile("none")))
