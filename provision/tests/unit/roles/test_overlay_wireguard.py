"""WireGuard on a node: what the status says, and that no private key gets anywhere."""

from pathlib import Path

import pytest
from lab_node import Scripts

from overlaylab.core.paths import ROLES

DUMP = (Path(__file__).parents[2] / "fixtures" / "wireguard" / "1.0-dump.out").read_text()
ADDRESS = (Path(__file__).parents[2] / "fixtures" / "wireguard" / "6.1-address.out").read_text()
PRIVATE, *_ = DUMP.split()
PEER, _, ENDPOINT, ALLOWED, SHAKEN, *_ = DUMP.splitlines()[1].split()


@pytest.fixture
def wireguard(tmp_path: Path) -> Scripts:
    """The endpoint's device as recorded, a minute after its handshake; a ping is answered unless the test says so."""
    scripts = Scripts(ROLES / "overlay_wireguard", tmp_path)
    (scripts.place("/sys/module/wireguard") / "version").write_text("1.0.0\n")
    scripts.settings(f'ADDRESS=10.50.0.1\nLENGTH=16\nMTU=\nPEERS="\n{PEER} 192.168.94.12 10.50.0.2\n"\n')
    device(scripts, DUMP)
    scripts.tool("date", f"echo {int(SHAKEN) + 60}")
    return scripts


def device(scripts: Scripts, dump: str, ping: int = 0) -> None:
    (scripts.folder / "dump").write_text(dump)
    (scripts.folder / "address").write_text(ADDRESS)
    scripts.tool(
        "ip",
        f'case $* in *dump) cat "$FOLDER/dump" ;; *ping*) exit {ping} ;; *address*) cat "$FOLDER/address" ;; esac',
    )


def test_a_converged_node(wireguard: Scripts) -> None:
    assert wireguard.status() == {
        "overlay": "wireguard",
        "mode": None,
        "encrypted": True,
        "version": "1.0.0",
        "healthy": True,
        "reason": None,
        "endpoint_address": "10.50.0.1",
        "endpoint_device": "wg0",
        "endpoint_mtu": 1420,
        "overlay_mtu": 1420,
        "devices": [],
        "peers": [{"address": "192.168.94.12", "state": "established", "mode": None, "encrypted": True}],
    }
    # A handshake that is young enough is asked for nothing.
    assert not [call for call in wireguard.calls if "ping" in call]


def test_an_old_handshake_is_made_sure_of_by_a_packet(wireguard: Scripts) -> None:
    wireguard.tool("date", f"echo {int(SHAKEN) + 181}")
    assert wireguard.status()["healthy"] is True
    assert "ip netns exec endpoint ping -n -q -c 1 -W 1 10.50.0.2" in wireguard.calls


@pytest.mark.parametrize(
    ("dump", "reason"),
    [
        (
            DUMP.replace(SHAKEN, "0"),
            "no handshake with 192.168.94.12: is 51820/udp let through both ways, and has it this node's present key?",
        ),
        (DUMP.replace(PEER, "A" * 43 + "="), "the device does not know the key of the peer 192.168.94.12"),
        (DUMP.splitlines()[0] + "\n", "the device does not know the key of the peer 192.168.94.12"),
        ("", "there is no WireGuard device in the endpoint"),
    ],
    ids=["silent", "another key", "no peers", "no device"],
)
def test_what_is_wrong_is_named(wireguard: Scripts, dump: str, reason: str) -> None:
    device(wireguard, dump, ping=1)
    said = wireguard.status()
    assert (said["healthy"], said["reason"]) == (False, reason)
    assert said["encrypted"] is bool(dump)


def test_the_private_key_stays_where_it_is(wireguard: Scripts) -> None:
    """The first line of a dump has it; `sh -x` would show whatever gets into a variable."""
    wireguard.places["set -u"] = Path("set -ux")  # type: ignore[assignment]
    done = wireguard.run("overlay-status")
    assert PEER in done.stderr
    assert PRIVATE not in done.stdout + done.stderr


def test_the_path_is_the_route_and_the_peer_that_it_leads_to(wireguard: Scripts) -> None:
    wireguard.tool(
        "ip",
        f"""case $* in
            *allowed-ips) printf '%s\\t%s\\n' {PEER} {ALLOWED} {"B" * 44} 10.50.0.3/32 ;;
            *endpoints) printf '%s\\t%s\\n' {PEER} {ENDPOINT} {"B" * 44} 192.168.94.13:51820 ;;
            *route*) echo "$6 dev wg0 src 10.50.0.1" ;;
        esac""",
    )
    assert wireguard.run("overlay-path", "192.168.94.12", "10.50.0.2").stdout.splitlines() == [
        "10.50.0.2 dev wg0 src 10.50.0.1",
        f"wg0 peer {PEER} allowed-ips 10.50.0.2/32",
        f"wg0 peer {PEER} endpoint 192.168.94.12:51820",
    ]
    assert wireguard.run("overlay-path", "192.168.94.14", "10.50.0.4").stdout == ""
