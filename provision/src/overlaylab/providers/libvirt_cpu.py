"""vCPUs and quota of libvirt's VMs: the quota from outside, where a node cannot get round it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from overlaylab.core.errors import NodeError
from overlaylab.nodes.ssh import Nodes
from overlaylab.providers import virsh
from overlaylab.shaping.cpu import PERIOD, CpuState, InNode

NO_LIMIT = -1


class LibvirtCpu(InNode):
    """A quota on the thread of each vCPU; vCPUs are taken offline in the node, as QEMU cannot unplug them.

    Each vCPU gets the share for itself, so that one that is busy alone cannot use what another leaves. QEMU's other
    threads, which move packets, are not held to it. A quota goes with the QEMU that has it: a revert lifts it.
    """

    def __init__(self, nodes: Nodes, domains: Mapping[str, str]) -> None:
        """domains: libvirt's name of each node."""
        super().__init__(nodes)
        self.domains = domains

    async def hold(self, vcpus: int | None, quota: float | None) -> None:
        limits = (_hold(domain, quota) for domain in self.domains.values())
        await asyncio.gather(super().hold(vcpus, None), *limits)

    async def held(self) -> dict[str, CpuState]:
        inside, quotas = await asyncio.gather(
            super().held(), asyncio.gather(*map(_quota, self.domains.values()))
        )
        return {
            name: CpuState(inside[name].vcpus, quota)
            for name, quota in zip(self.domains, quotas, strict=True)
        }

    def after_reboot(self, vcpus: int | None, quota: float | None) -> str:
        """The quota stays with the QEMU process, which a reboot from within does not end."""
        return super().after_reboot(vcpus, None)


async def _hold(domain: str, quota: float | None) -> None:
    if quota is None and await _quota(domain) is None:
        return
    limit = NO_LIMIT if quota is None else round(quota * PERIOD)
    await virsh.virsh("schedinfo", domain, "--live", "--set", f"vcpu_period={PERIOD}", f"vcpu_quota={limit}")


async def _quota(domain: str) -> float | None:
    """Share of each vCPU's time; None where not limited."""
    # Where libvirt has no control group for it, it refuses to set a quota and to say one: there is none then.
    return parse_schedinfo(domain, await virsh.virsh("schedinfo", domain, "--live", check=False))


def parse_schedinfo(domain: str, text: str) -> float | None:
    """Share from what `virsh schedinfo` prints, one ``name : value`` a line. NodeError where that is no number."""
    settings = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        settings[name.strip()] = value.strip()
    if "vcpu_quota" not in settings:
        return None
    try:
        quota, period = int(settings["vcpu_quota"]), int(settings["vcpu_period"])
    except (KeyError, ValueError) as error:
        raise NodeError(f"virsh schedinfo {domain}: cannot tell a quota from {text!r}") from error
    # 0 is "no value", a negative one no limit, and so are more than a vCPU can use (libvirt: Domain XML, CPU Tuning).
    return quota / period if 0 < quota < period else None
