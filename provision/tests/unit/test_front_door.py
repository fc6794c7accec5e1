"""The front door, ./task, before its toolchain is there: the lock, a disk that fills, what lab:destroy needs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from overlaylab.core.paths import ROOT

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


def test_a_log_is_told_what_was_typed_by_the_task_itself_alone(checkout, tmp_path):
    go_task = 'printf "#!/bin/sh\nprintenv OVERLAYLAB_TYPED" >"${0%python}task"; chmod +x "${0%python}task"'
    assert checkout(go_task, typed=("lab:up", "SEED=1")).communicate()[0] == "./task lab:up SEED=1\n"
    within = f"OVERLAYLAB_TYPED=outer {tmp_path}/overlaylab/task --with-tools sh -c 'echo ${{OVERLAYLAB_TYPED-none}}'"
    assert checkout(go_task, "sh", "-c", within, typed=("--with-tools",)).communicate()[0] == "none\n"


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


@pytest.mark.parametrize("wheel", ["locked", "another", "none"])
def test_out_of_a_bundle_uv_runs_if_it_is_the_locked_one(tmp_path, wheel):
    """By itself: no pip is there to compare it with the lock file first."""
    body = (ROOT / "task").read_text()
    function = body[body.index("make_toolchain() {") : body.index("# $1: pip or uv's path")]
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(tmp_path / "uv.whl", "w") as archive:
        archive.writestr("uv-2.data/scripts/uv", "#!/bin/sh\n")
    if wheel != "none":
        (wheels / "uv-2-py3.whl").write_bytes((tmp_path / "uv.whl").read_bytes())
    digest = hashlib.sha256((tmp_path / "uv.whl").read_bytes()).hexdigest()
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"uv==2 \\\n    --hash=sha256:{digest if wheel != 'another' else '0' * 64}\n")
    script = f"""set -eu
{function}
install_wheels() {{ echo "${{1##*/}} $2"; }}
tools={tmp_path}/tools python={sys.executable} wheels={wheels} lock={lock} OVERLAYLAB_CACHE={tmp_path}
make_toolchain"""
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    if wheel == "locked":
        assert (done.returncode, done.stdout) == (0, f"uv {lock}\n")
        assert not (tmp_path / "tools/bin/pip").exists()
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(f": must be the one that {lock} pins\n")
