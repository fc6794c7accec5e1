"""Measuring a pair: what is run on which host, what comes of it, and that nothing stays."""

import asyncio
import json

import pytest
from lab_builders import inventory
from lab_fakes import FIXTURES, Counters, FakeNodes, failed, ping

from overlaylab.bench.calibration_nodes import Calibration, cpu_bound, seconds
from overlaylab.core.errors import NodeError, UserError

RTT = 0.000966


def rate(mbit: float) -> dict[str, float]:
    """What arrives in a second."""
    return {"bits_per_second": mbit * 1e6, "bytes": round(mbit * 1e6 / 8)}


def lasting(report: dict, script: str) -> str:
    """The report with totals of as many seconds as the script asks for."""
    asked = int(script.split("--time ")[1].split()[0])
    for total in (report["end"]["sum_sent"], report["end"]["sum_received"]):
        total |= {"seconds": asked, "bytes": round(total["bits_per_second"] * asked / 8)}
    return json.dumps(report)


def tcp(script: str, mbit: list[float]) -> str:
    """A recorded report with these seconds as its receiver's."""
    reverse = "--reverse" in script
    report = json.loads((FIXTURES / "iperf3" / f"3.12-tcp{'-reverse' if reverse else ''}.out").read_text())
    of_receiver = report if reverse else report["server_output_json"]
    template = of_receiver["intervals"][-1]["sum"]
    times = {"omitted": False, "seconds": 1.0}
    of_receiver["intervals"] = [
        {"sum": template | times | {"start": float(n), "end": n + 1.0} | rate(value)}
        for n, value in enumerate(mbit)
    ]
    return lasting(report, script)


def udp(script: str, lost: int) -> str:
    """A recorded report in which `lost` of the datagrams are missing."""
    reverse = "--reverse" in script
    report = json.loads((FIXTURES / "iperf3" / f"3.12-udp{'-reverse' if reverse else ''}.out").read_text())
    (report if reverse else report["server_output_json"])["intervals"][-1]["sum"]["lost_packets"] = lost
    return lasting(report, script)


def passing(limit: int):
    """Answers pings with DF: packets up to `limit` bytes pass."""

    def answer(script: str):
        size = int(script.split(" -s ")[1].split()[0]) + 28
        return "" if size <= limit else failed(1)

    return answer


class Pair:
    """Two hosts that answer, and what was said to the user."""

    def __init__(self, *zones: str, **answers) -> None:
        self.said: list[str] = []
        self.mbit = [95.6] * 30
        self.lost = 0
        self.nodes = FakeNodes(inventory(*(zones or ("a", "a"))), {})
        self.nodes.answers |= {
            "command -v": "",
            "netns attach": "made\n",
            "nproc": "4\n",
            "/mtu": "1500\n",
            "-M do": passing(1500),
            "ping -n -D": ping([RTT] * 500),
            "--udp": lambda script: udp(script, self.lost),
            "iperf3 --client": lambda script: tcp(script, self.mbit),
            "RcvbufErrors": "0\n",
            "systemd-run": "",
            "systemctl stop": "",
            "ip netns delete": "",
        }
        self.nodes.answers |= answers
        for node in self.nodes.values():
            node.answers["</proc/stat"] = Counters(shaped=False)

    def measure(self, duration: int = 30):
        return asyncio.run(Calibration(self.nodes, duration, self.said.append).measure())

    def scripts(self, name: str, holding: str) -> list[str]:
        return [script for script in self.nodes[name].log if holding in script]


def test_what_a_pair_carries() -> None:
    found = Pair().measure()
    assert (found.pair, found.zones, found.mtu) == (("node1", "node2"), ("a", "a"), 1500)
    assert found.cpus == {"node1": 4, "node2": 4}
    assert found.rtts == (RTT,) * 500
    ends = [("node1", "node2"), ("node2", "node1")]
    assert [(t.sender, t.receiver) for t in found.transfers] == ends
    assert [(d.sender, d.receiver) for d in found.datagrams] == ends
    assert [t.carried.rate for t in found.transfers] == [pytest.approx(95.6e6)] * 2
    assert [t.bound for t in found.transfers] == [None, None]
    assert [(d.loss.lost, d.unread) for d in found.datagrams] == [(0, 0), (0, 0)]
    assert found.shaped == ()


def test_the_client_is_always_the_first_so_that_one_port_is_enough() -> None:
    pair = Pair()
    pair.measure(60)
    assert pair.scripts("node2", "iperf3 --client") == []
    assert len(pair.scripts("node2", "iperf3 --server --port 5201")) == 4
    clients = pair.scripts("node1", "iperf3 --client 192.168.77.12")
    assert ["--reverse" in script for script in clients] == [False, True, False, True]
    assert ["--udp" in script for script in clients] == [False, False, True, True]
    assert "--time 60 --omit 0" in clients[0]
    # Half of the L2 rate, in packets of 1500 bytes: 50 Mbit/s × 1472/1514.
    assert f"--bitrate {round(95.6e6 / 1448 * 1472 / 2)} --length 1472" in clients[2]


def test_loss_is_measured_below_the_sustained_rate() -> None:
    pair = Pair()
    pair.mbit = [900.0] * 15 + [125.0] * 20
    found = pair.measure()
    assert found.transfers[0].carried.sustained == 125e6
    assert f"--bitrate {round(125e6 / 1448 * 1472 / 2)}" in pair.scripts("node1", "--udp")[0]
    assert any("then 125 Mbit/s" in line for line in pair.said)


def test_nothing_is_shaped_or_cleared_and_nothing_stays() -> None:
    pair = Pair()
    pair.measure()
    for name in pair.nodes:
        assert pair.scripts(name, "tc qdisc add") == []
        assert pair.scripts(name, "tc qdisc del") == []
        assert pair.scripts(name, "tc -batch") == []
        assert pair.nodes[name].log[-1] == "ip netns delete endpoint"
        assert "systemctl stop 'overlaylab-server-*'" in pair.nodes[name].log[-2]


def test_what_was_there_before_stays() -> None:
    pair = Pair()
    pair.nodes["node1"].answers["netns attach"] = "there\n"
    pair.nodes["node2"].answers["netns attach"] = "made-folder\n"
    pair.measure()
    assert pair.scripts("node1", "ip netns delete") == []
    assert pair.nodes["node2"].log[-1] == "ip netns delete endpoint; umount /run/netns; rmdir /run/netns"


def test_a_failure_leaves_nothing_behind() -> None:
    pair = Pair(**{"--udp": failed(1, "iperf3: error - unable to connect")})
    with pytest.raises(NodeError, match="unable to connect"):
        pair.measure()
    for name in pair.nodes:
        assert pair.nodes[name].log[-1] == "ip netns delete endpoint"


async def test_being_interrupted_leaves_nothing_behind() -> None:
    pair = Pair()
    reached = asyncio.Event()
    run = pair.nodes["node1"].sh

    async def slow(script: str, **options):
        if "iperf3 --client" in script:
            reached.set()
            await asyncio.sleep(60)
        return await run(script, **options)

    pair.nodes["node1"].sh = slow
    task = asyncio.create_task(Calibration(pair.nodes, 30, pair.said.append).measure())
    await asyncio.wait_for(reached.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for name in pair.nodes:
        assert pair.nodes[name].log[-1] == "ip netns delete endpoint"


def test_a_host_that_is_gone_hides_no_error() -> None:
    gone = NodeError("node2: the SSH connection broke")
    pair = Pair(**{"--udp": failed(1, "iperf3: error - control socket has closed")})
    pair.nodes["node2"].answers["ip netns delete"] = gone
    with pytest.raises(NodeError, match="control socket"):
        pair.measure()
    assert pair.said[-1] == "could not tidy up: node2: the SSH connection broke"


def test_an_overlay_is_not_measured_for_the_host() -> None:
    pair = Pair()
    pair.nodes["node2"].answers["netns attach"] = "overlay\n"
    with pytest.raises(UserError) as wrong:
        pair.measure()
    assert wrong.value.where == "node2"
    assert pair.scripts("node2", "ip netns delete") == []
    assert pair.nodes["node1"].log[-1] == "ip netns delete endpoint"


def test_missing_tools_are_named() -> None:
    pair = Pair()
    pair.nodes["node2"].answers["command -v"] = "iperf3\nping\n"
    with pytest.raises(UserError) as wrong:
        pair.measure()
    assert (wrong.value.where, wrong.value.seen) == ("node2", "none of these: iperf3, ping")


@pytest.mark.parametrize(
    ("limits", "mtu"), [((1500, 1500), 1500), ((1460, 1500), 1460), ((1500, 1400), 1400)]
)
def test_the_mtu_is_what_passes_both_ways(limits, mtu) -> None:
    pair = Pair()
    for node, limit in zip(pair.nodes.values(), limits, strict=True):
        node.answers["-M do"] = passing(limit)
    assert pair.measure().mtu == mtu


def test_interfaces_of_different_mtu_agree_on_the_smaller() -> None:
    pair = Pair(**{"-M do": passing(9001)})
    pair.nodes["node1"].answers["/mtu"] = "9001\n"
    found = pair.measure()
    assert (found.mtu, found.links) == (1500, {"node1": 9001, "node2": 1500})


def test_hosts_that_answer_no_ping_are_refused() -> None:
    with pytest.raises(UserError) as wrong:
        Pair(**{"-M do": failed(1)}).measure()
    assert wrong.value.where == "node1→node2"
    assert "ICMP" in wrong.value.fix


def test_what_the_receiver_dropped_itself_is_no_loss() -> None:
    pair = Pair()
    pair.lost = 10
    counts = iter(("100\n", "104\n"))
    pair.nodes["node2"].answers["RcvbufErrors"] = lambda _: next(counts)
    found = pair.measure()
    assert [(d.loss.lost, d.unread) for d in found.datagrams] == [(6, 4), (10, 0)]


def test_a_profile_that_is_in_force_stays_and_is_told_of() -> None:
    pair = Pair()
    pair.nodes["node1"].answers["</proc/stat"] = Counters(shaped=True)
    assert pair.measure().shaped == ("node1",)
    assert any(line.startswith("node1: a profile is in force and stays") for line in pair.said)


def test_a_busy_host_is_told_of() -> None:
    pair = Pair()
    pair.nodes["node2"].answers["</proc/stat"] = Counters(busy=97, shaped=False)
    assert pair.measure().transfers[0].bound == "3% of node2's CPU was idle"


def test_one_busy_thread_on_many_cpus_is_told_of() -> None:
    idle = {"node1": 0.9, "node2": 0.8}
    assert cpu_bound(idle, {"host_total": 40.0, "remote_total": 99.2}) == "iperf3 used 99 % of one CPU"
    assert cpu_bound(idle, {"host_total": 40.0, "remote_total": 60.0}) is None
    assert cpu_bound({"node1": None, "node2": 0.5}, {}) is None


def test_the_estimate_holds_both_directions() -> None:
    assert seconds(60) == 2 * (60 + 20) + 15


def test_only_the_first_two_are_measured() -> None:
    pair = Pair("a", "b", "c")
    found = pair.measure()
    assert (found.pair, found.zones) == (("node1", "node2"), ("a", "b"))
    assert pair.nodes["node3"].log == []
