"""Daemons that live through a trial: the sample as shells take it, and what it says."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from lab_fakes import DAEMON, UNIT

from overlaylab.core.model import Evidence
from overlaylab.nodes.health import Moments, cpu_seconds, judge, kept_script, sample_script, sampled_meanwhile

OTHER = "overlaylab-etcd.service"
# As proc_pid_stat(5) has it; a command may call itself anything.
STAT = "412 (weaver (x) y) {state} {parent} 412 412 0 -1 4194560 2077 0 0 0 18 9 0 0 20 0 7 0 1041 1263943680 5120\n"
SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]


class Machine:
    """Files in place of /sys/fs/cgroup, /proc and /run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def script(self, text: str) -> str:
        for root in ("/sys/fs/cgroup", "/proc", "/run/systemd", "/run/overlaylab"):
            text = text.replace(root, f"{self.folder}{root}")
        return text

    def run(self, text: str, shell: str = "sh") -> str:
        argv = [shell, "-c", self.script(text)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, env={"PATH": "/bin:/usr/bin"})
        assert done.stderr == ""
        return done.stdout

    def daemon(self, group: str = "sys/fs/cgroup", state: str = "S", parent: int = 1) -> None:
        self.write(f"{group}/system.slice/{UNIT}/cgroup.procs", "412\n")
        self.write("proc/412/stat", STAT.format(state=state, parent=parent))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def alive(usec: int | None = 1_500_000, processes: tuple = (DAEMON,)) -> dict:
    return {UNIT: {"cpu_usec": usec, "processes": list(processes)}}


# -- sampling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_a_unit_is_its_processes_that_systemd_started_and_their_cpu_time(machine, shell) -> None:
    machine.daemon()
    machine.write(f"sys/fs/cgroup/system.slice/{UNIT}/cpu.stat", "usage_usec 1500000\nuser_usec 1\n")
    # A helper of the daemon's, and a process that has ended since it was listed.
    machine.write(f"sys/fs/cgroup/system.slice/{UNIT}/cgroup.procs", "412\n999\n413\n")
    machine.write("proc/413/stat", STAT.format(state="R", parent=412).replace("412 (", "413 ("))
    assert json.loads(machine.run(sample_script([UNIT]), shell)) == alive()


def test_units_that_are_not_set_up_on_a_node_are_left_out_and_those_that_are_dead_are_null(machine) -> None:
    assert json.loads(machine.run(sample_script([UNIT, OTHER]))) == {}
    machine.write(f"run/systemd/system/{OTHER}", "[Service]\n")
    machine.write("run/systemd/system/docker.service.d/lab.conf", "[Service]\n")
    machine.daemon()
    machine.write(f"sys/fs/cgroup/system.slice/{UNIT}/cpu.stat", "usage_usec 1500000\n")
    found = json.loads(machine.run(sample_script([OTHER, UNIT, "docker.service"])))
    assert found == {OTHER: None, **alive(), "docker.service": None}


def test_a_group_without_processes_of_systemds_is_dead(machine) -> None:
    machine.daemon(parent=77)
    assert json.loads(machine.run(sample_script([UNIT]))) == {UNIT: None}


@pytest.mark.parametrize("group", ["unified", "systemd"])
def test_groups_of_the_first_version_are_read_too(machine, group) -> None:
    machine.daemon(f"sys/fs/cgroup/{group}")
    assert json.loads(machine.run(sample_script([UNIT]))) == alive(None)
    machine.write(f"sys/fs/cgroup/cpuacct/system.slice/{UNIT}/cpuacct.usage", "1500000999\n")
    assert json.loads(machine.run(sample_script([UNIT]))) == alive(1_500_000)


def test_a_sample_takes_no_process(machine) -> None:
    machine.daemon()
    script = "PATH=/nowhere\n" + sample_script([UNIT])
    assert json.loads(machine.run(script)) == alive(None)
    assert "$(" not in sample_script([UNIT]).replace("$((", "")


def test_a_sample_in_the_middle_is_kept_beside_the_command_and_its_outcome(machine) -> None:
    machine.daemon()
    machine.write("run/overlaylab/x", "")
    script = sampled_meanwhile("sh -c 'sleep 0.5; echo out; echo err >&2; exit 3'", [UNIT], 0.1)
    done = subprocess.run(["sh", "-c", machine.script(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert json.loads(machine.run(kept_script())) == alive(None)


def test_nothing_is_kept_of_a_command_that_was_over_before_or_of_an_earlier_one(machine) -> None:
    machine.daemon()
    machine.write("run/overlaylab/health", "an earlier one\n")
    subprocess.run(["sh", "-c", machine.script(sampled_meanwhile("true", [UNIT], 5))], check=True)
    assert machine.run(kept_script()) == "null\n"


def test_a_command_runs_where_no_sample_can_be_kept(machine) -> None:
    script = machine.script(sampled_meanwhile("echo out; (exit 4)", [UNIT], 5))
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "out\n")


def test_a_command_without_daemons_is_itself() -> None:
    assert sampled_meanwhile("iperf3 --client", [], 2.5) == "iperf3 --client"


# -- judging ----------------------------------------------------------------------------------------


def test_a_daemon_that_lived_and_what_it_used() -> None:
    later = alive(1_750_000)
    assert judge("node1", [UNIT, OTHER], Moments(alive(), alive(1_600_000), later)) == Evidence(
        "node1", "health", "during", True, {"units": [UNIT, OTHER]},
        {UNIT: {"before": [DAEMON], "during": [DAEMON], "after": [DAEMON], "cpu_seconds": 0.25}}, None,
    )  # fmt: skip


NEW = [500, "S", 9000]


@pytest.mark.parametrize(
    ("during", "after", "reason"),
    [
        (None, alive(), None),
        (alive(), alive(processes=(DAEMON, NEW)), None),  # another process beside it
        (alive(), {UNIT: None}, "ended during the trial"),
        (alive(), {}, "ended during the trial"),
        ({UNIT: None}, {UNIT: None}, "ended before the middle of the trial"),
        (None, alive(processes=(NEW,)), "was restarted during the trial"),
        (alive(processes=(NEW,)), alive(processes=(NEW,)), "was restarted before the middle of the trial"),
        # Its number went to another process.
        (alive(), alive(processes=([412, "S", 9000],)), "was restarted during the trial"),
    ],
)
def test_what_became_of_a_daemon(during, after, reason) -> None:
    judged = judge("node2", [UNIT], Moments(alive(), during, after))
    assert (judged.ok, judged.reason) == (reason is None, reason and f"{UNIT} {reason}")


@pytest.mark.parametrize(
    ("state", "word"), [("Z", "a zombie"), ("T", "stopped"), ("t", "traced"), ("X", "dead")]
)
def test_a_daemon_that_is_there_and_does_nothing_is_not_healthy(state, word) -> None:
    idle = alive(processes=([412, state, 1041],))
    judged = judge("node1", [UNIT], Moments(alive(), idle, alive()))
    assert judged.reason == f"a process of {UNIT} was {word}"


def test_a_daemon_that_did_not_run_and_one_that_is_nowhere() -> None:
    nothing = {UNIT: None}
    assert (
        judge("node1", [UNIT], Moments(nothing, None, alive())).reason
        == f"{UNIT} did not run before the trial"
    )
    assert judge("node1", [UNIT, OTHER], Moments({}, None, {})).reason == (
        f"none of {UNIT}, {OTHER} is set up on this node"
    )


def test_a_node_without_daemons_has_nothing_to_judge_where_none_is_required() -> None:
    assert judge("node1", [UNIT], Moments({}, None, {}), required=False) is None
    assert judge("node1", [UNIT], Moments(alive(), None, {UNIT: None}), required=False).ok is False


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        ({"cpu_usec": 1_000_000}, {"cpu_usec": 1_250_000}, 0.25),
        ({"cpu_usec": 5}, {"cpu_usec": 5}, 0.0),
        ({"cpu_usec": None}, {"cpu_usec": None}, None),
        (None, {"cpu_usec": 5}, None),
        ({"cpu_usec": 5}, None, None),
        ({"cpu_usec": 5}, {"cpu_usec": 4}, None),  # another daemon's
    ],
)
def test_cpu_time_that_nobody_tells_is_no_zero(before, after, seconds) -> None:
    assert cpu_seconds(before, after) == seconds
