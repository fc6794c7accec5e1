"""What the kernel can do is found out by trying; without root where that works, and without loading anything.

``6.18-*.out``: recorded on a machine whose kernel has no modules at all, as root, as an ordinary user in a user
namespace, and as one without. ``6.1-*``: lines of what depmod(8) makes of Debian's cloud kernel.
"""

import json
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.machine import features, modules
from overlaylab.machine.features import ABSENT, LOADABLE, UNTRIED, WORKS, Found
from overlaylab.machine.modules import Modules

FIXTURES = Path(__file__).parents[2] / "fixtures" / "host_features"
LACKS = {
    "link:ipvlan": "Error: Unknown device type.",
    "nic:sriov": "grep: /sys/class/net/*/device/sriov_totalvfs: No such file or directory",
    "link:ipip": "Error: Unknown device type.",
    "link:wireguard": "Error: Unknown device type.",
    "link:dummy": "Error: Unknown device type.",
    "qdisc:netem": "Error: Specified qdisc kind is unknown.",
    "xfrm:esp": "Error: Requested AEAD algorithm not found.",
    "genl:ovs_datapath": "RTNETLINK answers: No such file or directory Error talking to the kernel",
}
TRIED = [name for name in features.KNOWN if "<" not in name] + ["genl:ovs_datapath", "genl:nlctrl"]


def recorded(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


DEBIAN = Modules(
    modules.parse_dependencies(recorded("6.1-modules.dep")),
    modules.parse_aliases(recorded("6.1-modules.alias")),
)


@pytest.mark.parametrize("who", ["root", "user"])
def test_what_the_kernel_lacks_is_told_apart(who):
    found = features.parse(recorded(f"6.18-{who}.out"), TRIED)
    assert found == {name: Found(ABSENT, LACKS[name]) if name in LACKS else Found(WORKS) for name in TRIED}


def test_a_refusal_says_nothing_about_the_kernel():
    found = features.parse(recorded("6.18-refused.out"), TRIED)
    # Asking for a family, a setting or a card takes no rights.
    told = {
        name: answer.state for name, answer in found.items() if name.startswith(("genl:", "bridge:", "nic:"))
    }
    assert told == {
        "genl:ovs_datapath": ABSENT,
        "genl:nlctrl": WORKS,
        "bridge:netfilter": WORKS,
        "nic:sriov": ABSENT,
    }
    assert {answer.state for name, answer in found.items() if name not in told} == {UNTRIED}
    assert found["link:veth"].detail == "RTNETLINK answers: Operation not permitted"


def test_a_feature_that_was_not_reached_is_untried():
    found = features.parse("link:veth\t0\t\n", ["link:veth", "link:dummy"])
    assert found == {
        "link:veth": Found(WORKS),
        "link:dummy": Found(UNTRIED, "the trial did not get that far"),
    }


def test_a_program_that_is_missing_says_nothing_about_the_kernel():
    printed = "nft:nat\t127\tsh: 1: nft: not found\n"
    assert features.parse(printed, ["nft:nat"]) == {"nft:nat": Found(UNTRIED, "sh: 1: nft: not found")}


def test_every_trial_says_so_where_its_tool_is_missing(tmp_path):
    """That of sets once gave the shell's own exit code, and a machine without iptables was taken for such a kernel."""
    for feature in ("xt:set", "xt:comment", "nft:nat", "link:veth"):
        argv = ["/bin/sh", "-c", f"(eval {shlex.quote(str(features.command(feature)))})"]
        done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
        assert done.returncode == 127, feature


def test_the_script_prints_a_line_a_feature_whatever_the_tools_say(tmp_path, monkeypatch):
    words = r"printf '%s\n' 'no  *' '	\n here' >&2; exit 2"
    (tmp_path / "ip").write_text(f'#!/bin/sh\ncase "$*" in *dummy*) {words};; esac\n')
    (tmp_path / "tc").write_text('#!/bin/sh\necho "$*" >&2; exit 1\n')
    for name in ("ip", "tc"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    text = features.script(["link:veth", "link:dummy", "qdisc:netem"])
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "link:veth\t0\t\nlink:dummy\t2\tno * \\n here\nqdisc:netem\t1\tqdisc replace dev lo root netem delay 1ms\n"
    )


@pytest.mark.parametrize("feature", ["link:vxlam", "genl:", "genl:a b", "genl:$(x)", "vxlan", ""])
def test_what_cannot_be_tried_has_no_command(feature):
    assert features.command(feature) is None


@pytest.mark.parametrize(
    ("feature", "title"),
    [
        ("link:dummy", "dummy"),
        ("genl:ovs_datapath", "openvswitch"),
        ("xt:esp", "xt_esp"),
        ("xfrm:esp", "ESP"),
        ("bridge:netfilter", "br_netfilter"),
    ],
)
def test_titles(feature, title):
    assert features.title(feature) == title


@pytest.mark.parametrize(
    ("feature", "loads"),
    [
        ("link:vxlan", ("vxlan",)),
        ("genl:ovs_datapath", ("openvswitch",)),
        ("genl:nlctrl", ()),
        ("qdisc:bfifo", ()),
        ("qdisc:netem", ("sch_netem",)),
        ("filter:u32", ("cls_u32", "sch_htb")),
        ("xt:policy", ("xt_policy", "nft_compat", "nf_tables", "nfnetlink")),
        ("nft:nat", ("nfnetlink", "nf_tables", "nft_chain_nat")),
        ("xfrm:esp", ("xfrm_user", "esp4", "gcm", "seqiv")),
        ("fs:overlay", ("overlay",)),
    ],
)
def test_what_trying_would_load_is_known_beforehand(feature, loads):
    assert features.to_load(feature, DEBIAN) == loads


def test_what_is_loaded_is_not_loaded_again():
    loaded = Modules(DEBIAN.files, DEBIAN.aliases, frozenset({"nfnetlink", "nf_tables", "openvswitch"}))
    assert features.to_load("nft:nat", loaded) == ("nft_chain_nat",)
    assert features.to_load("genl:ovs_datapath", loaded) == ()


def test_newer_kernels_ask_for_a_qdisc_by_an_alias():
    aliases = modules.parse_aliases("alias net-sch-netem sch_netem\nalias pci:v0 x\n")
    assert features.to_load("qdisc:netem", Modules(frozenset({"sch_netem"}), aliases)) == ("sch_netem",)


def test_module_names_are_the_kernels_whatever_the_file_is_called():
    text = "kernel/net/openvswitch/vport-vxlan.ko: kernel/x.ko\nupdates/dummy.ko.xz:\n"
    assert modules.parse_dependencies(text) == {"vport_vxlan", "dummy"}


@pytest.fixture
def kernel(monkeypatch, own_cache):
    """A kernel: .modules, .boot; .tries holds the argv of each trial, .lacks what the kernel has not."""
    kernel = SimpleNamespace(modules=Modules(), boot="1", tries=[], lacks=set(), ends=0, root=False)

    def answers(script):
        names = [line.split()[1] for line in script.splitlines() if line.startswith("try ")]
        return "".join(f"{name}\t{int(name in kernel.lacks)}\t\n" for name in names), names

    def run(argv, **_):
        printed, names = answers(argv[-1])
        kernel.tries.append(([*argv[:-3]], names))
        if kernel.ends:
            return subprocess.CompletedProcess(
                argv, kernel.ends, "", "unshare: unshare failed: No space left on device\n"
            )
        return subprocess.CompletedProcess(argv, 0, printed, "")

    def as_root(argv, why, *, capture, stdin):
        printed, names = answers(argv[-1])
        kernel.tries.append((why, names))
        came = {module for name in names for module in features.to_load(name, kernel.modules)}
        kernel.modules = Modules(kernel.modules.files, kernel.modules.aliases, kernel.modules.loaded | came)
        return subprocess.CompletedProcess(argv, 0, printed, None)

    monkeypatch.setattr(features, "read_modules", lambda: kernel.modules)
    monkeypatch.setattr(features, "boot_id", lambda: kernel.boot)
    monkeypatch.setattr(features, "is_root", lambda: kernel.root)
    monkeypatch.setattr(features, "run_as_root", as_root)
    monkeypatch.setattr(features.subprocess, "run", run)
    return kernel


def test_an_ordinary_user_tries_in_a_user_namespace(kernel):
    kernel.lacks = {"link:dummy"}
    found = features.look(["link:veth", "link:dummy", "link:veth"])
    assert found == {"link:veth": Found(WORKS), "link:dummy": Found(ABSENT, "exit code 1")}
    own = ["timeout", "20", "unshare", "--user", "--map-root-user", "--net", "--mount"]
    assert kernel.tries == [(own, ["link:veth", "link:dummy"])]


def test_root_needs_no_user_namespace(kernel):
    kernel.root = True
    features.look(["link:veth"])
    assert kernel.tries[0][0] == ["timeout", "20", "unshare", "--net", "--mount"]


def test_an_answer_is_kept_for_one_boot(kernel):
    features.look(["link:veth"])
    features.look(["link:veth", "link:vxlan"])
    kernel.boot = "2"
    features.look(["link:veth"])
    assert [names for _, names in kernel.tries] == [["link:veth"], ["link:vxlan"], ["link:veth"]]


def test_an_answer_that_another_command_gave_is_not_kept(kernel, monkeypatch):
    features.look(["link:veth"])
    monkeypatch.setitem(features._COMMANDS, "link:veth", "ip link add type veth")
    features.look(["link:veth"])
    assert [names for _, names in kernel.tries] == [["link:veth"], ["link:veth"]]


def test_a_damaged_cache_is_asked_anew(kernel, own_cache):
    features.look(["link:veth"])
    (own_cache / "host-features.json").write_text(json.dumps({"key": {}, "features": []}))
    assert features.look(["link:veth"]) == {"link:veth": Found(WORKS)}
    assert len(kernel.tries) == 2


def test_looking_loads_nothing(kernel):
    kernel.modules = DEBIAN
    found = features.look(["genl:ovs_datapath", "qdisc:bfifo"])
    assert found == {"genl:ovs_datapath": Found(LOADABLE, "openvswitch"), "qdisc:bfifo": Found(WORKS)}
    assert [names for _, names in kernel.tries] == [["qdisc:bfifo"]]


def test_modules_that_nobody_can_tell_of_are_not_loaded_by_accident(kernel):
    kernel.modules = Modules(loaded=frozenset({"ext4"}), known=False)
    found = features.look(["link:dummy"])["link:dummy"]
    assert found.state == UNTRIED
    assert found.detail.startswith("trying may load a module, and /lib/modules/")
    assert kernel.tries == []


def test_without_a_namespace_nothing_is_known_and_nothing_kept(kernel):
    kernel.ends = 1
    assert features.look(["link:veth"]) == {
        "link:veth": Found(UNTRIED, "unshare: unshare failed: No space left on device")
    }
    kernel.ends = 0
    assert features.look(["link:veth"]) == {"link:veth": Found(WORKS)}


def test_loading_tries_as_root_what_was_left_open_and_says_so(kernel):
    kernel.modules = DEBIAN
    kernel.lacks = {"genl:ovs_datapath"}
    found, came = features.load(["link:dummy", "genl:ovs_datapath", "qdisc:bfifo"])
    assert {name: answer.state for name, answer in found.items()} == {
        "link:dummy": WORKS,
        "genl:ovs_datapath": ABSENT,
        "qdisc:bfifo": WORKS,
    }
    assert came == ("dummy", "openvswitch")
    assert kernel.tries[1:] == [
        (
            "trying on this machine's kernel what nodes need, which loads its modules: dummy, openvswitch",
            ["link:dummy", "genl:ovs_datapath"],
        )
    ]


def test_what_was_loaded_is_at_work_and_what_was_unloaded_can_be_loaded_again(kernel):
    kernel.modules = DEBIAN
    features.load(["link:dummy"])
    assert features.look(["link:dummy"]) == {"link:dummy": Found(WORKS)}
    assert features.load(["link:dummy"]) == ({"link:dummy": Found(WORKS)}, ())
    kernel.modules = DEBIAN
    assert features.look(["link:dummy"]) == {"link:dummy": Found(LOADABLE, "dummy")}


def test_a_module_that_did_not_help_is_not_tried_again(kernel):
    kernel.modules = DEBIAN
    kernel.lacks = {"link:dummy"}
    features.load(["link:dummy"])
    kernel.modules = DEBIAN
    assert features.look(["link:dummy"]) == {"link:dummy": Found(ABSENT, "exit code 1")}
