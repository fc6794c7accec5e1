"""Counters of a node: CPU time, bytes and packets of its underlay, its qdisc; collected cheaply, read back. Pure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from overlaylab.core.model import JSON
from overlaylab.nodes import health
from overlaylab.shaping.scripts import STATE


def state_script(interface: str, units: Sequence[str] = ()) -> str:
    """POSIX sh for root: counters of a node, as cheaply as can be (a fork costs 10 ms when emulated).

    units: systemd units that are sampled too, with the sample that was kept while the last trial ran.
    """
    interface = shlex.quote(interface)
    sample = f"\nprintf ',\"units\":'\n{health.sample_script(units)}" if units else ""
    kept = f"printf ',\"units_during\":'\n{health.kept_script()}\n" if units else ""
    return f"""
cpu() {{
    read -r _ user nice system idle iowait irq softirq steal _ </proc/stat
    printf '"%s":{{"user":%s,"nice":%s,"system":%s,"idle":%s,"iowait":%s,"irq":%s,"softirq":%s,"steal":%s}}' \
        $1 $user $nice $system $idle $iowait $irq $softirq $steal
}}
printf '{{'; cpu cpu
read -r rx </sys/class/net/{interface}/statistics/rx_bytes; read -r tx </sys/class/net/{interface}/statistics/tx_bytes
read -r rxp </sys/class/net/{interface}/statistics/rx_packets; read -r txp </sys/class/net/{interface}/statistics/tx_packets
read -r dropped </sys/class/net/{interface}/statistics/rx_dropped
again=null names=''
while read -r kind line; do
    [ "$kind" = Tcp: ] || continue
    # The names first, then the values (proc(5), /proc/net/snmp).
    if [ -z "$names" ]; then names=$line; continue; fi
    for name in $names; do if [ "$name" = RetransSegs ]; then again=${{line%% *}}; fi; line=${{line#* }}; done
done <<SNMP
$(ip netns exec endpoint cat /proc/net/snmp 2>/dev/null)
SNMP
read -r up _ </proc/uptime
printf ',"uptime":%s,"rx_bytes":%s,"tx_bytes":%s,"rx_packets":%s,"tx_packets":%s,"rx_dropped":%s,"tcp_retransmits":%s,"qdisc":' \
    $up $rx $tx $rxp $txp $dropped $again
tc -s -j qdisc show dev {interface}
if [ -s {STATE}/bucket ]; then read -r bucket <{STATE}/bucket; printf ',"bucket":%s' "$bucket"; fi{sample}{kept}
printf ','; cpu cpu_end; printf '}}'
"""


def read_state(printed: str) -> dict[str, Any]:
    """`state_script`'s output: cpu in USER_HZ ticks since boot, bytes, packets, qdisc as tc(8) gives it.

    cpu: at its beginning, cpu_end: at its end, so that a trial between two states is not charged for their reading.
    tcp_retransmits: segments that the endpoint's kernel sent again since it was there, None where it has no endpoint.

    Where the tier has two rates, `bucket` is what its keeper noted (on_node/bucket.py), and its `level_now` what
    came of it: the kept level and what refilled it since, less the bytes since.
    """
    state: dict[str, Any] = json.loads(printed)
    bucket, sent = state.get("bucket"), qdisc_bytes(state)
    if bucket and sent is not None:
        # The note is read last, and may be newer than clock and counter.
        since, used = max(0.0, state["uptime"] - bucket["at"]), max(0, sent - bucket["bytes"])
        level = bucket["level"] + bucket["sustained"] / 8 * since - used
        bucket["level_now"] = min(bucket["capacity"], level)
    return state


# Prints how many datagrams sockets had no room for since boot: those were not lost by the network (proc(5)).
SOCKET_DROPS = """awk '/^Udp: [A-Z]/{for(i=1;i<=NF;i++)if($i=="RcvbufErrors")n=i}/^Udp: [0-9]/{print $n}' /proc/net/snmp"""


def qdisc_bytes(state: JSON) -> int | None:
    """Bytes that the root HTB qdisc has sent; None where the underlay is not shaped."""
    for qdisc in state["qdisc"]:
        if qdisc.get("root") and qdisc["kind"] == "htb":
            sent: int = qdisc["bytes"]
            return sent
    return None


def idle_share(before: JSON, after: JSON) -> float | None:
    """Share of CPU time, in 0…1, that was idle between two states; None without any time between them."""
    ticks = {name: after["cpu"][name] - before["cpu"][name] for name in before["cpu"]}
    total = sum(ticks.values())
    return (ticks["idle"] + ticks["iowait"]) / total if total else None
