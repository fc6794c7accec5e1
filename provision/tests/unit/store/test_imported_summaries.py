"""Summaries of knb, k8s-netperf and PerfKit Benchmarker, in the forms of their repositories."""

import json

import pytest
from lab_imports import BARE, FIXTURES, changed, written

from overlaylab.core.errors import UserError
from overlaylab.core.model import Sample
from overlaylab.store import imported
from overlaylab.store.imported import About
from overlaylab.store.store import Store

KNB, K8S, PKB = (
    FIXTURES / "knb" / "1.5.0-all.json",
    FIXTURES / "k8s-netperf" / "0.1.32-several.json",
    FIXTURES / "perfkitbenchmarker" / "1.12.0-several.json",
)


def trials(path):
    return [(one.benchmark, list(one.samples)) for one in imported.read(path).measured.trials]


def test_knb_has_a_rate_for_each_test():
    assert trials(KNB) == [
        ("knb pod2pod tcp", [Sample("goodput", 93.4e6)]),
        ("knb pod2pod udp", [Sample("goodput", 94.1e6)]),
        ("knb pod2svc tcp", [Sample("goodput", 92e6)]),
        ("knb pod2svc udp", [Sample("goodput", 93.9e6)]),
    ]
    measured = imported.read(KNB).measured
    assert (measured.tool, measured.tool_version, measured.machine) == (
        "knb",
        "1.5.0",
        "6.1.0-28-amd64 AMD EPYC",
    )
    assert measured.started_at == "2026-11-20T13:26:04.000Z"
    assert measured.about == {"k8s-version": "v1.31.2", "mtu": "1450", "title": "knb-1234"}
    # Of four tests, CPU and memory of both ends; and the idle node.
    assert len(measured.left_out) == 17


def test_k8s_netperf_has_tcps_rates_and_single_requests():
    assert trials(K8S) == [
        ("netperf TCP_STREAM 1024 B", [Sample("goodput", 93.43e6), Sample("retransmits", 164 / 3)]),
        (
            "netperf TCP_STREAM 1024 B host network",
            [Sample("goodput", 95.6e6)],
        ),  # 0 may not have been measured
        ("iperf3 TCP_STREAM 8192 B 2 streams", [Sample("goodput", 92.9e6), Sample("retransmits", 15)]),
        (
            "netperf TCP_RR 1024 B service",
            [Sample("transaction_rate", 1496.99), Sample("latency_rtt", 3376 / 3 / 1e6, quantile=0.99)],
        ),
        (
            "netperf TCP_CRR 1024 B",
            [Sample("transaction_rate", 343.35), Sample("latency_transaction", 0.030029, quantile=0.99)],
        ),
        ("uperf TCP_RR 1024 B", [Sample("transaction_rate", 1400.25)]),
    ]
    measured = imported.read(K8S).measured
    assert (measured.tool, measured.tool_version) == ("k8s-netperf", "v0.1.32")
    assert measured.started_at == "2026-11-20T13:26:04.123Z"
    assert [one.parameters["counted"] for one in measured.trials[:3]] == ["sender", "sender", "receiver"]
    assert measured.trials[0].parameters["samples"] == 3 and measured.trials[0].duration == 10
    assert measured.left_out == (
        "iperf3 UDP_STREAM 1024 B",
        "netperf TCP_RR 1024 B 2 in a burst",
        "uperf TCP_STREAM 1024 B",
    )


def test_perfkit_benchmarkers_samples_become_trials():
    rtt = [Sample("latency_rtt", 683e-6, quantile=0.5), Sample("latency_rtt", 735e-6, quantile=0.9)]
    found = trials(PKB)
    expected = [
        ("iperf internal 1", [Sample("goodput", 93.4e6)]),
        ("iperf internal 1", [Sample("goodput", 93.1e6)]),
        ("iperf internal 4", [Sample("goodput", 94.2e6)]),
        (
            "netperf TCP_RR internal 1",
            [Sample("transaction_rate", 1405.5), *rtt, Sample("latency_rtt", 841e-6, quantile=0.99)],
        ),
        (
            "netperf TCP_RR internal 1",
            [Sample("transaction_rate", 1475.5), *rtt, Sample("latency_rtt", 911e-6, quantile=0.99)],
        ),
        (
            "netperf TCP_CRR internal",
            [Sample("transaction_rate", 343.35), Sample("latency_transaction", 0.030029, quantile=0.99)],
        ),
        ("netperf TCP_STREAM internal", [Sample("goodput", 93.6e6)]),
        ("ping internal", [Sample("latency_rtt", 0.966e-3)]),
    ]
    assert [name for name, _ in found] == [name for name, _ in expected]
    for (_, one), (_, other) in zip(found, expected, strict=True):
        assert [(s.metric, s.quantile) for s in one] == [(s.metric, s.quantile) for s in other]
        assert [s.value for s in one] == pytest.approx([s.value for s in other])
    measured = imported.read(PKB).measured
    assert (measured.tool, measured.tool_version) == ("perfkitbenchmarker", "v1.12.0-5000-g0000000")
    assert (measured.started_at, measured.machine) == ("2026-11-20T13:27:19.500Z", "2 x86_64 cores")
    assert {"UDP Throughput", "TCP_STREAM_Throughput_1stream", "Max Latency"} < set(measured.left_out)


def test_metadata_may_be_an_object(tmp_path):
    lines = [json.loads(line) for line in PKB.read_text().splitlines()]
    for line in lines:
        del line["labels"]
        line["metadata"] = {"ip_type": "internal", "sending_thread_count": 1}
    whole = "\n".join(map(json.dumps, lines)).encode()
    assert trials(written(tmp_path, whole))[0] == ("iperf internal 1", [Sample("goodput", 93.4e6)])


def test_documents_of_k8s_netperf_may_stand_one_a_line_or_alone(tmp_path):
    documents = json.loads(K8S.read_text())
    assert trials(written(tmp_path, "\n".join(map(json.dumps, documents)).encode())) == trials(K8S)
    assert trials(written(tmp_path, documents[0])) == trials(K8S)[:1]


@pytest.mark.parametrize("path", [KNB, K8S, PKB], ids=["knb", "k8s-netperf", "pkb"])
def test_they_are_stored(tmp_path, path):
    with Store.open(tmp_path / "lab.sqlite") as store:
        (run_id,) = imported.store_all(store, [imported.read(path)], About(*BARE))
        stored = store.db.execute("SELECT count(*) FROM trial WHERE run_id = ?", (run_id,)).fetchone()[0]
    assert stored == len(trials(path))


def line(**other):
    base = {
        "metric": "Throughput",
        "value": 9.5,
        "unit": "Mbits/sec",
        "timestamp": 1795181239.5,
        "test": "iperf",
    }
    return base | other


KNB_JSON, DOC = json.loads(KNB.read_text()), json.loads(K8S.read_text())[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (changed(KNB_JSON, "metadata", "generator", value="x"), "its generator is x, not knb"),
        (changed(KNB_JSON, "data", "pod2pod", "sctp", value={}), "an unknown test knb pod2pod sctp"),
        (changed(KNB_JSON, "data", "pod2pod", "tcp", "bandwidth", value="9"), "bandwidth of knb pod2pod tcp is no number"),
        (changed(KNB_JSON, "data", "pod2pod", "tcp", "bandwidth", value=0), "goodput as 0, which it cannot be"),
        (changed(KNB_JSON, "metadata", "date", value="now"), "knb's date is no time in ISO 8601"),
        (KNB_JSON | {"data": {"idle": KNB_JSON["data"]["idle"]}}, "nothing but an idle node was measured"),
        (KNB.read_bytes().replace(b"93.4", b""), "it is knb's JSON with a value missing"),
        (b"metadata:\n  name: b\n  generator: knb\n", "it is knb's YAML"),
        (b" Name            : x\n Generator       : knb\n", "it is knb's text"),
        (b"./\x00\x000000755\x00", "it is a tar archive; knb's becomes JSON by"),
        ([changed(DOC, "tputMetric", value="KB/s")], "has a rate in KB/s, not in Mb/s or Mbps"),
        ([changed(DOC, "throughput", value=-5)], "goodput as -5e+06, which it cannot be"),
        ([changed(DOC, "timestamp", value=None)], "k8s-netperf's timestamp is no time in ISO 8601"),
        ([changed(DOC, "burst", value="x")], "k8s-netperf gave burst as 'x', which is no number"),
        ([changed(DOC, "profile", value="UDP_STREAM")], "no rate of TCP, and no single requests"),
        ([DOC | {"profile": "TCP_RR", "tputMetric": "OP/s", "ltcyMetric": "ms"}], "a latency in ms, not in usec"),
        (b"Driver,Profile,Same node,Host Network\n", "it is k8s-netperf's CSV"),
        (b"time=2026 level=info\n" + json.dumps([DOC]).encode(), "k8s-netperf's JSON among other lines"),
        (line(unit="MB/s"), "sample Throughput is in MB/s, not in Mbits/sec"),
        (line(value=True), "sample Throughput is no number"),
        (line(timestamp=-1), "timestamp of PerfKit Benchmarker's sample is no time from 1970 to 2100"),
        (line(test="fio"), "hold no TCP goodput and no latency of its benchmarks iperf, netperf and ping"),
        (line(test="netperf", metric="TCP_RR_Latency_p100", unit="us"), "hold no TCP goodput and no latency"),
        (b"INFO x\n" + PKB.read_bytes(), "it is PerfKit Benchmarker's samples among other lines"),
        (PKB.read_bytes()[:-100], "it is PerfKit Benchmarker's samples among other lines, or cut short"),
        ([DOC, 5], "its JSON is no object"),
        ([DOC, {"a": 1}], "its JSON has the keys 'uuid', 'timestamp'"),
    ],
)  # fmt: skip
def test_what_is_none_of_them_is_refused_with_its_name(tmp_path, content, words):
    with pytest.raises(UserError) as refused:
        imported.read(written(tmp_path, content))
    assert words in str(refused.value)
