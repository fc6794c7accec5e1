"""vCPUs and quota inside nodes: the scripts run for real, on a tree of files that stands for the kernel's."""

import subprocess
from pathlib import Path

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes, failed

from overlaylab.core.errors import NodeError
from overlaylab.shaping import cpu
from overlaylab.shaping.cpu import CpuState, InNode

DROP_IN = "run/control/{}.d/50-CPUQuota.conf"

NPROC = """\
#!/bin/sh
cat "$TREE"/cpus/cpu*/online | grep -c 1
"""
SYSTEMCTL = """\
#!/bin/sh
# set-property --runtime SLICE CPUQuota=…, and what the kernel makes of it; daemon-reload reads what is written.
echo "$*" >>"$TREE/log"
[ "$1" = set-property ] && [ ! -e "$TREE/deaf" ] || exit 0
mkdir -p "$TREE/run/control/$3.d"
echo "$4" >"$TREE/run/control/$3.d/50-CPUQuota.conf"
percent=${4#CPUQuota=}
case $percent in '') quota=max ;; *) percent=${percent%\\%} quota=$(echo "$percent" | tr -d .)0 ;; esac
[ "$quota" = max ] || quota=$((${quota#0}))
if [ -e "$TREE/groups/$3/cpu.max" ]; then
    echo "$quota 100000" >"$TREE/groups/$3/cpu.max"
elif [ -d "$TREE/groups/cpu/$3" ]; then
    [ "$quota" != max ] || quota=-1
    echo "$quota" >"$TREE/groups/cpu/$3/cpu.cfs_quota_us"
fi
"""


class Tree:
    """A node as files: CPUs, control groups, systemd's runtime settings, and its two commands as stand-ins."""

    def __init__(self, root: Path, cpus: int, version: int = 2) -> None:
        self.root = root
        for number in range(cpus):
            self.write(f"cpus/cpu{number}/online", "1\n")
        self.write("cpus/present", f"0-{cpus - 1}\n" if cpus > 1 else "0\n")
        for name in ("system.slice", "user.slice"):
            if version == 2:
                self.write(f"groups/{name}/cpu.max", "max 100000\n")
            else:
                self.write(f"groups/cpu/{name}/cpu.cfs_quota_us", "-1\n")
                self.write(f"groups/cpu/{name}/cpu.cfs_period_us", "100000\n")
        (root / "run").mkdir()
        for name, text in (("nproc", NPROC), ("systemctl", SYSTEMCTL)):
            self.write(f"bin/{name}", text)
            (root / "bin" / name).chmod(0o755)

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text().strip()

    def run(self, script: str) -> subprocess.CompletedProcess:
        for ours, here in (
            (cpu.STATE, "run/overlaylab/cpu"),
            ("/sys/fs/cgroup", "groups"),
            ("/sys/devices/system/cpu", "cpus"),
            ("/run/systemd/system.control", "run/control"),
        ):
            script = script.replace(ours, f"{self.root}/{here}")
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "TREE": str(self.root)}
        return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=False)

    def hold(self, vcpus: int | None, quota: float | None) -> None:
        done = self.run(cpu.hold_script(vcpus, quota))
        assert (done.returncode, done.stderr) == (0, "")

    @property
    def held(self) -> CpuState:
        return cpu.parse_held("node1", self.run(cpu.READ).stdout)

    @property
    def online(self) -> list[int]:
        files = sorted(self.root.glob("cpus/cpu*"), key=lambda path: int(path.name[3:]))
        return [
            int(path.name[3:])
            for path in files
            if not (path / "online").exists() or (path / "online").read_text().strip() == "1"
        ]

    @property
    def calls(self) -> list[str]:
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def traces(self) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in (self.root / "run").rglob("*"))


@pytest.fixture
def tree(tmp_path):
    return lambda cpus=4, version=2: Tree(tmp_path, cpus, version)


# -- inside a node ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_vcpus_and_quota_are_held_and_leave_no_trace(tree, version) -> None:
    node = tree(4, version)
    assert node.held == CpuState(4, None)
    node.hold(2, 0.25)
    assert (node.online, node.held) == ([0, 1], CpuState(2, 0.25))
    assert node.calls == [
        f"set-property --runtime {name} CPUQuota=50.00%" for name in ("system.slice", "user.slice")
    ]
    node.hold(None, None)
    assert (node.online, node.held, node.traces) == ([0, 1, 2, 3], CpuState(4, None), [])
    assert node.calls[2:] == [
        "set-property --runtime system.slice CPUQuota=",
        "set-property --runtime user.slice CPUQuota=",
        "daemon-reload",
    ]


def test_holding_again_changes_nothing(tree) -> None:
    node = tree()
    node.hold(1, 0.2)
    before = node.traces
    node.hold(1, 0.2)
    assert (len(node.calls), node.traces, node.held) == (2, before, CpuState(1, 0.2))


def test_from_one_tier_to_the_next(tree) -> None:
    node = tree(12)  # cpu10 and cpu11 sort before cpu2
    for vcpus, quota, count in ((1, 0.2, 1), (3, 0.4, 3), (2, None, 2), (None, 0.125, 12), (11, 1.0, 11)):
        node.hold(vcpus, quota)
        assert node.online == list(range(count))
        assert cpu.problems(node.held, vcpus, quota) == []
    node.hold(None, None)
    assert (node.online, node.traces) == (list(range(12)), [])


def test_a_node_gives_what_it_has(tree) -> None:
    node = tree(2)
    node.hold(4, 0.5)
    assert node.held == CpuState(2, 0.5)
    assert cpu.problems(node.held, 4, 0.5) == ["2 vCPUs in place of 4"]


def test_only_what_was_taken_is_given_back(tree) -> None:
    node = tree(4)
    node.write("cpus/cpu1/online", "0\n")
    node.write("groups/user.slice/cpu.max", "150000 100000\n")
    node.write(DROP_IN.format("user.slice"), "CPUQuota=150%\n")
    node.hold(2, 0.5)
    assert (node.online, node.held) == ([0, 2], CpuState(2, 0.5))
    node.hold(None, None)
    assert node.online == [0, 2, 3]
    assert node.read(DROP_IN.format("user.slice")) == "CPUQuota=150%"
    assert node.calls[-1] == "daemon-reload"  # which puts it in force
    assert node.traces == ["run/control", "run/control/user.slice.d", DROP_IN.format("user.slice")]


def test_a_first_cpu_without_a_switch_stays(tree) -> None:
    node = tree(2)
    (node.root / "cpus/cpu0/online").unlink()
    node.hold(1, None)
    assert node.online == [0]


def test_what_cannot_be_taken_offline_is_an_error(tree) -> None:
    node = tree(2)
    (node.root / "cpus/cpu1/online").unlink()
    done = node.run(cpu.hold_script(1, None))
    assert (done.returncode, done.stderr) == (1, "this node's kernel refuses to take CPU 1 offline\n")


def test_a_limit_that_does_not_take_is_an_error(tree) -> None:
    node = tree(1)
    node.write("deaf", "")
    done = node.run(cpu.hold_script(1, 0.5))
    assert done.returncode == 1
    assert "refuses to hold system.slice to 50.00 %, its limit is max of 100000 us" in done.stderr


def test_a_kill_between_note_and_switch_leaves_no_cpu_behind(tree) -> None:
    node = tree(2)
    node.write("run/overlaylab/cpu/offline", " 1\n")  # noted, and not yet taken
    node.hold(None, None)
    assert (node.online, node.traces) == ([0, 1], [])


def test_a_slice_without_a_group_does_not_count(tree) -> None:
    node = tree(2)
    (node.root / "groups/user.slice/cpu.max").unlink()
    (node.root / "groups/user.slice").rmdir()
    node.hold(None, 0.5)
    assert node.held == CpuState(2, 0.5)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("2\nmax 100000\n", CpuState(2, None)),
        ("2\n50000 100000\n", CpuState(2, 0.25)),  # a container that sees its own group
        ("1\nmax 100000\n20000 100000\nmax 100000\n", CpuState(1, None)),  # one slice is free
        ("1\nmax 100000\n20000 100000\n50000 100000\n", CpuState(1, 0.5)),
        ("1\n10000 100000\n20000 100000\n50000 100000\n", CpuState(1, 0.1)),
        ("1\nmax 100000\n150000 100000\n150000 100000\n", CpuState(1, None)),  # more than there is
    ],
)
def test_what_a_node_says(text, state) -> None:
    assert cpu.parse_held("node1", text) == state


@pytest.mark.parametrize("text", ["", "two\nmax 100000\n", "2\n", "2\nmax\n"])
def test_what_cannot_be_read_is_an_error(text) -> None:
    with pytest.raises(NodeError, match="node1: cannot tell vCPUs and quota from"):
        cpu.parse_held("node1", text)


@pytest.mark.parametrize(
    ("state", "asked", "said"),
    [
        (CpuState(2, None), (None, None), []),
        (CpuState(1, 0.2), (1, 0.2), []),
        (CpuState(1, 0.3333), (1, 1 / 3), []),
        (CpuState(1, None), (1, 1.0), []),
        (CpuState(1, None), (2, 0.4), ["1 vCPU in place of 2", "no quota in place of a quota of 0.4"]),
        (CpuState(2, 0.2), (None, None), ["a quota of 0.2 in place of no quota"]),
    ],
)
def test_what_is_not_in_force_is_said(state, asked, said) -> None:
    assert cpu.problems(state, *asked) == said


async def test_all_nodes_are_told_and_asked() -> None:
    nodes = FakeNodes(inventory("a", "b"), {"left=1\n": "", "nproc\n": "1\nmax 100000\n20000 100000\n"})
    nodes["node2"].answers["nproc\n"] = "1\nmax 100000\n"
    nodes["node2"].answers["left=1\n"] = ""
    holder = InNode(nodes)  # type: ignore[arg-type]
    await holder.hold(1, None)
    assert await holder.held() == {"node1": CpuState(1, 0.2), "node2": CpuState(1, None)}


async def test_a_kernel_that_refuses_is_a_node_error() -> None:
    nodes = FakeNodes(
        inventory("a"), {"left=1\n": failed(1, "this node's kernel refuses to take CPU 1 offline")}
    )
    with pytest.raises(NodeError, match=r"node1: .* refuses to take CPU 1 offline"):
        await InNode(nodes).hold(1, None)  # type: ignore[arg-type]
