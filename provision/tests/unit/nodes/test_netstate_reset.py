"""What the roles' node scripts decide: which rules are deleted, and what the status says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from lab_scripts import script

from overlaylab.core.paths import ROLES

NETSTATE = Path(__file__).parents[2] / "fixtures" / "netstate"
COMMON = ROLES / "overlay_common" / "files"
WEAVE = ROLES / "overlay_weave" / "files"


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(COMMON))
    module = script(COMMON / "traces.py")
    monkeypatch.setitem(sys.modules, "traces", module)
    return module


def test_all_rules_of_weave_and_none_of_others_are_deleted(traces):
    own = script(WEAVE / "overlay-reset").OWN_RULE.search
    recorded = json.loads((NETSTATE / "weave-fastdp-encrypted.json").read_text())["iptables"]
    foreign = [
        "-A FORWARD -i weave0 -j ACCEPT",
        "-A INPUT -p esp -j ACCEPT",
        "-A OUTPUT -m mark --mark 0x40000/0x40000 -j DROP",
    ]
    lines = ["*filter", ":MINE - [0:0]", *foreign, *recorded[recorded.index("*filter") + 1 :]]
    lines = recorded[: recorded.index("*filter")] + lines
    batch = traces.removal(lines, own, "WEAVE")
    deleted = {"-A" + line[2:] for line in batch if line.startswith("-D")}
    outside = {line for line in recorded if line.startswith("-A ") and not line.startswith("-A WEAVE")}
    assert deleted == outside
    chains = {line[1:].split()[0] for line in recorded if line.startswith(":WEAVE")}
    assert {line[3:] for line in batch if line.startswith("-X")} == chains
    assert {line[3:] for line in batch if line.startswith("-F")} == chains
    assert batch.count("COMMIT") == 3
    # A chain can be deleted only when nothing jumps to it any more.
    for table in "".join(f"{line}\n" for line in batch).split("COMMIT\n")[:-1]:
        kinds = [line[:2] for line in table.splitlines()[1:]]
        assert kinds == sorted(kinds, key=["-D", "-F", "-X"].index)


def test_nothing_is_deleted_where_there_is_nothing(traces):
    lines = ["*filter", ":INPUT ACCEPT [0:0]", "-A INPUT -s 10.0.0.1/32 -j DROP", "COMMIT"]
    assert traces.removal(lines, script(WEAVE / "overlay-reset").OWN_RULE.search, "WEAVE") == []


SETTINGS = 'MODE={mode}\nENCRYPTED={encrypted}\nINTERFACE=lo\nPEERS="192.168.77.12"\nOPTIONS="--host x"\n'
ENDPOINT = """11: ethwe@if12: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc noqueue state UP group default
    inet 10.32.0.1/12 brd 10.47.255.255 scope global ethwe
       valid_lft forever preferred_lft forever
"""
FASTDP = "192.168.77.12:42935 established fastdp 1376 false fastdp 02:77:c0:a8:4d:0c(node2)"
SEALED = "192.168.77.12:6783 established fastdp 1376 true encrypted   fastdp 02:77:c0:a8:4d:0c(node2)"
SLEEVE = "192.168.77.12:6783 established sleeve 1438 false sleeve 02:77:c0:a8:4d:0c(node2)"
PENDING = "192.168.77.12:6783 pending - 0 false none   02:77:c0:a8:4d:0c(node2)"
REFUSED = (
    "192.168.77.12:6783 failed - 0 false dial tcp 192.168.77.11:0->192.168.77.12:6783: connect: connection "
    "refused, retry: 2026-11-20 14:07:19.028588984 +0000 UTC m=+32.729622764"
)


@pytest.fixture
def status(tmp_path: Path):
    """The status script with answers in place of weaver and ip."""
    (tmp_path / "bin").mkdir()

    def tool(name: str, answer: str | None) -> None:
        path = tmp_path / "bin" / name
        path.write_text(
            "#!/bin/sh\nexit 7\n" if answer is None else f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n"
        )
        path.chmod(0o755)

    def run(
        *connections: str,
        mode="fastdp",
        encrypted="false",
        answers=True,
        endpoint: int | None = 1376,
        routes=" 02:77:c0:a8:4d:0b 02:77:c0:a8:4d:0c",
    ) -> dict:
        tool("curl", "\n".join([f"2.6.5{routes}", *connections]) if answers else None)
        tool("ip", ENDPOINT.format(mtu=endpoint) if endpoint else None)
        (tmp_path / "settings").write_text(SETTINGS.format(mode=mode, encrypted=encrypted))
        copy = tmp_path / "overlay-status"
        text = (WEAVE / "overlay-status").read_text()
        assert "state=/run/overlaylab/overlay\n" in text
        copy.write_text(text.replace("state=/run/overlaylab/overlay\n", f"state={tmp_path}\n"))
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", str(copy)], env={"PATH": path}, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        return json.loads(done.stdout)

    return run


def test_a_converged_node(status):
    said = status(FASTDP)
    assert said.pop("devices") == []
    assert said == {
        "overlay": "weave",
        "mode": "fastdp",
        "encrypted": False,
        "version": "2.6.5",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.32.0.1",
        "endpoint_device": "ethwe",
        "endpoint_mtu": 1376,
        "overlay_mtu": 1376,
        "peers": [{"address": "192.168.77.12", "state": "established", "mode": "fastdp", "encrypted": False}],
    }


@pytest.mark.parametrize(
    ("connections", "settings", "mode", "reason"),
    [
        (
            [SLEEVE],
            {},
            "sleeve",
            "fell back to sleeve: 6784/udp is blocked on the way, or weaver found no openvswitch",
        ),
        ([], {}, None, "no established connection to 192.168.77.12"),
        (
            [REFUSED],
            {},
            None,
            "no established connection to 192.168.77.12: dial tcp 192.168.77.11:0->192.168.77.12:6783: connect: "
            "connection refused",
        ),
        ([PENDING], {}, None, "no established connection to 192.168.77.12: none   02:77:c0:a8:4d:0c(node2)"),
        ([FASTDP], {"encrypted": "true"}, "fastdp", "connections are not encrypted"),
        ([SEALED], {}, "fastdp", "connections are encrypted though that was not asked for"),
        ([FASTDP], {"mode": "sleeve"}, "fastdp", "the data path is fastdp, not sleeve"),
        ([FASTDP, SLEEVE.replace(".12:", ".13:")], {}, "mixed", "the data path is mixed, not fastdp"),
        ([FASTDP], {"endpoint": None}, "fastdp", "the endpoint has no address"),
        (
            [SEALED],
            {"encrypted": "true", "routes": " 02:77:c0:a8:4d:0b"},
            "fastdp",
            "weaver routes nothing to 192.168.77.12: it has not heard that the connection stands there too",
        ),
    ],
)
def test_what_is_wrong_is_named(status, connections, settings, mode, reason):
    said = status(*connections, **settings)
    assert said["healthy"] is False
    assert said["mode"] == mode
    assert said["reason"].startswith(reason)


def test_words_of_weaver_cannot_break_the_json(status):
    said = status('192.168.77.12:6783 retrying - 0 false peer "x\\y" said no')
    assert said["reason"] == "no established connection to 192.168.77.12: see the journal of overlaylab-weave"


def test_a_dead_daemon_is_missing_values_and_no_zero(status):
    said = status(answers=False)
    assert said["reason"] == "weaver does not answer on 127.0.0.1:6784"
    assert (said["mode"], said["version"], said["overlay_mtu"], said["peers"]) == (None, None, None, [])


def test_encryption_is_what_is_seen(status):
    said = status(SEALED, encrypted="true")
    assert (said["healthy"], said["encrypted"], said["peers"][0]["encrypted"]) == (True, True, True)


def test_the_paths_mtu_counts_where_the_devices_says_more(status):
    said = status(SLEEVE, mode="sleeve", endpoint=65535)
    assert (said["endpoint_mtu"], said["overlay_mtu"]) == (65535, 1438)


@pytest.mark.parametrize(("sealed", "overlay_mtu"), [(False, 65536 - 62), (True, 65536 - 86)])
def test_a_narrower_underlay_counts_before_weaver_has_learnt_of_it(status, sealed, overlay_mtu):
    line = SLEEVE.replace("1438 false", f"70000 {str(sealed).lower()}")
    assert Path("/sys/class/net/lo/mtu").read_text().strip() == "65536"
    said = status(line, mode="sleeve", encrypted=str(sealed).lower(), endpoint=65535)
    assert said["overlay_mtu"] == overlay_mtu
