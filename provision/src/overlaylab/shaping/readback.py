"""What a node says is in force on its underlay, and how that differs from what it was told."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any

from overlaylab.shaping.scripts import STATE
from overlaylab.shaping.sizes import NodeShaping
from overlaylab.shaping.tc import INGRESS

_CUT = "=====overlaylab====="


def readback_script(interface: str) -> str:
    """Print what is in force, for `readback_problems`.

    Four parts: settings and qdiscs as JSON; HTB's classes, filters, and the classes of what comes in as text,
    which iproute2 6.1 prints even with -j (tc/q_htb.c, htb_print_opt).
    """
    device = shlex.quote(interface)
    return f"""
digest='' pid='' kept=''; [ ! -e {STATE}/digest ] || read -r digest <{STATE}/digest
if [ -e {STATE}/bucket.pid ]; then read -r pid <{STATE}/bucket.pid; if kill -0 "$pid"; then kept=1; fi; fi
read -r mtu </sys/class/net/{device}/mtu
# One word each, on one line.
# shellcheck disable=SC2046
set -- $(ethtool -k {device} | sed -n 's/^\\(tcp\\|generic\\)-segmentation-offload: on$/\\1/p; s/^generic-receive-offload: on$/receive/p')
printf '{{"digest":"%s","mtu":%s,"offloads_on":"%s","kept":"%s","qdisc":' "$digest" "$mtu" "$*" "$kept"
tc -j qdisc show dev {device}; echo '}}'; echo '{_CUT}'
tc class show dev {device}; echo '{_CUT}'
tc filter show dev {device}; echo '{_CUT}'
[ ! -d /sys/class/net/{INGRESS} ] || tc class show dev {INGRESS}
"""


def readback_problems(shaping: NodeShaping, printed: str) -> list[str]:
    """What differs between what was asked for and what the node says, in words; empty: all in force."""
    try:
        settings, classes, filters, ingress = printed.split(_CUT)
        seen = json.loads(settings)
    except ValueError:
        return [f"the node's settings could not be read: {printed[:200]!r}"]
    problems = []
    if seen["digest"] != shaping.digest:
        problems.append(
            f"the node says that profile {seen['digest'] or 'none'} is in force, not {shaping.digest}"
        )
    if shaping.mtu and seen["mtu"] != shaping.mtu:
        problems.append(f"{shaping.interface} has MTU {seen['mtu']}, not {shaping.mtu}")
    if shaping.segmented and seen["offloads_on"].strip():
        problems.append(f"{shaping.interface} still has {seen['offloads_on'].strip()} offload on")
    if shaping.sustained and not seen["kept"]:
        problems.append("nobody keeps the bucket: its program has ended")
    roots = [q["kind"] for q in seen["qdisc"] if q.get("root")]
    if not shaping.queueing:
        return [*problems, f"{shaping.interface} is still shaped"] if "htb" in roots else problems
    if roots != ["htb"]:
        problems.append(f"the root qdisc of {shaping.interface} is {roots}, not htb")
    problems += _caps(shaping, classes)
    problems += _peers(shaping, seen["qdisc"], filters)
    metered = _rate(ingress, "1:10")
    if shaping.ingress and not _near(metered, shaping.rate):
        problems.append(f"what comes in is held to {metered} bit/s, not {shaping.rate:.0f}")
    elif metered and not shaping.ingress:
        problems.append(f"what comes in is still held to {metered} bit/s")
    return problems


def _caps(shaping: NodeShaping, classes: str) -> list[str]:
    problems = []
    cap = _rate(classes, "1:1")
    if shaping.rate and not any(_near(cap, rate) for rate in (shaping.rate, shaping.sustained)):
        problems.append(f"the cap of {shaping.interface} is {cap} bit/s, not {shaping.rate:.0f}")
    for minor, peer in enumerate(shaping.peers, 0x10):
        ceiling = _rate(classes, f"1:{minor:x}", "ceil")
        if shaping.rate and not _near(ceiling, shaping.rate):
            problems.append(f"traffic to {peer.node} may use {ceiling} bit/s, not {shaping.rate:.0f}")
    return problems


def _peers(shaping: NodeShaping, qdiscs: list[Mapping[str, Any]], filters: str) -> list[str]:
    problems = []
    # tc lists qdiscs in no order (the kernel keeps them in a hash), and leaves out what is zero.
    netems = {q["parent"]: _netem(q["options"]) for q in qdiscs if q["kind"] == "netem"}
    fifos = {q["parent"]: q["options"].get("limit") for q in qdiscs if q["kind"] == "bfifo"}
    led = {
        address: flow
        for flow, address in re.findall(r"flowid (\S+)[^\n]*\n\s*match (\w{8})/f{8} at 16", filters)
    }
    queues = [shaping.queue_at(rate) for rate in (shaping.rate, shaping.sustained) if rate]
    for minor, peer in enumerate(shaping.peers, 0x10):
        name = f"1:{minor:x}"
        delay, jitter, loss = netems.get(name, (0.0, 0.0, 0.0))
        if abs(delay - peer.delay) > 2e-6:
            problems.append(f"traffic to {peer.node} is delayed by {delay} s, not {peer.delay}")
        if abs(jitter - peer.jitter) > 2e-6:
            problems.append(f"the delay to {peer.node} varies by {jitter} s, not {peer.jitter}")
        if abs(loss - peer.loss) > 1e-6:
            problems.append(f"of the packets to {peer.node}, {loss} are lost, not {peer.loss}")
        limit = fifos.get(f"{minor:x}:" if peer.impaired else name)
        if queues and limit not in queues:
            problems.append(f"the queue to {peer.node} holds {limit} bytes, not {queues[0]}")
        for address in peer.addresses:
            flow = led.get(f"{int(IPv4Address(address)):08x}")
            if flow != name:
                problems.append(f"traffic to {peer.node} ({address}) is led to class {flow}, not {name}")
    return problems


def _netem(options: Mapping[str, Any]) -> tuple[float, float, float]:
    """Delay and jitter in s, loss as a ratio, of a netem, as tc(8) prints its options in JSON."""
    delay = options.get("delay", {})
    return delay.get("delay", 0.0), delay.get("jitter", 0.0), options.get("loss-random", {}).get("loss", 0.0)


def _near(seen: float | None, asked: float | None) -> bool:
    """tc rounds what it prints to four digits or so."""
    return bool(seen and asked and abs(seen / asked - 1) < 1e-3)


def _rate(text: str, classid: str, what: str = "rate") -> float | None:
    """bit/s of an HTB class in tc(8)'s text: ``class htb 1:1 root rate 100Mbit ceil …``."""
    match = re.search(rf"^class htb {re.escape(classid)} .*?\b{what} (\d+)([KMGT]?)bit", text, re.MULTILINE)
    return int(match[1]) * 1000 ** " KMGT".index(match[2] or " ") if match else None
