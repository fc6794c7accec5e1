"""What ``profile:apply`` alone puts in force on VMs, measured by hand: the lab's own code reads no number here."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Sequence
from statistics import median

import pytest

# bit/s: azure-a1's rate, less the headers of full packets (Ethernet 14, IPv4 20, TCP 32).
GOODPUT = 100e6 * 1448 / 1514
TRIES = 3
# Seconds between an RTT and the tier's: a machine with other work drifts by so much from one minute to the next.
NEAR = 0.15e-3
BOOT_ID = "/proc/sys/kernel/random/boot_id"
# Seconds that emulated nodes take at most to boot, two at once.
UP_AGAIN = 240


def is_near(target: float, without: float, gained: float | None) -> bool:
    """Whether what lacked to an RTT was added; s, gained: None where nothing was."""
    return gained is not None and abs(gained - (target - without)) <= NEAR


def excuse(target: float, without: Sequence[float], gained: Sequence[float | None]) -> str | None:
    """Why no RTT can be judged on this machine; None where the last try was near. Fails where neither holds."""
    if is_near(target, without[-1], gained[-1]):
        return None
    told = ", ".join(
        f"{own * 1e3:.3f} ms without a delay and "
        + (f"{more * 1e3:.3f} ms more with it" if more else "none added")
        for own, more in zip(without, gained, strict=True)
    )
    if None in gained or max(without) > target - NEAR:
        return f"this machine's own RTT comes to the tier's of {target * 1e3:.3f} ms: {told}"
    if max(without) - min(without) > NEAR:
        return f"this machine is too busy for one RTT to be held against another: {told}"
    return pytest.fail(f"the tier has {target * 1e3:.3f} ms: {told}")


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

    def boot_id(node: str) -> str:
        return re.search(r"[0-9a-f-]{36}", on(node, "cat", BOOT_ID))[0]

    def reboot(*names: str) -> None:
        before = {node: boot_id(node) for node in names}
        for node in names:
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):  # SSH may go with it
                lab.run("lab:ssh", "--", node, "sudo", "systemctl", "--no-block", "reboot", seconds=30)
        deadline = time.monotonic() + UP_AGAIN
        for node in names:
            while time.monotonic() < deadline:
                with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                    both = f"cat {BOOT_ID} && systemctl is-active overlaylab-profile"
                    if before[node] not in lab.run("lab:ssh", "--", node, both, seconds=30):
                        break
                time.sleep(2)
            else:
                pytest.fail(f"{node} was not back, with its profile, within {UP_AGAIN} s")

    def rate_holds() -> None:
        on("node2", "iperf3", "--server", "--daemon")
        received = (iperf3()["sum_received"]["bits_per_second"] for _ in range(3))
        assert any(rate == pytest.approx(GOODPUT, rel=0.03) for rate in received)
        lost = (iperf3("--udp", "--bitrate", "50M")["sum"]["lost_percent"] for _ in range(3))
        assert any(percent < 1 for percent in lost)

    def it_outlives_a_reboot(held_back: float) -> None:
        proof = re.search(
            r"^profile in force: azure-a1, since .*; of its checks .*$", lab.run("lab:status"), re.M
        )[0]
        reboot("node1", "node2")
        assert added() == held_back
        assert rtt("0.002", "500") > 0.99 * held_back
        assert proof in lab.run("lab:status").splitlines()
        assert "is in force as it was proven " in lab.run("profile:apply")
        lab.run("profile:apply", "FAST=1")
        assert added() == 0
        assert "azure-a1 without its latency (FAST=1), not proven" in lab.run("lab:status")
        lab.run("profile:clear")
        assert "profile in force: none" in lab.run("lab:status")

    address = re.search(r"([0-9.]+)/", on("node2", "ip", "-br", "-4", "address", "show", "eth1"))[1]
    # With all of the profile but the delay, then with it: what lacked to the tier's RTT has to be there. What the
    # emulated CPUs take of their own follows the machine's other work, so one try of three has to be near.
    without: list[float] = []
    gained: list[float | None] = []
    for _ in range(TRIES):
        lab.run("profile:apply", "FAST=1")
        assert added() == 0
        without.append(rtt("0.002", "500"))
        printed = lab.run("profile:apply")
        # Where the nodes' own RTT exceeds the tier's, as on a busy machine, nothing is added.
        delayed = "no delay is added" not in printed
        assert not delayed or re.search(r"^rtt-idle node1→node2: .*: ok", printed, re.M), printed
        gained.append(rtt("0.002", "500") - without[-1] if delayed else None)
        if is_near(target, without[-1], gained[-1]):
            break
    untold = excuse(target, without, gained)

    # A packet that is held back is late whatever else there is.
    held_back = added()
    assert (held_back > 0) == delayed
    assert held_back < target
    assert min(rtt("0.002", "500"), rtt("0.05", "100")) > 0.99 * held_back
    if cluster == "pair":
        # Of zones, none of this knows.
        rate_holds()
        it_outlives_a_reboot(held_back)
    lab.run("lab:up" if cluster == "pair" else "lab:down")
    if untold:
        pytest.skip(f"all but the RTT holds: {untold}")
