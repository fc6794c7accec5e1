"""What system containers leave on the machine: nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path


def test_removed_containers_leave_nothing(containers) -> None:
    containers.clean()
    containers.do(lambda provider: provider.remove_nodes())
    links = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)
    assert [link["ifname"] for link in links if link["ifname"].startswith("ovlab")] == []
    assert "overlaylab-pair-" not in Path("/proc/mounts").read_text()
    assert [path.name for path in Path("/var/lib/lxc").glob("overlaylab-pair-*")] == []
    named = [path.read_text(errors="replace") for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert [line for line in named if "overlaylab-pair-node" in line and "lxc" in line] == []
