"""What a node says is in force on its underlay, and how that differs from what it was told."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping

from overlaylab.shaping import STATE, NodeShaping

_CUT = "=====overlaylab====="


def readback_script(interface: str) -> str:
    """POSIX sh for root on the node: print what is in force, for `readback_problems`.

    Three documents, one a line group: settings, qdiscs, and HTB's classes, which iproute2 6.1 prints as
    text even with -j (tc/q_htb.c, htb_print_opt).
    """
    device = shlex.quote(interface)
    return f"""
digest=''; [ ! -e {STATE}/digest ] || read -r digest <{STATE}/digest
read -r mtu </sys/class/net/{device}/mtu
# One word each, on one line.
# shellcheck disable=SC2046
set -- $(ethtool -k {device} | sed -n 's/^\\([a-z]*\\)-segmentation-offload: on.*/\\1/p')
printf '{{"digest":"%s","mtu":%s,"offloads_on":"%s","qdisc":' "$digest" "$mtu" "$*"
tc -j qdisc show dev {device}; echo '}}'; echo '{_CUT}'
tc class show dev {device}
"""


def readback_problems(shaping: NodeShaping, printed: str) -> list[str]:
    """What differs between what was asked for and what the node says, in words; empty: all in force."""
    settings, _, classes = printed.partition(_CUT)
    try:
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
    roots = [q["kind"] for q in seen["qdisc"] if q.get("root")]
    if shaping.queueing:
        if roots != ["htb"]:
            problems.append(f"the root qdisc of {shaping.interface} is {roots}, not htb")
        cap = _class_rate(classes, "1:1")
        # tc rounds what it prints to four digits or so.
        if shaping.rate and not (cap and abs(cap / shaping.rate - 1) < 1e-3):
            problems.append(f"the cap of {shaping.interface} is {cap} bit/s, not {shaping.rate:.0f}")
        # tc lists qdiscs in no order (the kernel keeps them in a hash), and leaves out what is zero.
        found = {q["parent"]: _netem(q["options"]) for q in seen["qdisc"] if q["kind"] == "netem"}
        for number, zone in enumerate(shaping.zones):
            delay, loss = found.get(f"1:{0x10 + number:x}", (0.0, 0.0))
            if abs(delay - zone.delay) > 2e-6:
                problems.append(f"traffic to zone {zone.zone} is delayed by {delay} s, not {zone.delay}")
            if abs(loss - zone.loss) > 1e-6:
                problems.append(f"of the packets to zone {zone.zone}, {loss} are lost, not {zone.loss}")
    elif "htb" in roots:
        problems.append(f"{shaping.interface} is still shaped")
    return problems


def _netem(options: Mapping) -> tuple[float, float]:
    """Delay in s and loss as a ratio of a netem, as tc(8) prints its options in JSON."""
    return options.get("delay", {}).get("delay", 0.0), options.get("loss-random", {}).get("loss", 0.0)


def _class_rate(text: str, classid: str) -> float | None:
    """Rate, bit/s, of an HTB class in tc(8)'s text: ``class htb 1:1 root rate 100Mbit ceil …``."""
    match = re.search(rf"^class htb {re.escape(classid)} .*?\brate (\d+)([KMGT]?)bit", text, re.MULTILINE)
    return int(match[1]) * 1000 ** " KMGT".index(match[2] or " ") if match else None
