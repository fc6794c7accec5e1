"""What puts hosts that can only be reached into the state of a variant: reset and converged in turn, no snapshots.

They keep their way in: a dead man's timer on each host takes profile and overlay away unless the
runner renews it, and port 22 is exempt from shaping where the underlay carries SSH too.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Unpack

from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.core.progress import step
from overlaylab.image import kit
from overlaylab.nodes import ansible, kit_delivery, servers
from overlaylab.nodes.ssh import Node, Nodes
from overlaylab.providers import Entered, How, Say, requirements
from overlaylab.shaping import cpu, scripts
from overlaylab.shaping.cpu import CpuHolder, InNode
from overlaylab.specs import overlays
from overlaylab.tools import base as tools

TIMER = "overlaylab-deadman"
# Seconds without a word from the runner after which a host cleans itself up.
PATIENCE = 600
RENEW_EVERY = 120
# The process id of what waits in its place on a host without systemd.
TIMER_SESSION = "/run/overlaylab/deadman.pid"
_STOP_TIMER = (
    f"if [ -e {TIMER_SESSION} ]; then read -r pid <{TIMER_SESSION}; kill -- -$pid 2>/dev/null; rm -f {TIMER_SESSION}; fi;"
    f" systemctl stop {TIMER}.timer {TIMER}.service 2>/dev/null"
)
RESET = "/opt/overlaylab/overlay/overlay-reset"
MODULES_BEFORE = "/run/overlaylab-modules-before"
# Kernel modules that shaping and looking at sockets load.
OUR_MODULES = ("act_mirred", "sch_ingress", "ifb", "sch_htb", "sch_netem", "cls_u32", "tcp_diag", "inet_diag")
CLEAR = "/run/overlaylab-clear-profile"

# systemd-detect-virt(1)'s words to accelerators; all other hypervisors use the CPU's own virtualisation.
_VIRTUALIZATION = {"none": "bare", "qemu": "tcg", "lxc": "shared-kernel", "docker": "shared-kernel"}


# As systemd-detect-virt(1) says it, which fails where it says "none"; without systemd, what the kernel tells.
_DETECT = (
    f"if [ -d {servers.SYSTEMD} ]; then systemd-detect-virt 2>/dev/null;"
    " elif tr '\\0' '\\n' </proc/1/environ 2>/dev/null | grep -q '^container='; then echo lxc;"
    " elif grep -qs QEMU /sys/class/dmi/id/sys_vendor && ! grep -qwE 'vmx|svm' /proc/cpuinfo; then echo qemu;"
    " elif grep -qw hypervisor /proc/cpuinfo; then echo kvm; else echo none; fi;"
)


def clear_script(interface: str) -> str:
    """POSIX sh for root on a host: take a profile away, its CPU limits first, as they slow down the rest.

    Each part in a shell of its own: it ends by itself, and its failure must not keep the other from its work.
    """
    return f"""\
( {cpu.clear_script()}) ; of_cpu=$?
( {scripts.clear_script(interface)}) && [ "$of_cpu" = 0 ]
"""


class HostState:
    """`overlaylab.providers.VariantState` of such hosts, whoever made them: a provider adds its `Machines`."""

    # What systemd-detect-virt(1) says of the hosts decides, once they were asked.
    accelerator = "bare"
    # Known once the hosts have been prepared.
    system: str | None = None
    kit: str | None = None

    def __init__(self, path: Path, nodes: Nodes, **how: Unpack[How]) -> None:
        """path: the hosts' inventory."""
        self.path, self.nodes = path, nodes
        self.underlay_mtu = how.get("underlay_mtu")
        self.role_arguments = how.get("role_arguments") or {}
        # What each host is, once they were asked.
        self.facts: dict[str, JSON] = {}
        self._current: Variant | None = None
        # What was being converged or reset when that failed: it may be there in part.
        self._unsure: Variant | None = None
        # Whether what a killed run may have left was taken away.
        self._cleared = False
        self._renewing: asyncio.Task[None] | None = None

    @property
    def cpu(self) -> CpuHolder:
        return InNode(self.nodes)

    async def kept(self) -> set[str]:
        return set()

    def is_converged(self, variant: Variant, snapshots: Iterable[str]) -> bool:
        return False

    async def prepare(self, variants: Sequence[Variant], say: Say) -> None:
        if self.facts:
            return
        await self.nodes.connect()
        self.kit = (await kit_delivery.ensure(self.nodes, kit.ensure)).digest
        script = (
            f"[ -e {MODULES_BEFORE} ] || cut -d' ' -f1 /proc/modules >{MODULES_BEFORE}; "
            "(. /etc/os-release 2>/dev/null; echo ${ID-unknown}${VERSION_ID:+-$VERSION_ID}); "
            f"{_DETECT} nproc; "
            "awk '/MemTotal/{print int($2/1024)}' /proc/meminfo; uname -r;"
            " sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1;"
        )
        for name, done in (await self.nodes.sh(script)).items():
            system, virtualization, cpus, memory, kernel, *model = done.stdout.strip().splitlines()
            self.facts[name] = {
                "system": system,
                "virtualization": virtualization,
                "cpus": int(cpus),
                "memory_mib": int(memory),
                "kernel": kernel,
                "cpu": model[0] if model else None,
            }
        await self._check_tools(variants)
        await self._check_cards(variants)
        found = {_VIRTUALIZATION.get(facts["virtualization"], "kvm") for facts in self.facts.values()}
        if len(found) > 1:
            raise UserError(
                f"{self.path}", "hosts of one run must have CPUs of one kind", seen=", ".join(sorted(found)),
                fix="Measure between hosts that run alike",
            )  # fmt: skip
        self.accelerator = found.pop()
        self.system = ", ".join(sorted({facts["system"] for facts in self.facts.values()}))
        self._renewing = asyncio.create_task(self._keep_renewing())

    async def _check_tools(self, variants: Sequence[Variant]) -> None:
        """Refuse hosts that lack a command that measuring or an overlay needs."""
        wanted = {*(tools.load(name).version_argv()[0] for name in tools.names())}
        for variant in variants:
            overlay = overlays.load(variant.overlay)
            wanted |= {*overlay.needs.commands, *overlay.modes[variant.key].commands}
        script = f"for c in {' '.join(sorted(wanted))}; do command -v $c >/dev/null || echo $c; done"
        for name, done in (await self.nodes.sh(script)).items():
            if done.stdout.strip():
                raise UserError(
                    f"{self.path}: {name}",
                    "must have the commands that measuring needs",
                    seen=f"none of these: {', '.join(done.stdout.split())}",
                    fix="Install them there: the node kit has all but systemd and Docker (docs/ssh-hosts.md)",
                )

    async def _check_cards(self, variants: Sequence[Variant]) -> None:
        """Refuse hosts whose underlay card lacks what an overlay needs of it."""
        for variant in variants:
            if not (missing := requirements.cards(variant)):
                continue
            for node in self.nodes.values():
                name = node.spec.underlay_interface
                asked = await node.sh(
                    f"cat /sys/class/net/{shlex.quote(name)}/device/sriov_totalvfs", check=False
                )
                if not asked.stdout.strip().strip("0"):
                    raise UserError(
                        f"{self.path}: {node.name}",
                        f"must have what {variant.overlay} needs: {requirements.listed(requirements.titles(missing))}",
                        seen=f"{name} with {asked.stdout.strip() or 'no'} virtual functions to be had",
                        fix="Switch SR-IOV on in the machine's firmware, or measure hosts that have it",
                    )

    async def enter(self, variant: Variant, fresh: bool = False) -> Entered:
        """Not booted, whatever `fresh` says: they are somebody's machines."""
        started = time.monotonic()
        if variant == self._current:
            await self._clear_profile()
            return Entered(revert=time.monotonic() - started, converge=0.0)
        await self._clear_profile()
        await self._reset()
        # Before anything is changed: the runner may be killed while the overlay converges.
        await self.renew()
        if self.underlay_mtu:
            for node in self.nodes.values():
                await node.sh(scripts.mtu_script(node.spec.underlay_interface, self.underlay_mtu))
        self._unsure = variant
        with step(f"converge-{variant.overlay}-hosts", f"converging {variant}", 40):
            await self._playbook(variant, "converge")
        self._current, self._unsure = variant, None
        return Entered(revert=0.0, converge=time.monotonic() - started)

    async def _reset(self) -> None:
        """Take away the overlay that is there, whole or in part; none is no error."""
        left = self._current or self._unsure
        if left is None:
            if not self._cleared:
                # A run that was killed leaves the overlay and, beside it, what takes it away.
                for node in self.nodes.values():
                    await node.sh(f"[ ! -x {RESET} ] || {RESET}")
                self._cleared = True
            return
        self._current, self._unsure = None, left
        with step(f"reset-{left.overlay}-hosts", f"resetting {left.overlay}", 20):
            await self._playbook(left, "reset")
        self._unsure = None

    async def _playbook(self, variant: Variant, verb: str) -> None:
        arguments = overlays.arguments_of(variant, self.role_arguments)
        await asyncio.to_thread(ansible.run_playbook, self.path, variant.overlay, verb, arguments)

    async def _clear_profile(self) -> None:
        for node in self.nodes.values():
            await node.sh(clear_script(node.spec.underlay_interface))

    async def renew(self) -> None:
        """(Re)arm the timer on every host; systemd-run(1) transient timers end with their unit."""

        async def one(node: Node) -> None:
            clear = clear_script(node.spec.underlay_interface)
            ended = f"sh {CLEAR}; [ ! -x {RESET} ] || {RESET}"
            await node.sh(
                f"cat >{CLEAR} <<'CLEAR'\n{clear}CLEAR\n"
                f"{_STOP_TIMER}\n"
                f"if [ ! -d {servers.SYSTEMD} ]; then\n"
                f"    mkdir -p {TIMER_SESSION.rpartition('/')[0]}\n"
                f"    setsid {shlex.join(['sh', '-c', f'sleep {PATIENCE}; {ended}'])} </dev/null >/dev/null 2>&1 &\n"
                f"    echo $! >{TIMER_SESSION}; exit 0\n"
                "fi\n"
                f"systemctl reset-failed {TIMER}.timer {TIMER}.service 2>/dev/null\n"
                f'systemd-run --quiet --collect --unit={TIMER} --setenv=PATH="$PATH" --on-active={PATIENCE} '
                + shlex.join(["sh", "-c", ended])
            )

        # One host that does not answer must not let the timers of the others run out.
        for outcome in await asyncio.gather(*map(one, self.nodes.values()), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY)
            # A host that does not answer now is the trial's business; the timer is there for exactly that.
            with contextlib.suppress(Exception):
                await self.renew()

    async def remove_all(self) -> dict[str, list[str]]:
        """Take everything of ours off the hosts, the kit too; {host: folders that were removed}. Needs no `prepare`."""
        await self.nodes.connect()
        for node in self.nodes.values():
            # Without the kit nothing of ours was ever there.
            done = await node.sh('[ -x "$OVERLAYLAB/bin/tc" ] && echo yes', check=False)
            if done.stdout.strip():
                await node.sh(clear_script(node.spec.underlay_interface))
                await node.sh(f"[ ! -x {RESET} ] || {RESET}", timeout=300)
        await self._end_units()
        removed = await kit_delivery.remove(self.nodes)
        self.nodes.drop()
        return removed

    async def leave(self) -> None:
        if self._renewing:
            self._renewing.cancel()
        await self._clear_profile()
        await self._reset()
        await self._end_units()
        self.nodes.drop()

    async def _end_units(self) -> None:
        # What tc and ss loaded on our behalf, unless it was there before or somebody uses it now.
        unload = "; ".join(
            f"grep -qx {module} {MODULES_BEFORE} || modprobe -r {module} 2>/dev/null"
            for module in OUR_MODULES
        )
        await self.nodes.sh(
            f"{_STOP_TIMER}; {servers.STOP}\nrm -f {CLEAR}; "
            f"if [ -e {MODULES_BEFORE} ]; then {unload}; rm -f {MODULES_BEFORE}; fi",
            check=False,
        )
