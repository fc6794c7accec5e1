"""What shellcheck says of the scripts that nodes are given."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from lab_builders import inventory

from overlaylab.live import mtu_probe, overlay_live
from overlaylab.nodes import health
from overlaylab.run import evidence, evidence_local
from overlaylab.shaping import cpu, node_state, readback
from overlaylab.shaping import scripts as shaping_scripts
from overlaylab.shaping.sizes import NodeShaping, node_shaping
from overlaylab.specs import overlays
from overlaylab.specs.profile import load_profile

LAB = inventory("a", "a")
# A baseline above every target, so that no netem is needed: not every kernel that runs tests has it.
SLOW = {frozenset(("node1", "node2")): 1.0}


def told(name: str, **changes) -> NodeShaping:
    return node_shaping(replace(load_profile(name), **changes), LAB, LAB.nodes[0], SLOW)


def scripts() -> dict[str, str]:
    tier = load_profile("azure-a1")
    wide = replace(tier, between_zones={("any", "any"): 0.002}, jitter=1e-4, loss=0.01)
    lab = inventory("a", "b", "c")
    zones = replace(node_shaping(wide, lab, lab.nodes[0], {}), exempt_ssh=22)
    found = {
        "apply": shaping_scripts.apply_script(told("azure-a1")),
        "apply-two-rates": shaping_scripts.apply_script(
            told("azure-a1", sustained=10e6, bucket=2e6, ingress_metered=True, offloads="no-tunnel-offload")
        ),
        "apply-with-cpu": shaping_scripts.apply_script(told("azure-a1"), cpu.hold_script(1, 0.5)),
        "fill-bucket": shaping_scripts.FILL_BUCKET,
        "apply-zones": shaping_scripts.apply_script(zones),
        "apply-unsegmented": shaping_scripts.apply_script(
            told("azure-a1", offloads="default", mtu=None, rate=None)
        ),
        "clear": shaping_scripts.clear_script("eth1"),
        "readback": readback.readback_script("eth1"),
        "state": node_state.state_script("eth1"),
        "state-units": node_state.state_script("eth1", ["a.service", "b.service"]),
        "ping-back": evidence.ping_back_script("10.32.0.1", 1376, overlays.load("host").modes["host"]),
        "sampled": health.sampled_meanwhile("iperf3 --version", ["a.service", "b.service"], 2.5),
        "live": overlay_live.script(["a.service"], [("192.168.77.12", "10.32.0.2")]),
        "fragments": mtu_probe.fragments_script("ip netns exec endpoint ping", "10.32.0.2", 1376),
    }
    found["reach"] = evidence_local.reach_script("10.32.0.2", "10.32.0.3")
    for name, key in (("weave", "fastdp"), ("wireguard", "wireguard-encrypted")):
        mode = overlays.load(name).modes[key]
        found[f"probe-within-{name}"] = evidence_local.probe_script(
            "eth1", "10.32.0.2", "10.32.0.3", 1376, mode
        )
    peer = evidence.Peer("192.168.77.12", "10.32.0.2")
    for name in overlays.names():
        for key, mode in overlays.load(name).modes.items():
            found[f"probe-{name}-{key}"] = evidence.probe_script("eth1", peer, 1376, mode)
    return found


@pytest.mark.parametrize("name", scripts())
def test_shellcheck_has_nothing_to_say(name: str, tmp_path) -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("takes shellcheck: run through ./task")
    path = tmp_path / f"{name}.sh"
    path.write_text("#!/bin/sh\n" + scripts()[name])
    # SC1010: ping's `-M do` is no loop.
    argv = ["shellcheck", "--format=gcc", "--severity=warning", "--exclude=SC1010", str(path)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout.replace(str(tmp_path), "") == ""
