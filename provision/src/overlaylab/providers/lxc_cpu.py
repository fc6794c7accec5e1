"""vCPUs and quota of system containers: this machine's control groups hold them, from when they are made."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping
from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import lxc_host
from overlaylab.shaping import cpu
from overlaylab.shaping.cpu import CpuState, InNode


class LxcCpu(InNode):
    """Reads what the containers were made with; other limits take other containers.

    A container's CPUs are this machine's and cannot be taken offline, and its control group is root's.
    """

    def __init__(
        self, nodes: Nodes, containers: Mapping[str, str], vcpus: int | None, quota: float | None
    ) -> None:
        """containers: LXC's name of each node. vcpus, quota: what they are made with, None: the cluster file's."""
        super().__init__(nodes)
        self.containers = containers
        self.made_with = (vcpus, quota)

    async def hold(self, vcpus: int | None, quota: float | None) -> None:
        """Nothing to do, or UserError. What this machine could not give when they were made, `held` tells."""
        if (vcpus, quota) in ((None, None), self.made_with):
            return
        for node, state in (await self.held()).items():
            if wrong := cpu.problems(state, vcpus, quota):
                raise UserError(
                    f"PROVIDER=lxc: {node}",
                    "must have been made with the profile's vCPUs and quota, which a container keeps for life",
                    seen="; ".join(wrong),
                    fix="Measure with that profile, which makes the containers anew (./task lab:host PROVIDER=lxc "
                    "PROFILE=…), or take PROVIDER=libvirt, whose nodes can be told at any time",
                )

    async def held(self) -> dict[str, CpuState]:
        """vCPUs as the nodes see them, the quota as this machine's control groups have it.

        Where those are of version 1, a container may not see the one that limits it.
        """
        inside, limits = await asyncio.gather(super().held(), asyncio.to_thread(self._limits))
        return {
            name: CpuState(state.vcpus, cpu.share(limits[name], state.vcpus))
            for name, state in inside.items()
        }

    def after_reboot(self, vcpus: int | None, quota: float | None) -> str:
        """The control group outlives what runs in it."""
        return ""

    def _limits(self) -> dict[str, float]:
        return {name: limit(lxc_host.CGROUPS, container) for name, container in self.containers.items()}


def limit(groups: Path, container: str) -> float:
    """CPUs' worth of time that the container's control group lets it use; math.inf where it sets no limit."""
    # os.walk passes over groups that go meanwhile, which Path.glob does not.
    for folder, _, _ in os.walk(groups):
        if (group := Path(folder)).name != f"lxc.payload.{container}":
            continue
        if (file := group / "cpu.max").exists():
            return cpu.cpus_worth(file.read_text())
        if (file := group / "cpu.cfs_quota_us").exists():
            quota, period = file.read_text().strip(), (group / "cpu.cfs_period_us").read_text()
            return cpu.cpus_worth(f"{'max' if quota == '-1' else quota} {period}")
    return math.inf
