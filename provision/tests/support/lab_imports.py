"""Files of other programs as tests make them."""

import json
from pathlib import Path

from overlaylab.core.model import Variant

FIXTURES = Path(__file__).parents[1] / "fixtures"
IPERF3 = FIXTURES / "iperf3"
FLENT = {
    "version": 4,
    "x_values": [0.0, 0.2, 0.4],
    "results": {
        "TCP upload": [None, 9.5, 10.0],
        "TCP download BE": [8.0, 0.0, 8.5],
        "TCP totals": [8.0, 9.5, 18.5],
        "TCP upload::tcp_rtt": [20.0, 21.0, 22.0],
        "Ping (ms) ICMP": [1.25, 1.875, 2.5],
        "Ping (ms) UDP": [None, 3.0, 2.5],
        "Ping (ms) avg": [1.0, 2.25, 2.25],
        "VoIP::delay": [1, 2, 3],
    },
    "metadata": {
        "NAME": "rrul",
        "TIME": "2024-04-06T18:26:19.506230Z",
        "TITLE": "=1+1",
        "TOTAL_LENGTH": 20,
        "FLENT_VERSION": "2.1.1",
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": "5.16.0",
        "LOCAL_HOST": "a-name",
        "SERIES_META": {
            "TCP upload": {"UNITS": "Mbits/s", "MEAN_VALUE": 9.7},
            "TCP download BE": {"UNITS": "Mbits/s"},
            "TCP totals": {"UNITS": "Mbits/s"},
            "Ping (ms) ICMP": {"UNITS": "ms"},
            "Ping (ms) UDP": {"UNITS": "ms"},
            "Ping (ms) avg": {"UNITS": "ms"},
            "VoIP::delay": {"UNITS": "ms"},
        },
    },
    "raw_values": {
        "Ping (ms) ICMP": [{"seq": 1.0, "t": 1712427980.0, "val": 1.25}, {"t": 1712427980.25, "val": 2.5}],
        "TCP upload": [{"t": 1712427980.5, "dur": 0.2, "val": 9.4}],
    },
}


def written(tmp_path, content, name="x.flent"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def changed(report, *path, value):
    """A copy of the report with one member another; value None takes it away."""
    copy = json.loads(json.dumps(report))
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    if value is None:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return copy


def older(version):
    """FLENT as earlier versions of flent wrote it, by what its resultset.py converts on loading (unserialise_compat)."""
    old = changed(FLENT, "version", value=version)
    meta = old["metadata"]
    # Until format 4 netperf's request-response series hold transactions per second, here two values of 0.2 s.
    singles = [{"t": 1712427980.2 + 0.2 * n, "dur": 0.2, "val": 1000 / ms} for n, ms in enumerate((3.0, 2.5))]
    old["raw_values"]["Ping (ms) UDP"] = singles
    if version < 3:  # a local time without a zone, and no RUNNER
        meta["TIME"] = "2024-04-06T20:26:19.506230"
    if version == 1:
        del old["version"]
        meta["NETPERF_WRAPPER_VERSION"] = meta.pop("FLENT_VERSION")
        for name, values in old.pop("raw_values").items():
            meta["SERIES_META"][name]["RAW_VALUES"] = values
    return old


BARE = (Variant("unknown"), "bare")


def iperf3(case):
    return json.loads((IPERF3 / f"3.12-{case}.out").read_text())


TCP = iperf3("tcp")
