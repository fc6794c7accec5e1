"""What the roles share on a node: the etcd that some keep their state in, and calling a CNI plugin."""

import importlib
import json
import os
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.paths import ROLES

COMMON = ROLES / "overlay_common" / "files"
SETTINGS = """MEMBERS="192.0.2.11 192.0.2.12"
ENDPOINTS=http://192.0.2.11:2379,http://192.0.2.12:2379
ADDRESS={address}
"""
TAKEN = (
    '{"level":"fatal","ts":"2026-11-21T13:00:00.000Z","caller":"etcdmain/etcd.go:271","msg":"discovery failed",'
    '"error":"listen tcp 192.0.2.11:2380: bind: address already in use"}'
)
BEHIND = "panic: tocommit(11) is out of range [lastIndex(2)]. Was the raft log corrupted, truncated, or lost?"


class Node:
    """A node's tools, each a script that answers as it is told; what was called is in `calls`."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "settings").write_text(SETTINGS.format(address=address))
        (folder / "uptime").write_text("1.00 1.00\n")
        self.tool("systemctl", '[ "$1" = start ] || [ ! -e "$FOLDER/ended" ]')
        self.tool("journalctl", 'cat "$FOLDER/journal"')
        self.tool("ping", '[ ! -e "$FOLDER/no-ping" ]')
        # Time passes only here: no test waits.
        self.tool(
            "sleep", 'read -r now _ <"$FOLDER/uptime"; echo "$((${now%.*} + 1)).00 0" >"$FOLDER/uptime"'
        )

    def tool(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$FOLDER/calls"\n{script}\n')
        path.chmod(0o755)

    def answers(self, own: str = "false", **codes: int | str) -> None:
        """What curl finds: {port of the peer: curl's exit code, or the answer}; own: the own member's health."""
        cases = [
            f"*192.0.2.12:{port[1:]}/*) {f'exit {code}' if isinstance(code, int) else f'echo {code!r}; exit 0'} ;;"
            for port, code in codes.items()
        ]
        quiet = "case $* in *'--output /dev/null'*) exec >/dev/null ;; esac"
        self.tool(
            "curl", f'{quiet}\ncase $* in\n{chr(10).join(cases)}\n*) echo \'{{"health":"{own}"}}\' ;;\nesac'
        )

    def start(self) -> subprocess.CompletedProcess[str]:
        script = (COMMON / "etcd.sh").read_text()
        script = script.replace("/run/overlaylab/etcd/settings", str(self.folder / "settings"))
        script = script.replace("/proc/uptime", str(self.folder / "uptime"))
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "FOLDER": str(self.folder)}
        return subprocess.run(
            ["sh", "-uec", script + "\netcd_start 5"], env=environment, capture_output=True, text=True
        )

    @property
    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def member(tmp_path: Path) -> Node:
    node = Node(tmp_path, "192.0.2.11")
    (tmp_path / "journal").write_text("")
    return node


def test_a_cluster_whose_members_say_that_they_are_healthy_is(member):
    member.answers("true", p2379='{"health":"true"}')
    done = member.start()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_members_run_etcd(tmp_path):
    client = Node(tmp_path, "192.0.2.13")
    client.answers("true", p2379='{"health":"true"}')
    assert client.start().returncode == 0
    assert [call for call in client.calls if call.startswith("systemctl")] == []


def test_a_member_that_only_this_node_cannot_reach_is_named(member):
    member.answers("true", p2379=28, p2380="{}")
    done = member.start()
    assert "192.0.2.12 does not answer on 2379/tcp: a firewall drops the packets" in done.stderr


@pytest.mark.parametrize(
    ("answers", "ping", "words"),
    [
        (
            {"p2379": 7, "p2380": 7},
            True,
            "192.0.2.12 refuses connections on 2380/tcp: etcd does not run there, or a firewall rejects them",
        ),
        (
            {"p2379": '{"health":"false"}', "p2380": 28},
            True,
            "192.0.2.12 does not answer on 2380/tcp: a firewall drops the packets, or the node is down",
        ),
        (
            {"p2379": 28, "p2380": 28},
            False,
            "192.0.2.12 does not answer on 2380/tcp: a firewall drops the packets, or the node is down; it does "
            "not answer a ping on the underlay either",
        ),
        (
            {"p2379": 28, "p2380": "{}"},
            True,
            "192.0.2.12 does not answer on 2379/tcp: a firewall drops the packets, or the node is down",
        ),
        (
            {"p2379": '{"health":"false"}', "p2380": "{}"},
            True,
            "its members answer each other, but have no leader: etcd's words",
        ),
    ],
)
def test_the_cause_is_named_when_the_time_is_over(member, answers, ping, words):
    member.answers(**answers)
    (member.folder / "journal").write_text("etcd's words\n")
    if not ping:
        (member.folder / "no-ping").touch()
    done = member.start()
    assert done.returncode == 1
    assert done.stderr == f"etcd is not healthy after 5 s; {words}\n"


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        (TAKEN, "etcd ended: its port 2379/tcp or 2380/tcp on 192.0.2.11 is taken; `ss -lntp"),
        (BEHIND, "etcd ended: the other member runs since before this node was reset; reset all nodes"),
        ("out of memory", "etcd ended: out of memory"),
    ],
)
def test_a_member_that_ends_is_not_waited_for(member, journal, words):
    member.answers(p2379=7, p2380=7)
    (member.folder / "journal").write_text(journal)
    (member.folder / "ended").touch()
    done = member.start()
    assert done.returncode == 1
    assert done.stderr.startswith(words)
    assert not any(call.startswith("sleep") for call in member.calls)


PLUGIN = """#!/bin/sh
printf '%s\\n' "$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME $CNI_PATH $0"
cat
exit "${CODE:-0}"
"""
CONFIGURATION = '{"cniVersion":"0.3.1","name":"overlaylab", "type": "flannel","delegate":{"type":"bridge"}}'


def call_plugin(
    folder: Path, folders: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    for name in ("one", "two"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "two" / "flannel").write_text(PLUGIN)
    (folder / "two" / "flannel").chmod(0o755)
    script = f"{(COMMON / 'common.sh').read_text()}\ncni ADD '{CONFIGURATION}' ovl {folders}"
    return subprocess.run(
        ["sh", "-uc", script, "sh", *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
    )


def test_a_second_endpoint_has_another_name_from_its_first_letters_on(tmp_path):
    """Weave's plugin takes seven of them for its device, Calico's eleven."""
    done = call_plugin(tmp_path, f"{tmp_path}/two", "endpoint2")
    assert done.stdout.startswith("ADD 2endpoint2 /run/netns/endpoint2 ovl ")


@pytest.mark.parametrize("code", [0, 1])
def test_a_plugin_is_found_by_its_type_and_called_for_the_endpoint(tmp_path, code):
    folders = f"{tmp_path}/one:{tmp_path}/two"
    done = call_plugin(tmp_path, folders, CODE=str(code))
    called, configuration = done.stdout.splitlines()
    assert called == f"ADD endpoint /run/netns/endpoint ovl {folders} {tmp_path}/two/flannel"
    assert json.loads(configuration) == json.loads(CONFIGURATION)
    assert done.returncode == code


def test_a_plugin_that_is_nowhere_is_named(tmp_path):
    done = call_plugin(tmp_path, f"{tmp_path}/one")
    assert done.returncode == 1
    assert done.stdout == f"there is no CNI plugin flannel in {tmp_path}/one\n"


def test_the_modules_that_came_are_noted_once_the_endpoints_have_answered() -> None:
    """Felix is healthy before it has the endpoint's rules, which bring a module: it stayed after the reset."""
    assert "record_after" not in (COMMON / "wait.sh").read_text()
    verify = (ROLES / "overlay_common" / "tasks" / "verify.yml").read_text()
    assert verify.index("ping -n -q") < verify.index("{% endfor %}") < verify.index("\n      record_after\n")


@pytest.mark.parametrize(
    ("folders", "asked"),
    [
        (["lib/modules/6.1"], "macvlan numdummies=0\n"),
        (["lib/modules/6.1", "sys/module/macvlan"], ""),
        # A container: none of its kernel's modules are there to be loaded, and macvlan may well be built in.
        (["lib/modules"], ""),
    ],
)
def test_modules_are_asked_for_where_the_node_has_its_kernels(tmp_path, folders, asked):
    for name in folders:
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    log = tmp_path / "asked"
    log.touch()
    script = (COMMON / "common.sh").read_text()
    script = script.replace('"/sys/module', f'"{tmp_path}/sys/module').replace(
        '"/lib/modules', f'"{tmp_path}/lib/modules'
    )
    fakes = f'uname() {{ echo 6.1; }}\nmodprobe() {{ echo "$@" >>{log}; }}'
    subprocess.run(["sh", "-euc", f"{script}\n{fakes}\nneed_module macvlan numdummies=0"], check=True)
    assert log.read_text() == asked


SETTINGS_BEFORE = {
    "ip_forward": "0",
    "conf/all/forwarding": "0",
    "conf/eth1/forwarding": "1",
    "tcp_rmem": "4096\t131072\t6291456",
}


def test_kernel_settings_come_back_in_the_order_that_they_were_noted(tmp_path, monkeypatch):
    """ip_forward sets every device's forwarding in a kernel: a device that differed has to be written after it."""
    sysctls, state = tmp_path / "sys", tmp_path / "state"
    state.mkdir()
    for name, value in SETTINGS_BEFORE.items():
        path = sysctls / "net/ipv4" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    script = (COMMON / "common.sh").read_text().replace("state=/run/overlaylab/overlay", f"state={state}")
    script = script.replace("/proc/sys", str(sysctls))
    record = "record_sysctls net/ipv4/ip_forward net/ipv4/conf/*/forwarding net/ipv4/tcp_rmem net/ipv4/absent"
    subprocess.run(["sh", "-ec", f"{script}\n{record}"], check=True)
    for name in SETTINGS_BEFORE:
        (sysctls / "net/ipv4" / name).write_text("9\n")
    # Recorded once: a second start must not take the overlay's own settings for the node's.
    subprocess.run(["sh", "-ec", f"{script}\n{record}"], check=True)

    monkeypatch.syspath_prepend(str(COMMON))
    traces = importlib.import_module("traces")
    monkeypatch.setattr(traces, "STATE", str(state))
    monkeypatch.setattr(traces, "SYSCTLS", str(sysctls))
    written = []
    real = open
    monkeypatch.setattr(
        "builtins.open", lambda path, mode="r": (mode == "w" and written.append(path), real(path, mode))[1]
    )
    traces.restore_sysctls()
    monkeypatch.undo()
    found = {name: (sysctls / "net/ipv4" / name).read_text().split() for name in SETTINGS_BEFORE}
    assert found == {name: value.split() for name, value in SETTINGS_BEFORE.items()}
    order = [Path(path).relative_to(sysctls / "net/ipv4").as_posix() for path in written]
    assert order == ["ip_forward", "conf/all/forwarding", "conf/eth1/forwarding", "tcp_rmem"]


def test_settings_that_are_as_before_and_those_of_devices_that_went_are_not_written(tmp_path, monkeypatch):
    (tmp_path / "kept").write_text("1\n")
    (tmp_path / "kept").chmod(0o400)
    (tmp_path / "sysctls.before").write_text("kept 1\nconf/cali1/forwarding 1\n")
    monkeypatch.syspath_prepend(str(COMMON))
    traces = importlib.import_module("traces")
    monkeypatch.setattr(traces, "STATE", str(tmp_path))
    monkeypatch.setattr(traces, "SYSCTLS", str(tmp_path))
    before = (tmp_path / "kept").stat().st_mtime_ns
    traces.restore_sysctls()
    assert (tmp_path / "kept").stat().st_mtime_ns == before
    assert not (tmp_path / "conf").exists()


# -- addresses --------------------------------------------------------------------------------------


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROLES / "overlay_common" / "filter_plugins"))
    return importlib.import_module("overlay_addresses")


def test_every_node_has_an_address_and_a_block_of_its_own(addresses):
    assert [addresses.overlay_address("10.50.0.0/16", n) for n in (1, 2, 256)] == [
        "10.50.0.1",
        "10.50.0.2",
        "10.50.1.0",
    ]
    assert [addresses.overlay_block("10.61.0.0/16", n) for n in (1, 255)] == [
        "10.61.1.0/24",
        "10.61.255.0/24",
    ]
    assert addresses.overlay_block("192.168.128.0/23", 1) == "192.168.129.0/24"
    assert addresses.overlay_block("10.96.0.0/12", 17, 28) == "10.96.1.16/28"


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("overlay_address", ("10.50.0.0/30", 3), "the range 10.50.0.0/30 has no address for node 3"),
        ("overlay_block", ("10.61.0.0/24", 1), r"the range 10.61.0.0/24 has no /24 for node 1: choose a larger"),
        ("overlay_block", ("10.61.0.0/16", 256), "the range 10.61.0.0/16 has no /24 for node 256"),
        ("overlay_block", ("10.61.0.1/16", 1), "the range must be an IPv4 network such as 10.50.0.0/16: 10.61.0.1"),
    ],
)  # fmt: skip
def test_a_range_that_is_too_small_or_none_is_named(addresses, call, arguments, message):
    with pytest.raises(addresses.AnsibleFilterError, match=message):
        getattr(addresses, call)(*arguments)


@pytest.mark.parametrize(
    ("tcpdump", "said"),
    [
        (
            "exit 0",
            "; its packets (`udp port 8472`) arrive here: look there",
        ),
        (
            "exit 124",
            "; none of its packets (`udp port 8472`) arrives here: a firewall drops them on the way, or the other "
            "node does not send them",
        ),
    ],
)
def test_why_a_peer_does_not_answer_is_looked_for_on_the_underlay(tmp_path, tcpdump, said):
    for name, script in (("tcpdump", f'echo "$*" >>{tmp_path}/calls; {tcpdump}'), ("ip", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    arguments = ["10.244.9.2", "192.0.2.12", "eth1", "look there", "udp port 8472"]
    done = subprocess.run(
        ["sh", str(COMMON / "no-reply.sh"), *arguments],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"the endpoint 10.244.9.2 does not answer although the overlay says that it is connected{said}\n"
    )
    assert (tmp_path / "calls").read_text() == (
        "-i eth1 -n -p --immediate-mode -c 1 (src host 192.0.2.12 or src host 10.244.9.2) and (udp port 8472)\n"
    )


def test_without_a_filter_nothing_is_captured(tmp_path):
    (tmp_path / "tcpdump").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    (tmp_path / "tcpdump").chmod(0o755)
    done = subprocess.run(
        ["sh", str(COMMON / "no-reply.sh"), "10.244.9.2", "192.0.2.12", "eth1", "look there", ""],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.stderr.endswith("although the overlay says that it is connected: look there\n")
    assert not (tmp_path / "called").exists()


def test_a_plugin_that_does_not_end_is_told(tmp_path):
    for name, body in (("plugin", ":"), ("timeout", "echo 'looking for its daemon'; exit 124")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    script = f""". {ROLES}/overlay_common/files/common.sh; cni ADD '{{"type":"plugin"}}' eth {tmp_path}"""
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (124, "looking for its daemon\nit had not ended after 90 s\n")
