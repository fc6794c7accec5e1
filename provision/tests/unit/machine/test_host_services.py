"""libvirt's daemons: reading virsh, remembering what was started here, ending only that."""

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.machine import root, services
from overlaylab.machine.services import Service

# Recorded: virsh -c qemu:///system version --daemon, Debian 12.
VIRSH_VERSION = """\
Compiled against library: libvirt 9.0.0
Using library: libvirt 9.0.0
Using API: QEMU 9.0.0
Running hypervisor: QEMU 7.2.22
Running against daemon: 9.0.0

"""


def test_daemon_version():
    assert services.parse_daemon_version(VIRSH_VERSION) == "9.0.0"


def test_a_version_without_a_daemon_is_an_error_not_a_guess():
    with pytest.raises(ValueError, match="names no daemon"):
        services.parse_daemon_version("Using library: libvirt 9.0.0\n")


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path))
    (tmp_path / "libvirt").mkdir()
    return tmp_path


@pytest.fixture
def virsh(monkeypatch, tmp_path):
    """A virsh that is a script of the test's."""

    def script(text):
        path = tmp_path / "virsh"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setattr(services, "find_program", lambda name: str(path))

    return script


def test_libvirt_that_answers(virsh):
    virsh('[ "$*" = "--connect qemu:///system uri" ] && echo qemu:///system')
    assert services.libvirt_error() is None


def test_libvirt_that_does_not_answer_says_why_in_one_line(virsh):
    virsh("printf 'error: failed to connect\\nerror: No such file\\n' >&2; exit 1")
    assert services.libvirt_error() == "error: failed to connect error: No such file"


def test_libvirt_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(services, "find_program", lambda name: None)
    assert services.libvirt_error() == "virsh is not installed"


def test_running_domains(virsh):
    virsh("printf 'overlaylab-pair-node1\\nother\\n\\n'")
    assert services.running_domains() == ["overlaylab-pair-node1", "other"]


@pytest.fixture
def daemons(cache):
    """Starts harmless processes and records them as services; ends what a test leaves."""
    started = []

    def start(*names, boot=None, ticks=0):
        for name in names:
            process = subprocess.Popen(["sleep", "60"])
            started.append(process)
            at = services.start_time(process.pid)
            _record(cache, Service(name, process.pid, at + ticks, boot or services.boot_id()))
        return started

    yield start
    for process in started:
        process.kill()
        process.wait()


def _record(cache, service):
    path = cache / "libvirt" / "services.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*rows, asdict(service)]))


def test_start_time_is_a_live_process_own(daemons):
    (process,) = daemons("libvirtd")
    ticks = services.start_time(process.pid)
    # Started within the last minute of this machine's uptime.
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 <= uptime - ticks / os.sysconf("SC_CLK_TCK") < 60
    process.kill()
    # Not reaped yet: a zombie runs no more.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert services.start_time(process.pid) is None


def test_what_runs_is_remembered_in_order(daemons):
    first, second = daemons("virtlogd", "libvirtd")
    assert [(s.name, s.pid) for s in services.started_services()] == [
        ("virtlogd", first.pid),
        ("libvirtd", second.pid),
    ]


def test_a_process_of_another_boot_is_not_ours(daemons):
    daemons("libvirtd", boot="another")
    assert services.started_services() == []


def test_a_reused_pid_is_not_ours(daemons):
    daemons("libvirtd", ticks=-1)
    assert services.started_services() == []


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "libvirtd"}]'])
def test_a_damaged_record_names_nothing(cache, text):
    (cache / "libvirt" / "services.json").write_text(text)
    assert services.started_services() == []


@pytest.fixture
def kills(monkeypatch):
    """Records who is sent a signal, on a system without kill(1), as a minimal one is."""
    pids = []

    def run(argv, why, **options):
        pids.append(int(argv[-1]))
        return subprocess.run(["/bin/sh", *argv[1:]], env={"PATH": "/nowhere"}, check=True)

    monkeypatch.setattr(root, "run_as_root", run)
    monkeypatch.setattr(services, "run_as_root", lambda argv, why: None)
    return pids


def test_the_chains_that_libvirtd_leaves_go_and_others_stay(tmp_path):
    tool = tmp_path / "iptables"
    tool.write_text(f"""#!/bin/sh
case "$*" in
"-t filter -S") printf '%s\\n' '-P INPUT ACCEPT' '-N LIBVIRT_INP' '-N DOCKER' '-A INPUT -j LIBVIRT_INP' '-A INPUT -j DOCKER' ;;
*" -S") ;;
*) echo "$*" >>{tmp_path}/calls ;;
esac
""")
    tool.chmod(0o755)
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    # Without ip6tables beside it, so that nothing of this machine's is reached.
    script = services._END_RULES.replace("ip6tables", "").replace(":/usr/sbin:/sbin", "")
    subprocess.run(["sh", "-c", script], env=path, check=True)
    assert (tmp_path / "calls").read_text().splitlines() == [
        "-t filter -D INPUT -j LIBVIRT_INP",
        "-t filter -F LIBVIRT_INP",
        "-t filter -X LIBVIRT_INP",
    ]


def test_stop_ends_libvirtd_before_virtlogd(daemons, kills, monkeypatch, cache):
    monkeypatch.setattr(services, "running_domains", lambda: [])
    log, libvirt = daemons("virtlogd", "libvirtd")
    assert services.stop_services() == ["libvirtd", "virtlogd"]
    assert kills == [libvirt.pid, log.pid]
    assert (libvirt.wait(1), log.wait(1)) == (-signal.SIGTERM, -signal.SIGTERM)
    assert not (cache / "libvirt" / "services.json").exists()
    assert services.stop_services() == []


def test_stop_leaves_libvirt_to_other_vms(daemons, kills, monkeypatch, capsys):
    monkeypatch.setattr(services, "running_domains", lambda: ["mail", "web"])
    daemons("libvirtd")
    assert services.stop_services() == []
    assert kills == []
    assert capsys.readouterr().err == "libvirt stays up: it still runs mail, web\n"


def test_stop_touches_nothing_that_was_not_started_here(daemons, kills, monkeypatch):
    monkeypatch.setattr(services, "running_domains", lambda: [])
    daemons("libvirtd", ticks=-1)
    assert services.stop_services() == []
    assert kills == []


def test_without_systemd_both_daemons_start_under_tini(cache, monkeypatch):
    calls = []

    def run(argv, why, **options):
        calls.append(argv)
        process = subprocess.Popen(["sleep", "60"])
        processes.append(process)
        return subprocess.CompletedProcess(argv, 0, stdout=f"{process.pid}\n")

    processes = []
    answers = iter(["no socket", "no socket", None])
    monkeypatch.setattr(services, "run_as_root", run)
    monkeypatch.setattr(services, "has_systemd", lambda: False)
    monkeypatch.setattr(services, "libvirt_error", lambda: next(answers))
    monkeypatch.setattr(services, "find_program", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(services, "_daemon_runs", lambda name: False)
    monkeypatch.setattr(services, "_wait_for", lambda socket: None)
    try:
        services.ensure_running()
        assert [call[4:] for call in calls] == [
            [str(cache / "libvirt" / "daemons.log"), "/sbin/virtlogd"],
            [
                str(cache / "libvirt" / "daemons.log"),
                "/sbin/libvirtd",
                "--config",
                str(cache / "libvirt" / "libvirtd.conf"),
            ],
        ]
        assert all("setsid tini -s --" in call[2] for call in calls)
        config = (cache / "libvirt" / "libvirtd.conf").read_text().splitlines()
        assert 'unix_sock_group = "libvirt"' in config
        assert 'unix_sock_rw_perms = "0770"' in config
        assert 'auth_unix_rw = "none"' in config
        assert [(s.name, s.pid) for s in services.started_services()] == [
            ("virtlogd", processes[0].pid),
            ("libvirtd", processes[1].pid),
        ]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_the_start_script_prints_the_pid_of_a_session_leader(cache, monkeypatch, tmp_path):
    """The script itself, with sleep in tini's place: $! must be the process that lives on."""
    captured = []

    def run(argv, why, **options):
        captured.append(argv[2])
        return subprocess.CompletedProcess(argv, 1, stdout="")

    monkeypatch.setattr(services, "run_as_root", run)
    monkeypatch.setattr(services, "find_program", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(services, "_daemon_runs", lambda name: False)
    with pytest.raises(UserError, match="virtlogd: must start"):
        services._start_daemons()
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "tini").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (fake / "tini").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", captured[0], "start", str(tmp_path / "log"), "sleep", "60"],
        env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    pid = int(done.stdout)
    try:
        deadline = time.monotonic() + 5
        while os.getsid(pid) != pid and time.monotonic() < deadline:
            time.sleep(0.01)
        assert os.getsid(pid) == pid
    finally:
        os.kill(pid, signal.SIGKILL)


def test_with_systemd_the_packaged_service_is_started(monkeypatch):
    calls = []
    answers = iter(["no socket", None])
    monkeypatch.setattr(
        services,
        "run_as_root",
        lambda argv, why, **options: (
            calls.append((argv, why)) or subprocess.CompletedProcess(argv, 0, stdout="")
        ),
    )
    monkeypatch.setattr(services, "has_systemd", lambda: True)
    monkeypatch.setattr(services, "libvirt_error", lambda: next(answers))
    services.ensure_running()
    assert calls == [(["systemctl", "start", "libvirtd"], "starting the service libvirtd (no socket)")]


def test_a_libvirt_that_stays_silent_is_a_user_error(monkeypatch):
    monkeypatch.setattr(services, "_START_WAIT", 0.0)
    monkeypatch.setattr(
        services, "run_as_root", lambda argv, why, **options: subprocess.CompletedProcess(argv, 1)
    )
    monkeypatch.setattr(services, "has_systemd", lambda: True)
    monkeypatch.setattr(services, "libvirt_error", lambda: "no socket")
    with pytest.raises(UserError) as error:
        services.ensure_running()
    assert str(error.value) == (
        "libvirt at qemu:///system: must answer within 0 s of its start (found: no socket). Read journalctl -u "
        "libvirtd, then type `./task setup` again"
    )


@pytest.mark.parametrize(("ids", "runs"), [("7", True), ("7\t1", False)])
def test_a_daemon_in_a_container_is_none_of_this_machine(tmp_path, ids, runs):
    process = tmp_path / "7"
    process.mkdir()
    (process / "comm").write_text("libvirtd\n")
    (process / "status").write_text(f"Name:\tlibvirtd\nNSpid:\t{ids}\n")
    assert services._daemon_runs("libvirtd", tmp_path) is runs
