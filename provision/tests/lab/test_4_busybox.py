"""A host that has next to nothing: BusyBox and dropbear, /usr read-only, /tmp noexec; no systemd, no Python, no bash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from overlaylab.core.paths import ROOT

HERE = Path(__file__).parent.parent / "support" / "busybox_hosts.sh"
AS_ROOT = [] if os.getuid() == 0 else ["sudo", "--non-interactive"]
NODES = {"node1": "10.98.76.2", "node2": "10.98.76.6"}


class Hosts:
    """Two such hosts. inventory: the file that measuring takes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.inventory = folder, folder / "hosts.yml"
        self.key = folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key], check=True)
        packages = folder / "packages"
        packages.mkdir()
        wanted = ("bookworm", "main", "busybox-static,dropbear-bin")
        subprocess.run(["sh", ROOT / "packer/kit/packages.sh", packages, *wanted], check=True)
        subprocess.run(
            ["tar", "-xf", packages / "root.tar", "-C", packages, "--exclude=./dev/*", "--exclude=dev/*"],
            check=True,
        )
        public = self.key.with_suffix(".pub").read_text().strip()
        subprocess.run([*AS_ROOT, "sh", HERE, "up", folder, public], check=True)
        self.inventory.write_text(
            yaml.safe_dump(
                {
                    "all": {
                        "vars": {
                            "ansible_user": "root",
                            "ansible_ssh_private_key_file": str(self.key),
                            "underlay_interface": "eth1",
                            "zone": "a",
                            "overlaylab_cluster": "busybox",
                        },
                        "hosts": {
                            name: {
                                "ansible_host": address,
                                "underlay_address": f"192.168.98.1{number}/24",
                                "host_key": " ".join((folder / f"host_key{number}").read_text().split()[:2]),
                            }
                            for number, (name, address) in enumerate(NODES.items(), 1)
                        },
                    }
                }
            )
        )

    def sh(self, name: str, script: str) -> str:
        """What the host's own shell prints, by OpenSSH's client."""
        options = (
            "-q",
            "-i",
            self.key,
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        )
        done = subprocess.run(
            ["ssh", *options, f"root@{NODES[name]}", script], text=True, capture_output=True, check=False
        )
        return done.stdout + done.stderr


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    try:
        yield Hosts(tmp_path)
    finally:
        subprocess.run([*AS_ROOT, "sh", HERE, "down", tmp_path], check=True)


@pytest.mark.turn("nodes")
def test_the_host_network_of_busybox_is_measured_by_the_kit(hosts, lab_in) -> None:
    looks = "ip -o -f inet addr show eth1; ls -A /opt /root /tmp /var; ls /run | grep overlaylab; ps -o args | grep -v 'dropbear\\|^.exe'"
    before = {name: hosts.sh(name, looks) for name in NODES}
    lab = lab_in(INVENTORY=str(hosts.inventory), BLOCKS="1", PROFILE="none")
    output = lab.run("lab:host")
    assert "sending the node kit to node1, node2" in output
    assert lab.query("SELECT provider, system FROM run") == [("hosts", "busybox-1")]
    assert lab.query("SELECT overlay, status, reason FROM trial") == [("host", "ok", None)] * 2
    assert lab.query(
        "SELECT count(DISTINCT metric) FROM result WHERE value > 0 AND metric IN ('goodput', 'latency_one_way')"
    ) == [(2,)]
    lab.run("hosts:clean")
    assert {name: hosts.sh(name, looks) for name in NODES} == before
