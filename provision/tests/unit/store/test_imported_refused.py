"""Files of other programs that are broken, foreign or hostile: refused with words, or stored whole."""

import gzip
import json
import random
import re
import sys
from pathlib import Path

import pytest
from lab_imports import BARE, FLENT, IPERF3, TCP, changed, iperf3, written

from overlaylab.core.errors import UserError
from overlaylab.store import imported
from overlaylab.store.imported import About
from overlaylab.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES / "results"))


# What of each tool is no file to import.
TEXTS = {
    "sockperf": FIXTURES / "sockperf/3.7-tcp.out",
    "ping": FIXTURES / "ping/20221126-replies.out",
    "qperf": FIXTURES / "qperf/0.4.11-tcp_bw.out",
    "iperf, which": FIXTURES / "iperf/2.1.8-tcp.out",
    "netperf": FIXTURES / "netperf/2.7.0-tcp_rr.out",
}


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "lab.sqlite") as opened:
        opened.db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        yield opened


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"{}".decode().encode("utf-16"), "it is text in UTF-16, not in UTF-8"),
        (b'{"a": 1,\n"b": "\xe4"}', "its line 2 has the byte 0xe4, which is no UTF-8"),
        (b'{"a": 1,\n"b": "\x00"}', "it has '\\x00\"}' in line 2, which is no JSON"),
        (b'{"a": 1,\n"b": -nan}', "it has '-nan}' in line 2, which is no JSON"),
        (b"<!DOCTYPE html>\n<html>", "it begins with '<!DOCTYPE html>', which is HTML or XML"),
        (b"warning: old kernel\n{}", "it begins with 'warning: old kernel', which is no JSON"),
        *((path.read_bytes(), f"it is the text of {name}") for name, path in TEXTS.items()),
        (json.dumps({"k" * 5000: 1}).encode(), "the keys '" + "k" * 40 + "')"),
        (b"[1]", "its JSON is no object"),
        (b"{}", "its JSON has the keys of no report"),
        (b'{"a": 1, "b": 2}', "its JSON has the keys 'a', 'b'"),
        (b'{"a": NaN}', "NaN is no number"),
        (b"[" * 100_000, "it is nested too deeply"),
        (json.dumps(TCP).encode()[:-40], "it is cut short"),
        (gzip.compress(json.dumps(FLENT).encode())[:-20], "its gzip data are"),
        (b"\x1f\x8b\x08\x00rubbish", "its gzip data are"),
        (changed(TCP, "start", "test_start", "bidir", value=1), "in both directions at once"),
        (changed(TCP, "end", "sum_sent_bidir_reverse", value={}), "in both directions at once"),
        (b'{"start": {}, "end": {"sum_sent": 1, "sum_sent": 2}}', "has the key 'sum_sent' twice in one object"),
        (changed(TCP, "start", "test_start", "protocol", value="SCTP"), "iperf3's protocol is SCTP"),
        (changed(TCP, "start", "test_start", "num_streams", value=0), "num_streams is 0, not 1 to 128"),
        (changed(TCP, "start", "test_start", "duration", value=-5), "has a duration that cannot be"),
        (changed(TCP, "start", "timestamp", "timesecs", value=1e30), "timesecs is no time"),
        (changed(TCP, "start", "connecting_to", value=None), "report of an iperf3 server"),
        (changed(TCP, "end", value=None), "its JSON has the keys"),
        (changed(TCP, "end", "sum_received", value=None), "sum_received"),
        (changed(TCP, "end", "sum_received", "bits_per_second", value="fast"), "'fast', which is no number"),
        (changed(TCP, "end", "sum_received", "bits_per_second", value=-1), "a rate of -1 bit/s"),
        (changed(TCP, "end", "sum_received", "bytes", value=0), "no byte arrived"),
        (changed(TCP, "end", "sum_sent", "bytes", value=100), "bytes received of 100 that were sent"),
        (changed(TCP, "end", "sum_sent", "retransmits", value=2**32 - 1), "4294967295 retransmits of 23978880 bytes that"),
        (changed(TCP, "start", "test_start", "duration", value=20), " s of 20"),
        (changed(FLENT, "version", value=5), "format 5 is none of 1 to 4"),
        (changed(FLENT, "version", value="4"), "format '4' is none of"),
        (changed(FLENT, "metadata", "NAME", value=None), "metadata has no NAME"),
        (changed(FLENT, "metadata", "NAME", value="n" * 5000), "a name of 5000 characters: '" + "n" * 40 + "'…)"),
        (changed(FLENT, "results", value={"s" * 5000: []}), "a name of 5000 characters: '" + "s" * 40 + "'…)"),
        (changed(FLENT, "x_values", value=[0.0]), "'TCP upload' has not one value for each x value"),
        (changed(FLENT, "x_values", value=[-1.0, 0.0, 1.0]), "goodput for a time that cannot be"),
        (changed(FLENT, "results", "TCP upload", value=[1, "2", 3]), "TCP upload is no number"),
        (changed(FLENT, "results", "TCP upload", value=[1, True, 3]), "TCP upload is no number"),
        (changed(FLENT, "results", "TCP upload", value=[1, -2, 3]), "goodput as -2e+06, which it cannot be"),
        (changed(FLENT, "results", "TCP upload", value=[1, 10**400, 3]), "TCP upload is no finite number"),
        (changed(FLENT, "results", "TCP upload", value=[None] * 3) | {"results": {}}, "no measured series"),
        (changed(FLENT, "metadata", "SERIES_META", value=[]), "no measured series"),
        (changed(FLENT, "raw_values", "Ping (ms) ICMP", value=[{"t": -5, "val": 1}]), "first time is no time from 1970 to 2100"),
        (
            changed(changed(FLENT, "raw_values", value={}), "metadata", "TIME", value="yesterday"),
            "TIME is no time in ISO 8601",
        ),
        *(
            (changed(changed(FLENT, "raw_values", value={}), "metadata", "TIME", value=time), "no time from 1970 to 2100")
            for time in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1969-12-31T23:59:59Z")
        ),
        (changed(FLENT, "metadata", "FAILED_RUNNERS", value=3), "flent says that programs of its test failed: 3"),
        *(
            (changed(FLENT, "metadata", "TOTAL_LENGTH", value=length), f"is {length:g} s, not 1 to 1e+07")
            for length in (-1, 0, 0.2, 1e300)
        ),
        (changed(FLENT, "x_values", value=[0.0, 0.4, 0.2]), "flent's x values go backwards"),
        (changed(FLENT, "x_values", value=[0.0, 0.2, 1e300]), "go on to 1e+300 s, in a test of 20 s"),
        (changed(FLENT, "raw_values", "Ping (ms) ICMP", 1, "t", value=1812427980), "go on to 1e+08 s, in a"),
        (changed(TCP, "error", value="e" * 5000), "with an error: " + "e" * 199 + "…)"),
        (changed(TCP, "start", "test_start", "protocol", value="p" * 5000), "is " + "p" * 199 + "…, not TCP"),
        (b'{"a": ' + b"9" * 5000 + b"}", "it has a number of more than 4300 digits)"),
        (changed(FLENT, "metadata", "NAME", value="\ud800"), "text that is no Unicode"),
    ],
)  # fmt: skip
def test_a_broken_or_foreign_file_is_refused(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(UserError) as refused:
        imported.read(path)
    assert f"FILE {path}: must be a whole file of an iperf3 client (JSON), flent, knb" in str(refused.value)
    assert words in str(refused.value) and "Nothing was imported" in str(refused.value)


@pytest.mark.parametrize("server", [True, False], ids=["with-server", "alone"])
@pytest.mark.parametrize(
    ("report", "path", "value", "words"),
    [
        (TCP, ("end", "sum_received", "bits_per_second"), 2.384e9, "for bytes and seconds that make 9.53"),
        (TCP, ("end", "sum_received", "seconds"), 200, "for bytes and seconds that make 955159"),
        (TCP, ("end", "sum_sent", "retransmits"), 10**9, "1000000000 retransmits of 23978880 bytes"),
        (TCP, ("end", "sum_sent", "retransmits"), 1.5, "retransmits as 1.5, which is no count"),
        (TCP, ("end", "streams"), [], "reported 0 of 1 streams"),
        (TCP, ("start", "test_start", "num_streams"), 99, "reported 1 of 99 streams"),
        (TCP, ("start", "test_start", "num_streams"), 10**300, "which is no count"),
        (TCP, ("start", "test_start", "num_streams"), 129, "num_streams is 129, not 1 to 128"),
        (TCP, ("start", "test_start", "blksize"), 0, "blksize is 0"),
        (TCP, ("start", "test_start", "blksize"), -1, "blksize as -1, which is no count"),
        (TCP, ("start", "test_start", "omit"), -1, "omit as -1, which is no count"),
        (TCP, ("start", "test_start", "target_bitrate"), -1, "target_bitrate as -1, which is no count"),
        (TCP, ("start", "timestamp", "timesecs"), -5, "no time from 1970 to 2100"),
        (TCP, ("start", "timestamp", "timesecs"), 2 * 10**11, "no time from 1970 to 2100"),
        (iperf3("udp"), ("end", "sum_sent", "bits_per_second"), 1e13, "for bytes and seconds that make 5.00"),
        (iperf3("udp"), ("end", "sum_sent", "packets"), 0.5, "packets as 0.5, which is no count"),
        (iperf3("udp"), ("end", "streams"), [{}] * 2, "reported 2 of 1 streams"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(tmp_path, report, path, value, words, server):
    wrong = changed(report, *path, value=value)
    if not server:
        del wrong["server_output_json"]
    with pytest.raises(UserError, match=re.escape(words)):
        imported.read(written(tmp_path, wrong))


def test_a_number_of_bytes_takes_time(tmp_path):
    report = changed(TCP, "start", "test_start", "duration", value=0)
    report["end"]["sum_sent"]["seconds"] = 0
    with pytest.raises(UserError, match="iperf3 sent for 0 s"):
        imported.read(written(tmp_path, report))


@pytest.mark.parametrize(
    "case", ["server-absent", "server-busy", "server-killed", "server-silent", "host-unreachable", "stopped"]
)
def test_a_report_of_a_test_that_failed_is_refused(case):
    with pytest.raises(UserError, match="iperf3 ended with an error: "):
        imported.read(IPERF3 / f"3.12-{case}.out")


def test_what_is_no_file_is_refused(tmp_path):
    for path, words in ((tmp_path, "no regular file"), (tmp_path / "none", "no such file")):
        with pytest.raises(UserError, match=f"must be a file that can be read .found: {words}"):
            imported.read(path)


def test_what_unpacks_to_very_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(imported, "LARGEST", 1 << 20)
    with pytest.raises(UserError, match="unpacked it is larger than 1 MiB"):
        imported.read(written(tmp_path, gzip.compress(bytes(1 << 22))))
    with pytest.raises(UserError, match="it is larger than 1 MiB"):
        imported.read(written(tmp_path, bytes(1 << 21)))


def test_every_cut_of_a_file_is_refused_or_read_whole(tmp_path):
    whole = json.dumps(TCP).encode()
    for cut in range(0, len(whole) - 1, len(whole) // 60):
        with pytest.raises(UserError):
            imported.read(written(tmp_path, whole[:cut]))


STRANGE = [None, True, -1, 0, 1e308, 10**400, -0.5, "", "x", "\x00", [], [None], {}, {"a": 1}]


def leaves(value, path=()):
    """Paths to every member of a JSON value."""
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, name)
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, name))


KNB = json.loads((FIXTURES / "knb/1.5.0-all.json").read_text())
K8S = json.loads((FIXTURES / "k8s-netperf/0.1.32-several.json").read_text())[4]
PKB = json.loads((FIXTURES / "perfkitbenchmarker/1.12.0-several.json").read_text().partition("\n")[0])


@pytest.mark.parametrize(
    "report",
    [TCP, iperf3("udp"), FLENT, KNB, K8S, PKB],
    ids=["tcp", "udp", "flent", "knb", "k8s-netperf", "pkb"],
)
def test_whatever_stands_in_a_file_it_is_stored_or_refused(store, tmp_path, report):
    chance, taken = random.Random(21), 0
    paths = list(leaves(report))
    for number in range(400):
        text = changed(report, *chance.choice(paths), value=chance.choice(STRANGE))
        text["made"] = number  # so that no two are the same
        try:
            file = imported.read(written(tmp_path, text))
        except UserError as refused:
            assert "FILE " in str(refused)
            continue
        imported.store_all(store, [file], About(*BARE))
        taken += 1
    assert 0 < taken < 400
    assert store.db.execute("SELECT count(*) FROM _run").fetchone()[0] == taken


def test_a_byte_order_mark_is_no_fault(tmp_path):
    marked = imported.read(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(TCP).encode()))
    assert marked.measured == imported.read(written(tmp_path, TCP)).measured
