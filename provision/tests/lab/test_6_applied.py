"""What ``profile:apply`` alone puts in force on VMs, measured by hand: the lab's own code reads no number here."""

from __future__ import annotations

import json
import re
from statistics import median

import pytest

GOODPUT = 100e6 * 1448 / 1514
"""bit/s: azure-a1's rate, less the headers of full packets (Ethernet 14, IPv4 20, TCP 32)."""


@pytest.mark.turn("nodes")
@pytest.mark.parametrize(("cluster", "target"), [("pair", 0.966e-3), ("pair-zones", 2e-3)])
def test_a_profile_that_is_applied_by_hand_is_in_force(lab, cluster: str, target: float) -> None:
    """The rate was in force and the latency was not: 0.54 ms where the tier has 0.966."""
    lab.environment |= {"CLUSTER": cluster, "PROVIDER": "libvirt", "PROFILE": "azure-a1"}
    lab.run("lab:up")

    def on(node: str, *command: str) -> str:
        return lab.run("lab:ssh", "--", node, *command)

    def rtt(interval: str, count: str) -> float:
        printed = on("node1", "sudo", "ping", "-n", "-i", interval, "-c", count, address)
        assert f"{count} received, 0% packet loss" in printed
        return median(float(ms) / 1e3 for ms in re.findall(r" time=([0-9.]+) ms", printed))

    def added() -> float:
        """Seconds that the nodes hold a packet and its reply back, as tc(8) tells."""
        shown = [on(node, "tc", "qdisc", "show", "dev", "eth1") for node in ("node1", "node2")]
        delays = [re.findall(r" netem .* delay ([0-9.]+)(ms|us)", qdiscs) for qdiscs in shown]
        return sum(float(value) * {"ms": 1e-3, "us": 1e-6}[unit] for node in delays for value, unit in node)

    def iperf3(*options: str) -> dict:
        printed = on("node1", "iperf3", "--client", address, "--time", "5", "--json", *options)
        return json.loads(printed[printed.index("{") : printed.rindex("}") + 1])["end"]

    address = re.search(r"([0-9.]+)/", on("node2", "ip", "-br", "-4", "address", "show", "eth1"))[1]
    printed = lab.run("profile:apply")
    # Where the nodes' own RTT exceeds the tier's, as on a busy machine, nothing is added.
    delayed = "no delay is added" not in printed
    assert not delayed or re.search(r"^rtt-idle node1→node2: .*: ok", printed, re.M), printed
    # What the emulated CPUs add of their own follows the machine's other work from one moment to the next, so that no
    # RTT of now can be held against the tier's; a packet that is held back is late whatever else there is.
    held_back = added()
    assert (held_back > 0) == delayed
    assert held_back < target
    assert min(rtt("0.002", "500"), rtt("0.05", "100")) > 0.99 * held_back
    on("node2", "iperf3", "--server", "--daemon")
    received = (iperf3()["sum_received"]["bits_per_second"] for _ in range(3))
    assert any(rate == pytest.approx(GOODPUT, rel=0.03) for rate in received)
    lost = (iperf3("--udp", "--bitrate", "50M")["sum"]["lost_percent"] for _ in range(3))
    assert any(percent < 1 for percent in lost)

    assert "profile in force: azure-a1, since " in lab.run("lab:status")
    assert "is in force as it was proven " in lab.run("profile:apply")
    lab.run("profile:apply", "FAST=1")
    assert added() == 0
    assert "azure-a1 without its latency (FAST=1), not proven" in lab.run("lab:status")
    lab.run("profile:clear")
    assert "profile in force: none" in lab.run("lab:status")
    lab.run("lab:up" if cluster == "pair" else "lab:down")
