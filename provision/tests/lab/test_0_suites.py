"""Every suite from the command line to its table, scaled down, in system containers; one of them for each commit."""

from __future__ import annotations

import json

import pytest

from overlaylab.core.documents import names_in
from overlaylab.core.paths import SUITES
from overlaylab.run.plan import LOCAL
from overlaylab.specs.suite import load_suite

SCALE = 0.1


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.turn("suites", rare=True)) for n in names_in(SUITES)]
)
def test_a_suite_gives_what_it_says(containers, lab_in, name: str) -> None:
    suite = load_suite(name)
    # Bare frames, so that datagrams are whole; suites that take the bridge along have both.
    lab = lab_in(
        PROVIDER="lxc", CLUSTER="pair", SUITE=name, BLOCKS="1", SCALE=str(SCALE), FRESH="0", PROFILE="none"
    )
    output = lab.run("lab:macvlan", seconds=1200)
    assert f"SCALE={SCALE}: durations and counts are {SCALE} times the suite's, whole" in output
    variants = {"host", "macvlan", *(word.partition("/")[0] for word in suite.also)}
    planned = lab.query("SELECT overlay, benchmark, placement, status, reason FROM trial")
    assert {overlay for overlay, *_ in planned} == variants
    assert {(benchmark, placement) for _, benchmark, placement, *_ in planned} == {
        (b.name, b.placement) for b in suite.benchmarks
    }
    # On a busy machine a socket may drop a datagram, for whose answer netperf then waits in vain.
    wrong = [row for row in planned if row[3] != "ok" and not row[1].startswith("udp-rr")]
    assert wrong == []
    assert lab.query("SELECT DISTINCT scale FROM result") == [(SCALE,)]
    measured = {
        (benchmark, metric)
        for benchmark, metric in lab.query(
            "SELECT DISTINCT benchmark, metric FROM result WHERE status = 'ok'"
        )
    }
    for b in suite.benchmarks:
        found = {metric for benchmark, metric in measured if benchmark == b.name} - {None}
        assert found or b.parameters.get("test") == "conf"
        if b.tool in ("iperf3", "iperf"):
            assert {"goodput", "machine_cpu_per_gigabyte"} <= found
    sizes = lab.query("SELECT DISTINCT argv FROM trial WHERE benchmark LIKE '%-path' AND status = 'ok'")
    for (argv,) in sizes:
        words = json.loads(argv)
        assert words[words.index("--length") + 1] == str(9001 - 28)
    if any(b.placement == LOCAL for b in suite.benchmarks):
        (wire,) = lab.query(
            "SELECT min(json_extract(e.observed, '$.marked') = 0) FROM evidence AS e JOIN trial AS t"
            " USING (trial_id) WHERE t.placement = 'local' AND e.kind = 'wire'"
        )
        assert wire == (1,)
