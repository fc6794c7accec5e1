"""Files that are known, and not read here: their names, so that a refusal says what was given."""

from __future__ import annotations

import re

_TEXTS = (
    (re.compile(r"\[ *\d+\] +[\d.]+- *[\d.]+ sec +", re.MULTILINE), "the text of iperf, which rounds"),
    (
        re.compile(r"^iperf 3\.|\[ *ID\] Interval", re.MULTILINE),
        "the text of iperf3, which rounds: iperf3 --json",
    ),
    (re.compile(r"^MIGRATED |^\w+=[\d.]+\nTHROUGHPUT_UNITS=", re.MULTILINE), "the text of netperf"),
    (re.compile(r"^sockperf: ", re.MULTILINE), "the text of sockperf"),
    (re.compile(r"^\d+ packets transmitted, ", re.MULTILINE), "the text of ping"),
    (re.compile(r"^(tcp|udp)_(bw|lat):$", re.MULTILINE), "the text of qperf"),
    (
        re.compile(r"\A\W*Driver,Profile,Same node,"),
        "k8s-netperf's CSV, which lacks times: k8s-netperf --json",
    ),
    (re.compile(r'"tputMetric":'), "k8s-netperf's JSON among other lines, or cut short"),
    (
        re.compile(r'"metric": .*"sample_uri": '),
        "PerfKit Benchmarker's samples among other lines, or cut short",
    ),
    (re.compile(r"^ +generator: \"?knb", re.MULTILINE), "knb's YAML: knb --from-data FILE --output json"),
    (re.compile(r'"generator": "knb"'), "knb's JSON with a value missing: a test of it failed"),
    (
        re.compile(r"^=+\n *Benchmark Results|^ *Generator *: knb", re.MULTILINE),
        "knb's text: knb --output json",
    ),
    (
        re.compile(r"\A[\w./-]{1,100}\x00+[0-7]{7}\x00"),
        "a tar archive; knb's becomes JSON by knb --from-data FILE --output json",
    ),
)


def of_text(text: str) -> str | None:
    """What a text is that is no JSON; None where it is unknown."""
    return next((name for pattern, name in _TEXTS if pattern.search(text)), None)
