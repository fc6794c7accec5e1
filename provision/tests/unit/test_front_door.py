"""./task before its toolchain is there: the one package that it may need, the lock, a disk that fills."""

import fcntl
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from overlaylab.core.paths import ROOT
from overlaylab.machine import apt, packages

LIBRARY = ROOT / "provision/toolchain/packages.sh"
INSTALL = "install_package python3-venv"
TOOLS = ("sh", "stat", "cat", "sleep", "env", "grep", "tail", "paste", "sed", "printf")


@pytest.fixture
def machine(tmp_path):
    """An ordinary user's machine of scripts: machine(NAME="text") adds a program; machine.type(shell text) runs it."""

    class Machine:
        path = tmp_path / "bin"

        def __call__(self, **programs):
            for name, text in programs.items():
                program = self.path / name.replace("_", "-")
                program.write_text(f"#!/bin/sh\n{text}\n")
                program.chmod(0o755)

        def type(self, text=INSTALL):
            script = f"""
                set -eu
                user=mona
                fail() {{ printf 'overlaylab: %s\\n' "$*" >&2; exit 2; }}
                apt_get() {{ $sudo apt-get "$@"; }}
                . {LIBRARY}
                apt_locks={tmp_path}/lock apt_wait=1
                {text}"""
            return subprocess.run(
                [self.path / "sh", "-c", script], env={"PATH": str(self.path)}, text=True, capture_output=True,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip

        def calls(self):
            return (tmp_path / "calls").read_text().splitlines()

    there = Machine()
    there.path.mkdir()
    for name in TOOLS:
        (there.path / name).symlink_to(shutil.which(name))
    calls = tmp_path / "calls"
    there(
        id="echo 1000",
        sudo=f'echo "sudo $*" >>{calls}; shift; exec "$@"',
        true="exit 0",
        apt_get=f'echo "$DEBIAN_FRONTEND apt-get $*" >>{calls}',
    )
    return there


def test_apt_is_called_as_host_packages_calls_it(machine, monkeypatch):
    done = machine.type()
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "overlaylab: installing the package python3-venv with apt-get (with sudo)\n"
    called = []

    def run(argv, why, **options):
        called.append(argv)
        return subprocess.CompletedProcess(argv, 0, stdout="", stderr="")

    monkeypatch.setattr(packages, "run_as_root", run)
    monkeypatch.setattr(packages, "prefix", lambda argv: [])
    monkeypatch.setattr(apt, "LOCKS", ())
    packages.install(["python3-venv"])
    expected = [" ".join(argv).replace("Timeout=300", "Timeout=1") for argv in called]
    sudo = [call.removeprefix("sudo -n ") for call in machine.calls() if call.startswith("sudo -n env")]
    assert sudo == expected


def test_no_sudo_says_what_root_is_to_type(machine):
    (machine.path / "sudo").unlink()
    done = machine.type()
    assert (done.returncode, done.stderr) == (
        2,
        "overlaylab: package python3-venv: must be installed by root, and there is no sudo (found: user mona). "
        "Install sudo and let mona use it, or have root type: apt-get update && apt-get install "
        "--no-install-recommends python3-venv; then type the command again\n",
    )


def test_sudo_that_would_ask_is_one_paragraph_before_anything_is_done(machine, tmp_path):
    machine(sudo="echo 'sudo: a password is required' >&2; exit 1")
    done = machine.type()
    assert (done.returncode, done.stderr) == (
        2,
        "overlaylab: sudo: must not need a password where no terminal can ask for it (found: sudo: a password is "
        "required). Type the command in a terminal once, or have root type: apt-get update && apt-get install "
        "--no-install-recommends python3-venv; then type it again\n",
    )
    assert not (tmp_path / "calls").exists()


def test_a_system_without_apt_is_told_what_is_missing(machine):
    (machine.path / "apt-get").unlink()
    done = machine.type()
    assert done.returncode == 2
    assert done.stderr.startswith(
        "overlaylab: system: must be Debian or Ubuntu, or have Python's modules venv"
    )


def test_a_held_lock_is_waited_for_and_its_holder_is_named(machine, tmp_path):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        done = machine.type()
    name = Path("/proc/self/comm").read_text().strip()
    holder = f"{name}, process {os.getpid()}"
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        2,
        [
            f"overlaylab: packages are being installed by {holder}: waiting for it, 1 s at most",
            f"overlaylab: apt: must not be in use by another program (found: {holder}, for 1 s). Wait until that "
            "ends, then type the command again; nothing was changed",
        ],
    )
    assert not [call for call in machine.calls() if "apt-get" in call]
    assert machine.type().returncode == 0  # the file is still there, and nobody holds it


def test_a_broken_source_does_not_stop_the_installation(machine):
    machine(
        apt_get='case "$*" in *update) echo "E: The repository x has no Release file." >&2; exit 100;; esac'
    )
    done = machine.type()
    assert (done.returncode, "Release" in done.stderr) == (0, False)


def test_where_the_installation_fails_too_the_broken_source_is_named(machine):
    machine(
        apt_get='case "$*" in *update) echo "E: The repository x has no Release file." >&2; exit 100;; esac\n'
        'echo "Reading…"; echo "E: Unable to locate package python3-venv" >&2; exit 100'
    )
    done = machine.type()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "overlaylab: package python3-venv: must be installed once (found: E: The repository x has no Release file. | "
        "E: Unable to locate package python3-venv). Check the network, and the package sources that are named, "
        "then type the command again",
    )


def test_a_full_disk_is_told_from_a_broken_source(machine):
    machine(apt_get='echo "E: Write error - write (28: No space left on device)" >&2; exit 100')
    assert "Free some disk (apt-get clean, as root, removes downloaded packages)" in machine.type().stderr


_STATE = """echo "apt-get $*" | sed 's/--[oqy][^ ]* //g' >>{0}/done
case "$*" in
    *update) ;;
    *--fix-broken*) rm -f {0}/unmet;;
    *) for state in held interrupted unmet; do if [ -e {0}/$state ]; then cat {0}/$state >&2; exit 100; fi; done;;
esac"""
"""An apt-get that fails by what the files held, interrupted and unmet say, while they are there."""


@pytest.fixture
def cut_off(machine, tmp_path):
    """cut_off(held=…, interrupted=…, unmet=…): a machine whose apt-get complains so; dpkg and waiting put it right."""

    def make(dpkg=f"rm -f {tmp_path}/interrupted", **complaints):
        (machine.path / "rm").symlink_to(shutil.which("rm"))
        machine(apt_get=_STATE.format(tmp_path), dpkg=f'echo "dpkg $*" >>{tmp_path}/done; {dpkg}')
        for name, text in complaints.items():
            (tmp_path / name).write_text(f"E: {text}\n")
        return machine

    return make


def test_an_installation_that_was_cut_off_is_ended_and_announced(cut_off, tmp_path):
    machine = cut_off(
        interrupted="dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
        unmet="Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).",
    )
    done = machine.type()
    assert (done.returncode, done.stderr.splitlines()[1:]) == (
        0,
        [
            "overlaylab: an earlier installation was cut off: ending it with dpkg --configure -a (with sudo)",
            "overlaylab: an earlier installation was cut off: ending it with apt-get --fix-broken install (with sudo)",
        ],
    )
    install = "apt-get --no-install-recommends install python3-venv"
    assert (tmp_path / "done").read_text().splitlines() == [
        "apt-get update", install, "dpkg --configure -a", install,
        "apt-get --no-install-recommends --no-remove --fix-broken install", install,
    ]  # fmt: skip


def test_what_cannot_be_ended_is_tried_once_and_told(cut_off, tmp_path):
    said = "dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
    done = cut_off("echo 'dpkg: error processing package x' >&2; exit 1", interrupted=said).type()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        f"overlaylab: package python3-venv: must be installed once (found: dpkg: error processing package x | E: {said}). "
        "Put right what is named; dpkg --configure -a and apt-get --fix-broken install, as root, try again, then type "
        "the command again",
    )
    assert (tmp_path / "done").read_text().count("dpkg --configure") == 1


def test_a_program_that_was_faster_is_waited_for_once_more(cut_off, tmp_path):
    machine = cut_off(held="Could not get lock /var/lib/dpkg/lock. It is held by process 7 (apt-get)")
    done = machine.type(f"wait_for_apt() {{ [ ! -e {tmp_path}/done ] || rm -f {tmp_path}/held; }}; {INSTALL}")
    assert (done.returncode, len((tmp_path / "done").read_text().splitlines())) == (0, 3)
    (tmp_path / "held").write_text(
        "E: Could not get lock /var/lib/dpkg/lock. It is held by process 7 (apt-get)\n"
    )
    assert "Wait until the program that is named ends, then type" in machine.type().stderr


@pytest.mark.parametrize(("index", "lacks"), [("Package: tini\n", True), ("Package: python3-venv\n", False)])
def test_a_package_that_an_older_bundle_lacks_is_told_as_such(machine, tmp_path, index, lacks):
    machine(apt_get='echo "E: Unable to locate package python3-venv" >&2; exit 100')
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/Packages").write_text(index)
    said = machine.type(f"bundle={tmp_path}; {INSTALL}").stderr
    assert ("The bundle does not hold it: make one of this checkout, or move" in said) is lacks


_TRACES = re.compile(r"(?<= )(?=/(?:sys/class/net|var/lib/lxc|run/libvirt|etc/libvirt)/\S*\*)")


@pytest.fixture
def checkout(tmp_path):
    """./task with a Python whose venv is made by a script: checkout(text of its pip, words) types it.

    Of this machine's nodes it sees none: where it looks for them is below the test's own folder.
    """
    folder = tmp_path / "overlaylab"
    (folder / "provision/toolchain").mkdir(parents=True)
    shutil.copy(ROOT / "task", folder)
    (folder / "task").write_text(_TRACES.sub(f"{tmp_path}/system", (ROOT / "task").read_text()))
    (folder / "provision/toolchain/requirements.txt").write_text("x==1\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").write_text(
        '#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exit 0\n'
        f'mkdir -p "$3/bin" && cp {programs}/pip "$3/bin/python" && echo made >>{tmp_path}/made\n'
    )
    (programs / "python3").chmod(0o755)

    def begin(pip, *words, cache=tmp_path / "cache", typed=("--with-tools", "echo", "ready")):
        (programs / "pip").write_text(f"#!/bin/sh\n{pip}\n")
        (programs / "pip").chmod(0o755)
        named = {"OVERLAYLAB_CACHE": str(cache)} if cache else {}
        return subprocess.Popen(
            [folder / "task", *typed, *words],
            env={"PATH": f"{programs}:/usr/bin:/bin", **named},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


def test_a_disk_that_fills_leaves_nothing_and_says_what_to_free(checkout, tmp_path):
    out, err = checkout("echo 'OSError: [Errno 28] No space left on device' >&2; exit 1").communicate()
    assert (out, [path.name for path in (tmp_path / "cache/toolchain").iterdir()]) == ("", [".lock"])
    assert err.splitlines()[-1].startswith(
        f"overlaylab: disk below {tmp_path}/cache: must have room for the toolchain, some 1.2 GB (found: "
    )
    assert checkout("exit 0").communicate()[0] == "ready\n"


_UV = """case "$*" in
    *"config list") printf "%s\\n" ":env:.cert='/own/ca.pem'" "global.cert='/other'" "global.index-url='https://own/'";;
    *uv.txt) echo "pip $*" >>asked; cp programs/uv "${0%python}uv";;
    *) echo "pip $*" >>asked;;
esac"""


@pytest.mark.parametrize(("uv", "then_pip"), [("exit 0", False), ("echo 'no route' >&2; exit 2", True)])
def test_uv_installs_by_what_pip_is_told_and_pip_where_it_cannot(checkout, tmp_path, uv, then_pip):
    programs = tmp_path / "programs"
    (programs / "uv").write_text(
        f'#!/bin/sh\necho "uv $* $UV_DEFAULT_INDEX $SSL_CERT_FILE $UV_INDEX $UV_CACHE_DIR" >>{tmp_path}/asked\n{uv}\n'
    )
    (programs / "uv").chmod(0o755)
    lock = tmp_path / "overlaylab/provision/toolchain/requirements.txt"
    lock.write_text("tx==3 \\\n    --hash=sha256:1\nuv==2 \\\n    --hash=sha256:2\n    # via lint\nx==1\n")
    pip = f"cd {tmp_path}\n{_UV.replace('cp programs', 'sed -n p $TMPDIR/uv.txt >>asked; cp programs')}"
    out, err = checkout(pip).communicate()
    assert (out, len(err.splitlines())) == (
        "ready\n",
        1,
    )  # what uv had against it is told where pip fails too
    asked = (tmp_path / "asked").read_text()
    assert asked.splitlines()[1:4] == ["uv==2 \\", "    --hash=sha256:2", "    # via lint"]
    installs = [line for line in asked.splitlines() if line.startswith(("pip", "uv p"))]
    assert "--require-hashes --only-binary :all:" in installs[1]
    assert installs[1].endswith(f"-r {lock} https://own/ /own/ca.pem  {tmp_path}/cache/uv")
    assert [line.split()[0] for line in installs] == ["pip", "uv", *(["pip"] if then_pip else [])]


def test_a_call_that_was_killed_stands_in_nobodys_way(checkout, tmp_path):
    first = checkout("touch $TMPDIR/begun; exec sleep 0.5")
    while not list((tmp_path / "cache").glob("toolchain/*.tmp/begun")):
        assert first.poll() is None
        time.sleep(0.02)
    first.kill()
    out, err = checkout("exit 0").communicate()
    first.communicate()
    # Its pip lives on for half a second, and holds the lock as long.
    assert (out, err.splitlines()[0]) == (
        "ready\n",
        "overlaylab: another ./task is installing the toolchain: waiting for it",
    )
    assert (tmp_path / "made").read_text() == "made\nmade\n"


def test_two_first_calls_install_once(checkout, tmp_path):
    calls = [checkout("sleep 0.3"), checkout("sleep 0.3")]
    assert [call.communicate()[0] for call in calls] == ["ready\n", "ready\n"]
    assert (tmp_path / "made").read_text() == "made\n"


@pytest.mark.parametrize(
    ("held", "entered"),
    [
        ("mona", ["libvirt", "kvm", "mona"]),
        ("mona libvirt", ["kvm", "mona"]),  # a later sg inside pytest would take its output along
        ("mona kvm", ["libvirt", "mona"]),
        ("mona libvirt kvm", []),
        ("mona libvirt 54321", ["kvm", "mona"]),
    ],
)
def test_groups_joined_since_the_login_are_entered(checkout, tmp_path, held, entered):
    for name, text in {
        # id(1) fails where a group has no name.
        "id": f'held="{held}"; case $1 in -u) echo 1000;; -un | -gn) echo mona;; -nG) echo "{held}"; [ "{held}" = "${{held%54321}}" ];; esac',
        "getent": 'echo "$2:x:7:anna,mona"',
        "sg": f'echo "$1" >>{tmp_path}/entered; [ "$2" = -c ] && exec sh -c "$3"',
    }.items():
        (tmp_path / "programs" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "programs" / name).chmod(0o755)
    typed = ["it's", "a b", "$HOME", 'c"d']
    assert checkout("exit 0", *typed).communicate()[0] == f"ready {' '.join(typed)}\n"
    log = tmp_path / "entered"
    assert (log.read_text().split() if log.exists() else []) == entered


def test_a_default_cache_folder_that_somebody_else_made_is_refused_with_all_in_it(checkout, tmp_path):
    name = f"overlaylab-test-{os.getpid()}"
    (tmp_path / "programs" / "id").write_text(
        f"#!/bin/sh\ncase $1 in -un) echo {name[11:]};; *) exec /usr/bin/id $1;; esac\n"
    )
    (tmp_path / "programs" / "id").chmod(0o755)
    assert checkout("exit 0").communicate()[0] == "ready\n"
    link = Path("/var/tmp") / name
    link.symlink_to(tmp_path / "cache")  # with a toolchain that is complete
    try:
        out, err = checkout("exit 0", cache=None).communicate()
    finally:
        link.unlink()
    assert (out, err) == (
        "",
        f"overlaylab: the cache folder {link} belongs to somebody else; "
        "set OVERLAYLAB_CACHE to a folder of your own outside your home\n",
    )


_TASK = """[ "$1 $2" = "-m overlaylab" ] && echo "python $*"
printf '#!/bin/sh\\necho "task $*"\\n' >"${0%python}task" && chmod 755 "${0%python}task\""""


@pytest.mark.parametrize(
    "words",
    [
        ["lab:destroy"],
        ["--yes", "lab:destroy", "KEEP_CACHE=1"],
        ["lab:destroy", "-y", "CLUSTER=pair"],
    ],
)
def test_where_nothing_is_left_no_tools_are_fetched_to_remove_it(checkout, tmp_path, words):
    call = checkout("exit 1", typed=words)
    assert (*call.communicate(), call.returncode) == (
        "",
        f"overlaylab: nothing is left to remove: there is no cache folder {tmp_path}/cache\n",
        0,
    )
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("words", "done"),
    [
        (["lab:weave", "lab:destroy"], "task --exit-code lab:weave lab:destroy"),
        (["lab:ssh", "--", "lab:destroy"], "task --exit-code lab:ssh -- lab:destroy"),
        (["lab:destroy", "--help"], "python -m overlaylab task-help lab:destroy"),
        (["-h", "lab:destroy"], "python -m overlaylab task-help lab:destroy"),
        (["--summary", "lab:destroy"], "task --exit-code --summary lab:destroy"),
        (["--with-tools", "echo", "lab:destroy"], "lab:destroy"),
    ],
)
def test_a_command_that_only_names_the_removal_is_done(checkout, words, done):
    call = checkout(_TASK, typed=words)
    assert (call.communicate()[0], call.returncode) == (f"{done}\n", 0)


@pytest.mark.parametrize(
    "trace",
    [
        "sys/class/net/ovlab-mgmt",
        "var/lib/lxc/overlaylab-pair-node1",
        "run/libvirt/qemu/1-overlaylab-pair-node1.monitor",
        "run/libvirt/qemu/overlaylab-pair-node1.pid",
        "run/libvirt/network/overlaylab-pair.xml",
        "etc/libvirt/qemu/overlaylab-pair-node1.xml",
        "etc/libvirt/qemu/networks/overlaylab-management.xml",
    ],
)
def test_nodes_without_their_cache_folder_are_something_to_remove(checkout, tmp_path, trace):
    (tmp_path / "system" / trace).mkdir(parents=True)
    assert checkout(_TASK, typed=["--yes", "lab:destroy"]).communicate()[0] == (
        "task --exit-code --yes lab:destroy\n"
    )


def test_what_libvirt_notes_of_networks_that_were_is_nothing_to_remove(checkout, tmp_path):
    """It stays until the next boot, and brought 900 MB of tools back to find nothing."""
    for note in ("overlaylab-pair", "overlaylab-pair.pid"):
        (tmp_path / "system" / "run/libvirt/network" / note).mkdir(parents=True)
    said = checkout(_TASK, typed=["--yes", "lab:destroy"]).communicate()
    assert (said[0], "nothing is left to remove" in said[1]) == ("", True)
