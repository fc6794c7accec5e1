"""The report: whole without a network, every repetition in it, and nothing of anybody's text in force."""

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from whole_page import ATTRIBUTES, HOSTILE, TAGS, Seen, spoil

from overlaylab.core.model import Variant
from overlaylab.report.page import LONGEST, Cells, group_page, page, write
from overlaylab.results import tiers
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


def written(store, *run_ids, group=None):
    out = io.StringIO()
    write(store, run_ids, out, group, headers=lambda variant: 50)
    return out.getvalue()


def test_it_loads_nothing_and_runs_nothing(store):
    text = written(store, maker.fill(store))
    seen = Seen(text)
    assert seen.open == []
    assert set(seen.tags) <= TAGS and seen.attributes <= ATTRIBUTES
    assert (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline';"
        " base-uri 'none'; form-action 'none'\">"
    ) in text
    assert not re.search(r"script|https?:|url\(|@import|src=|href=(?!\"#p\d+(t\d+)?\")", text)
    assert text.index("<meta charset") < text.index("<title>")


def test_tables_are_those_of_the_terminal(store):
    seen = Seen(written(store, maker.fill(store)))
    cells = seen.of("td")
    assert cells[:7] == ["host", "6", "95.7", "95.5–95.8", "1", "1", "1"]
    assert seen.of("th")[:4] == ["overlay mode", "n", "median", "min–max"]
    assert seen.of("h3")[0].startswith("tcp-goodput: goodput, Mbit/s, higher is better (iperf3 0.0)")


def test_every_repetition_is_a_dot_that_says_its_value(store):
    two = [{**maker.LAT, "parameters": {"test": "tcp_lat", "duration": d}} for d in (2.0, 3.0)]
    run_id = maker.fill(store, replace(maker.RUN, blocks=3), benchmarks=two)
    seen = Seen(written(store, run_id))
    # Two trials of one name in each of three blocks are repetitions of three variants; two have ratios, one a block.
    dots = [words for words in seen.of("title") if words.startswith("block ")]
    assert len(dots) == 2 * 3 * 3 + 2 * 3
    dots = [words for words in dots if words.endswith("µs")]
    values = [row["value"] for row in store.db.execute("SELECT value FROM trial_summary")]
    assert sorted(float(words.split()[2]) for words in dots) == sorted(round(v * 1e6) for v in values)
    assert {words.split(":")[0] for words in dots} == {"block 1", "block 2", "block 3"}


def test_warnings_and_provenance_are_all_there(store):
    failed = {(1, maker.HOST, "tcp-goodput"): maker.failed("no server")}
    run = replace(maker.RUN, scale=2.0, arguments={"profile": "azure-a1", "blocks": 6})
    run_id = maker.fill(store, run, results=failed)
    store.void_trials(store.trial_ids(run_id)[:1], "a neighbour")
    seen = Seen(written(store, run_id))
    said = "\n".join(seen.of("li") + seen.of("p"))
    for words in (
        "1 trial failed, not in the table:",
        "1 × no server",
        "1 × a neighbour",
        "Profile azure-a1, sent by one node and counted at the other:",
        "goodput node1 to node2: 95.61 Mbit/s, asked 95.64 ± 0.956: ok",
        "Evidence that held: status 72 of 72.",
        "Emulated CPU: where a ratio lies below",
        "SCALE=2",
    ):
        assert words in said, words
    facts = dict(page(store, run_id).provenance)
    assert facts["overlaylab"] == ("0.1.0+a9ab47058231",)
    assert (facts["system"], facts["node kit"]) == (("debian",), ("k" * 64,))
    assert facts["machine"] == ("2 cores, test machine",)
    assert facts["accelerator"] == ("tcg: emulated CPU (TCG), no KVM",)
    assert facts["profile"] == ("azure-a1, stands for Azure A1", "p" * 64)
    assert facts["suite"] == ("quick", "s" * 64)
    assert facts["seed of the order"] == ("7",)
    assert facts["nodes"] == ("node1, zone a", "node2, zone a")
    assert facts["tools"] == ("iperf3: 0.0", "qperf: 0.0") or facts["tools"] == ("qperf: 0.0", "iperf3: 0.0")
    assert facts["versions of overlays"] == ("weave 2.6.5",)
    assert set(facts["MTU of overlays, bytes"]) == {"weave fastdp: 1376", "weave sleeve: 1438"}
    assert facts["MTU of the underlay, bytes"] == ("1500",)
    assert facts["arguments"] == ("blocks=6", "profile=azure-a1")
    assert facts["roles"] == ("host " + "h" * 64, "weave " + "w" * 64)
    shown = set(seen.of("dd"))
    assert {value for values in facts.values() for value in values} <= shown


def test_a_run_without_a_value_says_so(store):
    assert "No trial has given a value yet." in Seen(written(store, maker.fill(store, until=0))).of("p")
    run_id = maker.fill(store, replace(maker.RUN, blocks=1))
    store.void_trials(store.trial_ids(run_id), "a neighbour")
    assert "No trial has a value that holds." in Seen(written(store, run_id)).of("p")


def test_arguments_that_nobody_gave_are_left_out(store):
    run = replace(maker.RUN, blocks=1, arguments={"fresh": None, "blocks": 1})
    assert dict(page(store, maker.fill(store, run)).provenance)["arguments"] == ("blocks=1",)


def test_columns_stand_as_in_the_terminal(store):
    (grid,) = page(store, maker.fill(store)).sections[0].grids
    assert grid.headers[5] == "verdict"
    sides = [str(grid.side(column)) for column in range(len(grid.headers))]
    assert sides == [' class="left"', "", "", "", "", ' class="left"', "", ""][: len(sides)]


def test_many_tables_have_a_list_of_them(store):
    many = [{**maker.LAT, "benchmark": f"lat-{number}"} for number in range(1, 13)]
    few = written(store, maker.fill(store, replace(maker.RUN, blocks=1)))
    assert "<nav>" not in few
    text = written(store, maker.fill(store, replace(maker.RUN, blocks=1), benchmarks=many))
    names = [
        f"lat-{number}: latency_one_way" for number in range(1, 13)
    ]  # not lat-1, lat-10, lat-11, lat-12, lat-2
    assert re.findall(r'<li><a href="#p1t\d+">(.*?)</a></li>', text) == names
    assert set(re.findall(r'href="#(.*?)"', text)) <= set(re.findall(r' id="(.*?)"', text))


def test_a_name_of_any_length_may_be_broken(store):
    cells = Cells(("overlay mode", "n"), (("x" * 41, "1"), ("host", "1")), frozenset({0}))
    assert (str(cells.side(0)), str(cells.side(1))) == (' class="left long"', "")


def test_very_many_overlays_stand_in_several_tables(store):
    overlays = tuple(Variant("weave", f"m{number}") for number in range(7))
    run = replace(maker.RUN, variants=(maker.HOST, *overlays), blocks=1,
                  arguments={"group": "g-1", "profiles": ["azure-a1"]})  # fmt: skip
    for table in (maker.MTU, maker.GOODPUT, maker.LATENCY):
        for overlay in overlays:
            table.setdefault(overlay, 1500 if table is maker.MTU else 1e-3)
    try:
        maker.fill(store, run)
        found = group_page(store, tiers.find_group(store, "newest"), lambda variant: 50)
    finally:
        for table in (maker.MTU, maker.GOODPUT, maker.LATENCY):
            for overlay in overlays:
                del table[overlay]
    heads = [grid.headers[-4:] for grid in found.sections[0].grids]
    assert [len(grid.headers) for grid in found.sections[0].grids] == [7, 6]
    assert heads[0] == ("weave m0", "weave m1", "weave m2", "weave m3")


def test_several_runs_stand_one_after_the_other(store):
    ids = [maker.fill(store, replace(maker.RUN, blocks=1)) for _ in range(2)]
    seen = Seen(written(store, *ids))
    assert seen.of("h1") == ["overlaylab: 2 runs"]
    assert [words.split()[1] for words in seen.of("p") if words.startswith("Run ")] == ids


def test_a_group_has_the_table_of_all_its_tiers_first(store):
    ids = []
    for profile in ("azure-a0", "azure-a1"):
        arguments = {"group": "g-1", "profiles": ["azure-a0", "azure-a1"]}
        ids.append(maker.fill(store, replace(maker.RUN, profile=profile, blocks=1, arguments=arguments)))
    seen = Seen(written(store, *ids, group=tiers.find_group(store, "newest")))
    assert seen.of("h1") == ["overlaylab: 2 runs"]
    assert seen.of("h2")[:2] == ["Contents", "quick on pair, 2 tiers"] and len(seen.of("h2")) == 4
    assert seen.of("th")[:4] == ["tier", "host", "weave fastdp", "weave sleeve"]
    assert seen.of("td")[:5] == ["azure-a0", "95.6", "ratio", "0.960", "0.116"]


# -- text of anybody's ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_text_of_the_database_is_in_force(store, kind):
    failed = {(1, maker.SLEEVE, "tcp-goodput"): maker.failed("no server")}
    maker.fill(store, replace(maker.RUN, blocks=2), results=failed)
    taken = spoil(store.db, HOSTILE[kind])
    refused = {"_run.state", "_run.origin", "_run.accelerator", "_trial.placement", "_trial.status"}
    refused |= {"metric.unit", "metric.better", "_profile_check.verdict", "_trial_summary.basis"}
    assert not refused & taken
    assert {
        *(
            "_run.machine",
            "_run.suite",
            "_run.arguments",
            "_run.stands_for",
            "_run.role_digests",
            "_run.image",
        ),
        *("_variant.overlay", "_variant.mode", "_node.name", "_node.zone", "_trial.benchmark", "_trial.tool"),
        *(
            "_trial.tool_version",
            "_trial.overlay_version",
            "_trial.reason",
            "_trial.parameters",
            "_run.run_id",
        ),
        *(
            "_evidence.kind",
            "_profile_check.name",
            "_profile_check.reason",
            "metric.name",
            "_run.profile_digest",
        ),
    } <= taken
    text = written(store, store.find_run(None))
    seen = Seen(text)
    assert seen.open == [] and set(seen.tags) <= TAGS and seen.attributes <= ATTRIBUTES
    assert "<script" not in text and "</script" not in text and "49" not in "".join(seen.of("dt"))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200f\u2028]", text)
    assert len(text) < 1_000_000 and "A" * (LONGEST + 1) not in text
    told = "".join(seen.of("dd"))
    if kind == "a long text":
        assert f"({(1 << 16) + len('2 cores, test machine'):,} characters)" in told
    elif kind == "right to left":
        assert r"\u202etxt.exe\u202c\u2066" in told
    elif kind == "controls":
        assert r"a\u0000b\u001b[31mc\u007f\u2028" in told
    else:
        assert HOSTILE[kind] in told.replace("\n", "")
