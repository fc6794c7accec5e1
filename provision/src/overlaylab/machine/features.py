"""What this machine's kernel can do for nodes that share it, found out by trying and not by its version.

One script, in network and mount namespaces of its own, tries whatever roles and profiles declare
(``requirements``); nothing that it makes outlives it. It needs no root where an ordinary user may have a user
namespace. Trying makes the kernel load what it lacks, so ``look`` leaves out what would load a module and says
that it can be loaded; ``load`` tries everything.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.machine import modules as host_modules
from overlaylab.machine.modules import Modules, read_modules
from overlaylab.machine.root import is_root, run_as_root
from overlaylab.machine.services import boot_id

WORKS, LOADABLE, ABSENT, UNTRIED = "works", "loadable", "absent", "untried"

# Seconds for the whole script.
_LIMIT = ("timeout", "20")

# {feature: the shell command that succeeds where the kernel has it}; a new requirement gets its line here.
# A command that fails for another reason than the kernel would be taken for a lack of it: try it where it works.
_COMMANDS = {
    "link:bridge": "ip link add name tried type bridge && ip link delete tried",
    "link:dummy": "ip link add name tried type dummy && ip link delete tried",
    "link:ifb": "ip link add name tried type ifb && ip link delete tried",
    "link:ipip": "ip link add name tried type ipip local 192.0.2.1 && ip link delete tried",
    # Devices on top of another one; any Ethernet will do.
    "link:ipvlan": "ip link add name for-ipvlan type veth"
    " && ip link add name tried-ipvlan link for-ipvlan type ipvlan mode l2",
    "link:macvlan": "ip link add name for-macvlan type veth"
    " && ip link add name tried-macvlan link for-macvlan type macvlan mode bridge",
    "link:veth": "ip link add name tried type veth && ip link delete tried",
    "link:vxlan": "ip link add name tried type vxlan id 1 dstport 4789 && ip link delete tried",
    "link:wireguard": "ip link add name tried type wireguard && ip link delete tried",
    "dev:tun": "ip tuntap add dev tried mode tun && ip tuntap delete dev tried mode tun",
    # Each network namespace has these settings once the module is there.
    "bridge:netfilter": "[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || modprobe br_netfilter",
    # No matter of the kernel: a card whose driver offers virtual functions (Documentation/ABI/testing/sysfs-bus-pci).
    "nic:sriov": "set +f; grep -q '[1-9]' /sys/class/net/*/device/sriov_totalvfs",
    "qdisc:bfifo": "tc qdisc replace dev lo root bfifo limit 10000",
    "qdisc:htb": "tc qdisc replace dev lo root htb default 1",
    "qdisc:netem": "tc qdisc replace dev lo root netem delay 1ms",
    # A filter needs a qdisc with classes to stand on; htb is the one that profiles use.
    "filter:u32": "tc qdisc replace dev lo root handle 1: htb"
    " && tc filter add dev lo parent 1: protocol ip prio 10 u32 match ip dst 192.0.2.1/32 flowid 1:1",
    "qdisc:ingress": "tc qdisc replace dev lo ingress",
    "action:mirred": "tc qdisc replace dev lo ingress && tc filter add dev lo parent ffff: protocol all prio 10 u32"
    " match u32 0 0 action mirred egress redirect dev lo",
    # The cipher of RFC 4106 with a key of 256 bits and its salt, as overlays use IPsec in the kernel.
    "xfrm:esp": "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 mode transport"
    f" aead 'rfc4106(gcm(aes))' 0x{'00' * 36} 128",
    "nft:nat": "nft 'add table ip tried; add chain ip tried tried { type nat hook postrouting priority 100; }'",
    # As the nodes' iptables makes rules: through nftables' compatibility layer.
    "xt:addrtype": "iptables-nft -A OUTPUT -m addrtype ! --src-type LOCAL",
    "xt:comment": "iptables-nft -A OUTPUT -m comment --comment tried",
    "xt:conntrack": "iptables-nft -A OUTPUT -m conntrack --ctstate RELATED,ESTABLISHED",
    "xt:esp": "iptables-nft -A OUTPUT -p esp -m esp --espspi 256",
    "xt:MASQUERADE": "iptables-nft -t nat -A POSTROUTING -j MASQUERADE",
    "xt:mark": "iptables-nft -A OUTPUT -m mark --mark 0x1/0x1",
    "xt:policy": "iptables-nft -A OUTPUT -m policy --dir out --pol none",
    "xt:u32": "iptables-nft -A OUTPUT -p udp -m u32 --u32 12=0x100100",
    "xt:rpfilter": "iptables-nft -t raw -A PREROUTING -m rpfilter --invert",
    # A kernel that has sets says that there is none of the name; making one would take a tool of its own.
    # Without the tool, the shell's own exit code would be lost, and a machine that lacks it taken for such a kernel.
    "xt:set": "command -v iptables-nft >/dev/null || exit 127; said=$(iptables-nft -A OUTPUT -m set --match-set tried src 2>&1)"
    """ || case $said in *"doesn't exist"*) ;; *) echo "$said" >&2; false ;; esac""",
    "fs:overlay": "mount -t tmpfs tried /tmp && cd /tmp && mkdir a b c d"
    " && mount -t overlay tried -o lowerdir=a,upperdir=b,workdir=c d",
}

# What trying loads where nothing else tells; of modules that need each other, one is enough.
_MODULES = {
    "bridge:netfilter": ("br_netfilter",),
    "dev:tun": ("tun",),
    "fs:overlay": ("overlay",),
    "nft:nat": ("nfnetlink", "nf_tables", "nft_chain_nat"),
    "xfrm:esp": ("xfrm_user", "esp4", "gcm", "seqiv"),
}

_TITLES = {
    "bridge:netfilter": "br_netfilter",
    "genl:ovs_datapath": "openvswitch",
    "xfrm:esp": "ESP",
    "nft:nat": "nftables NAT",
    "nic:sriov": "a network card with virtual functions (SR-IOV)",
    "fs:overlay": "overlayfs",
}

# Every feature that can be tried.
KNOWN = (*_COMMANDS, "genl:<family>")


@dataclass(frozen=True)
class Found:
    """What became of one feature."""

    # ``works``; ``loadable``: the kernel has it as a module that is not loaded, so it was not tried; ``absent``;
    # ``untried``: cannot be told without root, or without a tool.
    state: str
    # The tool's own words, or the modules' names where it is loadable.
    detail: str = ""


def title(feature: str) -> str:
    """A feature as people call it: ``dummy``, ``openvswitch``, ``xt_addrtype``."""
    kind, _, name = feature.partition(":")
    return _TITLES.get(feature) or (f"xt_{name}" if kind == "xt" else name)


def command(feature: str) -> str | None:
    """The shell command that tries a feature; None where it is none of KNOWN."""
    # Generic netlink: the family's name is all there is to it.
    if re.fullmatch(r"genl:[A-Za-z0-9_-]+", feature):
        return f"genl ctrl get name {feature.removeprefix('genl:')}"
    return _COMMANDS.get(feature)


def script(features: Iterable[str]) -> str:
    """POSIX sh that tries features out of KNOWN in turn; ``parse`` reads what it prints."""
    tries = "\n".join(f"try {feature} {shlex.quote(str(command(feature)))}" for feature in features)
    return f"""export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
set -f
try() {{
    feature=$1
    said=$( (eval "$2") 2>&1 >/dev/null); code=$?
    # In words with single blanks between them, whatever lines there were.
    set -- $said
    printf '%s\\t%s\\t%s\\n' "$feature" $code "$*"
}}
{tries}
"""


def parse(printed: str, features: Iterable[str]) -> dict[str, Found]:
    """What the script printed, a line a feature: name, exit code, words. A feature without a line is untried."""
    lines = [line.split("\t") for line in printed.splitlines()]
    told = {line[0]: _judge(int(line[1]), line[2]) for line in lines if len(line) == 3}
    return {
        feature: told.get(feature, Found(UNTRIED, "the trial did not get that far")) for feature in features
    }


def _judge(code: int, said: str) -> Found:
    if code == 0:
        return Found(WORKS)
    # 127: the shell found no such program (POSIX 2.8.2). A refusal is about rights, not about the kernel.
    refused = ("not permitted", "permission denied", "must be root", "must be superuser", "can't open socket")
    if code == 127 or any(words in said.lower() for words in refused):
        return Found(UNTRIED, said)
    return Found(ABSENT, said or f"exit code {code}")


def to_load(feature: str, modules: Modules) -> tuple[str, ...]:
    """The modules that trying the feature would load, as far as files and aliases tell."""
    kind, _, name = feature.partition(":")
    wanted = {
        "link": (f"rtnl-link-{name}",),
        # Kernels before 6.9 ask for the module by its name.
        "qdisc": (f"net-sch-{name}", f"sch_{name}"),
        "filter": (f"net-cls-{name}", f"cls_{name}", "net-sch-htb", "sch_htb"),
        "action": (f"net-act-{name}", f"act_{name}", "net-sch-ingress", "sch_ingress", "cls_u32"),
        "genl": (f"net-pf-16-proto-16-family-{name}",),
        "xt": (f"xt_{name}", "nft_compat", "nf_tables", "nfnetlink"),
    }.get(kind, _MODULES.get(feature, ()))
    return modules.absent(*wanted)


def look(features: Collection[str]) -> dict[str, Found]:
    """{feature: what is known of it} without sudo and without loading anything.

    Answers that a trial gave are kept for this boot and this kernel's modules.
    """
    known, modules = _recall(), read_modules()
    found: dict[str, Found] = {}
    missing = []
    for feature in dict.fromkeys(features):
        answer, loads = known.get(feature), to_load(feature, modules)
        if answer and answer.state == ABSENT:
            found[feature] = answer
        elif loads:
            # Also where it has worked: the module was unloaded since.
            found[feature] = Found(LOADABLE, " ".join(loads))
        elif answer:
            found[feature] = answer
        elif not modules.known:
            words = f"trying may load a module, and {host_modules.folder()} is not here to tell"
            found[feature] = Found(UNTRIED, words)
        else:
            missing.append(feature)
    if missing:
        own = [] if is_root() else ["--user", "--map-root-user"]
        argv = [*_LIMIT, "unshare", *own, "--net", "--mount", "sh", "-c", script(missing)]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        found |= _results(done, missing)
        _remember(found)
    return {feature: found[feature] for feature in dict.fromkeys(features)}


def load(features: Collection[str]) -> tuple[dict[str, Found], tuple[str, ...]]:
    """Try the features as root, so that the kernel loads what it has for them.

    ({feature: ``works``, ``absent`` or ``untried``}, names of the modules that came, sorted). Where ``look``
    finds all at work already, nothing is done. Raises UserError where root is out of reach.
    """
    found = look(features)
    rest = [name for name, answer in found.items() if answer.state in (LOADABLE, UNTRIED)]
    if not rest:
        return found, ()
    before = read_modules().loaded
    names = ", ".join(title(feature) for feature in rest)
    argv = [*_LIMIT, "unshare", "--net", "--mount", "sh", "-c", script(rest)]
    why = f"trying on this machine's kernel what nodes need, which loads its modules: {names}"
    done = run_as_root(argv, why, capture=True, stdin=subprocess.DEVNULL)
    found |= _results(done, rest)
    _remember(found)
    return found, tuple(sorted(read_modules().loaded - before))


def _results(done: subprocess.CompletedProcess[str], features: Collection[str]) -> dict[str, Found]:
    if done.returncode and not done.stdout:
        words = (done.stderr or "").strip().splitlines()
        return {
            feature: Found(UNTRIED, words[-1] if words else "no namespace to try it in")
            for feature in features
        }
    return parse(done.stdout, features)


def _key() -> dict[str, object]:
    """What an answer depends on, besides the command that gave it."""
    try:
        # A package may bring modules for the kernel that runs.
        modules = (host_modules.folder() / "modules.dep").stat().st_mtime_ns
    except OSError:
        modules = None
    return {"boot_id": boot_id(), "kernel_release": platform.release(), "modules": modules}


def _cache_file() -> Path:
    return paths.cache() / "host-features.json"


def _recall() -> dict[str, Found]:
    """Answers of this boot, of trials that are still made the same way."""
    try:
        stored = json.loads(_cache_file().read_text(encoding="utf-8"))
        if stored["key"] != _key():
            return {}
        rows = stored["features"].items()
        return {name: Found(**row["found"]) for name, row in rows if row["command"] == command(name)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _remember(found: Mapping[str, Found]) -> None:
    """Keep what trials gave; replaced in one step, as two commands may ask at once."""
    kept = _recall() | {name: answer for name, answer in found.items() if answer.state in (WORKS, ABSENT)}
    rows = {name: {"command": command(name), "found": asdict(answer)} for name, answer in kept.items()}
    target = _cache_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"key": _key(), "features": rows}, indent=2) + "\n", encoding="utf-8")
    fresh.replace(target)
