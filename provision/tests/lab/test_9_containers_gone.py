"""What system containers leave on the machine: nothing. Another cluster's may be there, and stay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from overlaylab.providers import lxc_config, lxc_host


def test_removed_containers_leave_nothing(containers) -> None:
    containers.clean()
    containers.do(lambda provider: provider.remove_nodes())
    links = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)
    bridges = {link["ifname"] for link in links}
    assert lxc_config.underlay_bridge("pair") not in bridges
    others = [path.name for path in Path("/var/lib/lxc").glob("overlaylab-*-node*")]
    assert [name for name in others if name.startswith("overlaylab-pair-node")] == []
    # The bridge of the management network is every cluster's: it goes with the last one.
    assert others or lxc_config.MANAGEMENT not in bridges
    ports = [link["ifname"] for link in links if link.get("master") == lxc_config.MANAGEMENT]
    assert others or ports == []
    assert "overlaylab-pair-node" not in Path("/proc/mounts").read_text()
    named = [" ".join(argv) for argv in lxc_host.processes().values()]
    assert [line for line in named if "overlaylab-pair-node" in line and "lxc" in line] == []
