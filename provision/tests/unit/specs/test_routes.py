"""This machine's routes, with iproute2 and before it is installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from overlaylab.specs import routes

# proc(5): addresses are hexadecimal in the machine's own order, here that of x86.
MAIN_TABLE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
tap0	00000000	0202000A	0003	0	0	0	00000000	0	0	0
tap0	0002000A	00000000	0001	0	0	0	00FFFFFF	0	0	0
tun0	00007B0A	00000000	0001	0	0	0	0000FFFF	0	0	0
"""


@pytest.mark.skipif(sys.byteorder != "little", reason="the recorded table is of a little-endian machine")
def test_the_kernels_own_table_names_destinations_and_devices() -> None:
    assert routes.parse_main_table(MAIN_TABLE) == [
        {"dst": "default", "dev": "tap0"},
        {"dst": "10.0.2.0/24", "dev": "tap0"},
        {"dst": "10.123.0.0/16", "dev": "tun0"},
    ]


def test_without_iproute2_the_main_table_counts(monkeypatch, tmp_path) -> None:
    (tmp_path / "route").write_text(MAIN_TABLE)
    monkeypatch.setattr(routes, "_MAIN_TABLE", tmp_path / "route")
    monkeypatch.setattr(routes, "find_program", lambda name: None)
    assert [route["dev"] for route in routes.known()] == ["tap0", "tap0", "tun0"]


def test_with_iproute2_every_table_counts(monkeypatch) -> None:
    asked = []

    def run(argv, **_):
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0, json.dumps([{"dst": "default", "table": "vpn"}]).encode())

    monkeypatch.setattr(routes, "find_program", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(routes.subprocess, "run", run)
    assert routes.known() == [{"dst": "default", "table": "vpn"}]
    assert asked == [["/sbin/ip", "-j", "route", "show", "table", "all"]]
