"""vCPUs and quota from outside the nodes: libvirt's schedulers, the limits of system containers."""

import asyncio

import pytest
from lab_builders import inventory
from lab_fakes import FIXTURES, FakeNodes

from overlaylab.core.errors import NodeError, UserError
from overlaylab.providers import libvirt_cpu, lxc_cpu, lxc_host, virsh
from overlaylab.providers.libvirt_cpu import LibvirtCpu
from overlaylab.providers.lxc_cpu import LxcCpu
from overlaylab.shaping import cpu
from overlaylab.shaping.cpu import CpuState, InNode

# -- libvirt ----------------------------------------------------------------------------------------

UNLIMITED, LIMITED = (
    (FIXTURES / "virsh" / f"9.0.0-schedinfo-{name}.out").read_text() for name in ("unlimited", "limited")
)


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        (UNLIMITED, None),
        (LIMITED, 0.2),
        ("", None),  # refused: libvirt has no control group to limit anything with
        ("Scheduler      : posix\n\n", None),
        ("vcpu_period : 100000\nvcpu_quota : 17592186044415\n", None),
        ("vcpu_period : 50000\nvcpu_quota : 25000\n", 0.5),
    ],
)
def test_a_quota_is_read_from_virsh(text, quota) -> None:
    assert libvirt_cpu.parse_schedinfo("vm1", text) == quota


def test_a_quota_that_is_no_number_is_an_error() -> None:
    with pytest.raises(NodeError, match="virsh schedinfo vm1: cannot tell a quota"):
        libvirt_cpu.parse_schedinfo("vm1", "vcpu_period : 100000\nvcpu_quota : much\n")


class Schedulers(dict):
    """What virsh schedinfo would do, in memory; `log`: what changes anything."""

    def __init__(self) -> None:
        super().__init__({"vm1": UNLIMITED, "vm2": UNLIMITED})
        self.log: list[tuple[str, ...]] = []

    async def __call__(self, verb: str, domain: str, *words: str, check: bool = True) -> str:
        await asyncio.sleep(0)
        assert (verb, words[0]) == ("schedinfo", "--live")
        if "--set" in words:
            self.log.append((domain, *words[2:]))
            self[domain] = UNLIMITED if words[-1] == "vcpu_quota=-1" else LIMITED
        return self[domain]


@pytest.fixture
def of_libvirt(monkeypatch):
    schedulers = Schedulers()
    monkeypatch.setattr(virsh, "virsh", schedulers)
    nodes = FakeNodes(
        inventory("a", "b"), {"left=": "", "nproc\n": "1\nmax 100000\nmax 100000\nmax 100000\n"}
    )
    return LibvirtCpu(nodes, {"node1": "vm1", "node2": "vm2"}), schedulers  # type: ignore[arg-type]


async def test_libvirt_holds_the_quota_from_outside(of_libvirt) -> None:
    holder, schedulers = of_libvirt
    await holder.hold(1, 0.2)
    words = ("vcpu_period=100000", "vcpu_quota=20000")
    assert sorted(schedulers.log) == [("vm1", *words), ("vm2", *words)]
    assert holder.nodes["node1"].log == [cpu.hold_script(1, None)]
    assert await holder.held() == dict.fromkeys(("node1", "node2"), CpuState(1, 0.2))


async def test_after_a_reboot_a_node_has_to_take_its_cpus_offline_again(of_libvirt) -> None:
    """The quota is the QEMU process's, which goes on."""
    holder, _ = of_libvirt
    assert holder.after_reboot(1, 0.2) == cpu.hold_script(1, None)
    assert (holder.after_reboot(None, 0.2), holder.after_reboot(None, None)) == ("", "")
    assert InNode(holder.nodes).after_reboot(None, 0.2) == cpu.hold_script(None, 0.2)


async def test_libvirt_lifts_only_a_limit_that_is_there(of_libvirt) -> None:
    holder, schedulers = of_libvirt
    await holder.hold(None, None)
    assert schedulers.log == []
    await holder.hold(1, 0.2)
    schedulers["vm2"] = UNLIMITED  # reverted meanwhile: a new QEMU has none
    schedulers.log.clear()
    await holder.hold(None, None)
    assert schedulers.log == [("vm1", "vcpu_period=100000", "vcpu_quota=-1")]
    await holder.hold(1, 0.2)
    assert (await holder.held())["node2"] == CpuState(1, 0.2)


# -- system containers ------------------------------------------------------------------------------


@pytest.fixture
def of_lxc(monkeypatch, tmp_path):
    """of_lxc(vcpus, quota): containers with one vCPU at half of its time, and what this provider makes them with."""
    monkeypatch.setattr(lxc_host, "CGROUPS", tmp_path)
    nodes = FakeNodes(inventory("a"), {"nproc\n": "1\nmax 100000\n"})
    group = tmp_path / "cpu" / "lxc.payload.box1"
    group.mkdir(parents=True)
    (tmp_path / "freezer" / "lxc.payload.box1").mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("50000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    return lambda *made_with: LxcCpu(nodes, {"node1": "box1"}, *made_with)  # type: ignore[arg-type]


async def test_containers_are_read_from_outside_too(of_lxc) -> None:
    assert await of_lxc(1, 0.5).held() == {"node1": CpuState(1, 0.5)}


@pytest.mark.parametrize(
    ("files", "worth"),
    [
        ({"lxc.payload.box1/cpu.max": "20000 100000\n"}, 0.2),
        ({"machine.slice/lxc.payload.box1/cpu.max": "max 100000\n"}, float("inf")),
        ({"cpu/lxc.payload.box1/cpu.cfs_quota_us": "-1\n", "cpu/lxc.payload.box1/cpu.cfs_period_us": "100000\n"}, float("inf")),
        ({"lxc.payload.box12/cpu.max": "20000 100000\n"}, float("inf")),
        ({}, float("inf")),
    ],
)  # fmt: skip
def test_the_limit_of_a_container(tmp_path, files, worth) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert lxc_cpu.limit(tmp_path, "box1") == worth


@pytest.mark.parametrize(
    ("made_with", "asked"),
    [
        ((1, 0.5), (1, 0.5)),
        ((2, 0.5), (2, 0.5)),  # this machine could not give them: `held` tells
        ((None, None), (1, 0.5)),  # not made here, but made so
        ((None, None), (None, 0.5)),
        ((1, 0.5), (None, None)),  # a profile that is taken away
    ],
)
async def test_containers_hold_what_they_were_made_with(of_lxc, made_with, asked) -> None:
    await of_lxc(*made_with).hold(*asked)


@pytest.mark.parametrize(
    ("made_with", "asked", "seen"),
    [
        ((1, 0.5), (2, 0.5), "1 vCPU in place of 2"),
        ((None, None), (1, 0.2), "a quota of 0.5 in place of a quota of 0.2"),
        ((1, 0.5), (1, None), "a quota of 0.5 in place of no quota"),
    ],
)
async def test_containers_take_nothing_else(of_lxc, made_with, asked, seen) -> None:
    with pytest.raises(UserError) as wrong:
        await of_lxc(*made_with).hold(*asked)
    assert (wrong.value.where, wrong.value.seen) == ("PROVIDER=lxc: node1", seen)
    assert "PROVIDER=libvirt" in wrong.value.fix
