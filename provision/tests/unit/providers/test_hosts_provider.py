"""SSH hosts: facts, converging and resetting in turn, and the timer that guards them."""

import asyncio
import subprocess
from dataclasses import replace
from types import SimpleNamespace

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.nodes import ansible, kit_delivery, servers
from overlaylab.providers import host_state
from overlaylab.providers.kinds.hosts import Hosts
from overlaylab.shaping import scripts as shaping_scripts
from overlaylab.specs.inventory import write_inventory

HOST, FASTDP, SLEEVE = Variant("host"), Variant("weave", "fastdp"), Variant("weave", "sleeve")
SR_IOV = Variant("sr-iov")
FACTS, TOOLS, CLEAR = "systemd-detect-virt", "command -v", '[ -d "$state" ] || exit 0'
TIMER = "systemd-run --quiet"


LEFT = "[ ! -x /opt/overlaylab/overlay/overlay-reset ]"


def facts(virtualization: str = "kvm", cpu: str | None = "AMD EPYC") -> str:
    return (
        "\n".join(["debian-12", virtualization, "2", "3934", "6.1.0-18-amd64", *([cpu] if cpu else [])])
        + "\n"
    )


class Playbooks(list):
    """Every call, as (overlay, verb, arguments), and what happens to it."""

    fail: str | None = None

    def __call__(self, inventory, overlay, verb, arguments):
        self.append((overlay, verb, arguments))
        if verb == self.fail:
            raise UserError(f"overlay {overlay}", "a task failed", fix="Look")


@pytest.fixture
def playbooks(monkeypatch: pytest.MonkeyPatch) -> Playbooks:
    called = Playbooks()
    monkeypatch.setattr(ansible, "run_playbook", called)
    return called


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hosts that a kit was brought to; it is not built for it."""
    to: list[str] = []

    async def ensure(nodes, kit) -> SimpleNamespace:
        to.extend(nodes)
        return SimpleNamespace(digest="d1")

    monkeypatch.setattr(kit_delivery, "ensure", ensure)
    return to


@pytest.fixture
def make(tmp_path, own_cache, playbooks, delivered):
    def build(**options) -> Hosts:
        path = tmp_path / "hosts.yml"
        write_inventory(path, replace(inventory("a", "b"), name="hosts", provider="external"))
        provider = Hosts(path, lambda text: None, **options)
        # The timer's script holds the one that clears a profile, so it comes first.
        answers = {
            FACTS: facts(),
            TOOLS: "",
            TIMER: "",
            CLEAR: "",
            "systemctl stop": "",
            "ip link set dev": "",
            LEFT: "",
        }
        provider.nodes = FakeNodes(provider.inventory, answers)  # type: ignore[assignment]
        return provider

    return build


def scripts(provider: Hosts, word: str, node: str = "node1") -> list[str]:
    return [script for script in provider.nodes[node].log if word in script]


def test_an_inventory_says_who_made_its_nodes_or_that_nobody_did(tmp_path) -> None:
    path = tmp_path / "hosts.yml"
    for maker in ("external", "libvirt"):
        write_inventory(path, replace(inventory("a", "b"), provider=maker))
        assert Hosts(path, print).inventory.provider == maker
    write_inventory(path, replace(inventory("a", "b"), provider="vmware"))
    with pytest.raises(UserError, match="must be one of external, libvirt, virtualbox, lxc") as wrong:
        Hosts(path, print)
    assert (wrong.value.where, wrong.value.seen) == ("pair: overlaylab_provider", "vmware")


# -- somebody else's machines -----------------------------------------------------------------------


async def test_hosts_are_taken_to_be_up_and_are_neither_switched_off_nor_removed(make) -> None:
    provider = make()
    await provider.up()
    assert await provider.status() == {"node1": "running", "node2": "running"}
    assert (await provider.kept(), provider.is_converged(FASTDP, ())) == (set(), False)
    for refused in (provider.down, provider.remove_nodes):
        with pytest.raises(UserError, match=r"hosts\.yml.*there already"):
            await refused()
    for look in (lambda: provider.spec, lambda: provider.folder):
        with pytest.raises(UserError, match=r"there already"):
            look()
    assert all(node.log == [] for node in provider.nodes.values())


# -- facts ------------------------------------------------------------------------------------------


async def test_a_run_records_what_the_hosts_are(make, delivered) -> None:
    provider = make()
    await provider.prepare([HOST], print)
    assert delivered == ["node1", "node2"]
    assert (provider.system, provider.kit) == ("debian-12", "d1")
    assert provider.describe()["node2"] == {
        "underlay_address": "192.168.77.12/24",
        "zone": "b",
        "system": "debian-12",
        "virtualization": "kvm",
        "cpus": 2,
        "memory_mib": 3934,
        "kernel": "6.1.0-18-amd64",
        "cpu": "AMD EPYC",
    }
    assert (provider.cluster, provider.image, provider.capabilities.snapshots) == ("hosts", None, False)
    await provider.leave()


@pytest.mark.parametrize(
    ("virtualization", "accelerator"),
    [("none", "bare"), ("qemu", "tcg"), ("kvm", "kvm"), ("amazon", "kvm"), ("microsoft", "kvm"), ("lxc", "shared-kernel")],
)  # fmt: skip
async def test_the_accelerator_is_what_the_hosts_say(make, virtualization, accelerator) -> None:
    provider = make()
    provider.nodes.answers[FACTS] = facts(virtualization, cpu=None)
    await provider.prepare([HOST], print)
    assert provider.accelerator == accelerator
    assert provider.describe()["node1"]["cpu"] is None
    await provider.leave()


async def test_hosts_of_two_kinds_are_refused(make) -> None:
    provider = make()
    provider.nodes["node2"].answers[FACTS] = facts("none")
    with pytest.raises(UserError) as wrong:
        await provider.prepare([HOST], print)
    assert (wrong.value.rule, wrong.value.seen) == (
        "hosts of one run must have CPUs of one kind",
        "bare, kvm",
    )


async def test_hosts_without_the_tools_are_refused_by_name(make) -> None:
    provider = make()
    provider.nodes["node2"].answers[TOOLS] = "iperf3\ntcpdump\n"
    with pytest.raises(UserError, match=r"hosts\.yml: node2: .*none of these: iperf3, tcpdump"):
        await provider.prepare([HOST], print)
    (asked,) = scripts(provider, TOOLS)
    for tool in ("iperf3", "qperf", "ping"):
        assert f" {tool} " in asked


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        (Variant("calico", "bgp"), {"/opt/overlaylab/bin/bird", "etcd"}),
        (Variant("calico", "vxlan"), {"etcd"}),
        (Variant("flannel", "udp"), {"etcd", "jq"}),
        (Variant("flannel", "wireguard", True), {"etcd", "wg"}),
    ],
)
async def test_the_commands_of_a_mode_are_asked_for(make, variant, wanted) -> None:
    """Calico's bgp began without BIRD, and failed while it converged."""
    provider = make()
    await provider.prepare([variant], print)
    (asked,) = scripts(provider, TOOLS)
    of_modes = {"/opt/overlaylab/bin/bird", "etcd", "jq", "wg"}
    assert of_modes & set(asked.replace(";", " ").split()) == wanted


async def test_hosts_without_virtual_functions_are_refused_by_name(make) -> None:
    provider = make()
    provider.nodes.answers["sriov_totalvfs"] = "8\n"
    provider.nodes["node2"].answers["sriov_totalvfs"] = "0\n"
    with pytest.raises(
        UserError, match=r"hosts\.yml: node2: .*sr-iov needs: a network card .*eth1 with 0 virtual"
    ):
        await provider.prepare([HOST, SR_IOV], print)
    assert "cat /sys/class/net/eth1/device/sriov_totalvfs" in provider.nodes["node1"].log


# -- states -----------------------------------------------------------------------------------------


async def test_overlays_are_reset_and_converged_in_turn(make, playbooks) -> None:
    provider = make(role_arguments={"weave": {"overlay_weave_mtu": 1410}})
    for variant in (HOST, FASTDP, FASTDP, SLEEVE):
        entered = await provider.enter(variant)
        assert entered.revert >= 0
    assert [call[:2] for call in playbooks] == [
        ("host", "converge"),
        ("host", "reset"),
        ("weave", "converge"),
        ("weave", "reset"),
        ("weave", "converge"),
    ]
    assert playbooks[2][2] == {
        "overlay_weave_mode": "fastdp",
        "overlay_weave_encrypted": False,
        "overlay_weave_mtu": 1410,
    }
    await provider.leave()
    assert playbooks[-1][:2] == ("weave", "reset")


async def test_what_a_killed_run_left_is_taken_away_by_its_own_script_once(make, playbooks) -> None:
    provider = make()
    provider.nodes.answers[LEFT] = lambda _: playbooks.append("left") or ""
    await provider.enter(FASTDP)
    await provider.enter(SLEEVE)
    assert [call if call == "left" else call[1] for call in playbooks] == [
        "left", "left", "converge", "reset", "converge",
    ]  # fmt: skip


async def test_every_entering_begins_without_a_profile(make) -> None:
    provider = make()
    await provider.enter(HOST)
    await provider.enter(HOST)
    for name in provider.nodes:
        found = [s for s in provider.nodes[name].log if s == host_state.clear_script("eth1")]
        assert len(found) == 2


async def test_an_overlay_converges_under_the_tiers_mtu(make, playbooks) -> None:
    provider = make(underlay_mtu=1400)
    await provider.enter(FASTDP)
    assert scripts(provider, "ip link set dev", "node2")[-1] == shaping_scripts.mtu_script("eth1", 1400)


async def test_leaving_twice_resets_once(make, playbooks) -> None:
    provider = make()
    await provider.enter(FASTDP)
    await provider.leave()
    await provider.leave()
    assert [call[1] for call in playbooks] == ["converge", "reset"]


async def test_what_did_not_converge_is_reset_all_the_same(make, playbooks) -> None:
    provider = make()
    playbooks.fail = "converge"
    with pytest.raises(UserError):
        await provider.enter(FASTDP)
    playbooks.fail = None
    await provider.enter(HOST)
    assert [call[:2] for call in playbooks] == [
        ("weave", "converge"),
        ("weave", "reset"),
        ("host", "converge"),
    ]

    playbooks.clear()
    playbooks.fail = "converge"
    with pytest.raises(UserError):
        await provider.enter(SLEEVE)
    playbooks.fail = None
    await provider.leave()
    assert [call[:2] for call in playbooks] == [("host", "reset"), ("weave", "converge"), ("weave", "reset")]


async def test_a_reset_that_failed_is_tried_again(make, playbooks) -> None:
    provider = make()
    await provider.enter(FASTDP)
    playbooks.fail = "reset"
    with pytest.raises(UserError):
        await provider.enter(HOST)
    playbooks.fail = None
    await provider.enter(FASTDP)  # not taken for what is still there
    assert [call[1] for call in playbooks] == ["converge", "reset", "reset", "converge"]


# -- the timer --------------------------------------------------------------------------------------


async def test_the_timer_is_armed_before_anything_is_changed(make, playbooks) -> None:
    provider = make(underlay_mtu=1400)
    playbooks.fail = "converge"
    with pytest.raises(UserError):
        await provider.enter(FASTDP)
    log = provider.nodes["node2"].log
    armed = next(n for n, script in enumerate(log) if TIMER in script)
    changed = next(n for n, script in enumerate(log) if script == shaping_scripts.mtu_script("eth1", 1400))
    assert armed < changed


async def test_the_timer_takes_profile_and_overlay_away(make, tmp_path) -> None:
    """The script runs for real, with commands that only say that they were called."""
    provider = make()
    await provider.renew()
    (script,) = scripts(provider, TIMER)
    (tmp_path / "bin").mkdir()
    for name in ("systemctl", "systemd-run"):
        path = tmp_path / "bin" / name
        path.write_text(f'#!/bin/sh\nfor word; do echo "{name}: $word"; done >>{tmp_path}/called\n')
        path.chmod(0o755)
    script = script.replace(host_state.CLEAR, str(tmp_path / "clear"))
    script = script.replace(f"[ ! -d {servers.SYSTEMD} ]", "false")
    path = f"{tmp_path}/bin:/usr/bin:/bin"
    await asyncio.to_thread(subprocess.run, ["sh", "-c", script], env={"PATH": path}, check=True)
    assert (tmp_path / "clear").read_text() == host_state.clear_script("eth1")
    called = (tmp_path / "called").read_text().splitlines()
    assert called[-4:] == [
        f"systemd-run: --on-active={host_state.PATIENCE}",
        "systemd-run: sh",
        "systemd-run: -c",
        f"systemd-run: sh {tmp_path}/clear; [ ! -x {host_state.RESET} ] || {host_state.RESET}",
    ]
    assert "systemctl: overlaylab-deadman.timer" in called


async def test_without_systemd_a_session_waits_in_the_timers_place(make, tmp_path) -> None:
    provider = make()
    await provider.renew()
    (script,) = scripts(provider, TIMER)
    script = script.replace(host_state.CLEAR, str(tmp_path / "clear")).replace(
        servers.SYSTEMD, str(tmp_path / "none")
    )
    script = script.replace(host_state.TIMER_SESSION, str(tmp_path / "pid"))
    script = script.replace(host_state.RESET, str(tmp_path / "reset"))
    (tmp_path / "reset").write_text(f"#!/bin/sh\necho reset >>{tmp_path}/called\n")
    (tmp_path / "reset").chmod(0o755)

    async def renewed(seconds: str) -> None:
        short = script.replace(
            f"sleep {host_state.PATIENCE}; sh {tmp_path}/clear",
            f"sleep {seconds}; echo clear >>{tmp_path}/called",
        )
        await asyncio.to_thread(subprocess.run, ["sh", "-c", short], check=True, capture_output=True)

    # The second ends the first, which would have come sooner.
    await renewed("0.5")
    await renewed("1")
    await asyncio.sleep(0.7)
    assert not (tmp_path / "called").exists()
    for _ in range(100):
        await asyncio.sleep(0.05)
        if (tmp_path / "called").exists() and "reset" in (tmp_path / "called").read_text():
            break
    assert (tmp_path / "called").read_text() == "clear\nreset\n"


async def test_the_timer_is_renewed_while_the_runner_lives(make, monkeypatch) -> None:
    monkeypatch.setattr(host_state, "RENEW_EVERY", 0.01)
    provider = make()
    refusals = iter([NodeError("node1: no SSH")])  # the trial's business
    provider.nodes["node1"].answers[TIMER] = lambda _: next(refusals, "")
    await provider.prepare([HOST], print)
    for _ in range(200):
        if len(scripts(provider, TIMER)) >= 3:
            break
        await asyncio.sleep(0.01)
    assert len(scripts(provider, TIMER)) >= 3
    await provider.leave()
    count = len(scripts(provider, TIMER))
    await asyncio.sleep(0.05)
    assert len(scripts(provider, TIMER)) == count


async def test_a_host_that_does_not_answer_leaves_the_others_timers_renewed(make) -> None:
    provider = make()
    provider.nodes["node1"].answers[TIMER] = NodeError("node1: no SSH")
    with pytest.raises(NodeError, match="node1: no SSH"):
        await provider.renew()
    assert len(scripts(provider, TIMER, "node2")) == 1


async def test_leaving_stops_timer_and_servers(make) -> None:
    provider = make()
    await provider.enter(HOST)
    await provider.leave()
    last = provider.nodes["node2"].log[-1]
    assert "systemctl stop overlaylab-deadman.timer overlaylab-deadman.service" in last
    assert "systemctl stop 'overlaylab-server-*'" in last
    assert provider.nodes.dropped == 1


def test_clearing_a_host_takes_both_away_whatever_becomes_of_the_one(monkeypatch) -> None:
    for parts, said, code in (
        (("echo cpu; exit 0", "echo net; exit 0"), "cpu net", 0),
        (("echo cpu; exit 1", "echo net; exit 0"), "cpu net", 1),
        (("echo cpu; exit 0", "echo net; exit 1"), "cpu net", 1),
    ):
        monkeypatch.setattr(host_state.cpu, "clear_script", lambda: parts[0] + "\n")  # noqa: B023
        monkeypatch.setattr(shaping_scripts, "clear_script", lambda interface: parts[1] + "\n")  # noqa: B023
        script = host_state.clear_script("eth1")
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        assert (done.stdout.split(), done.returncode) == (said.split(), code)


def test_patience_outlasts_several_renewals() -> None:
    assert host_state.PATIENCE >= 3 * host_state.RENEW_EVERY
