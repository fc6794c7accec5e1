"""Whether KVM works here, decided by booting guests with it.

That /dev/kvm exists, opens and creates a VM proves little: where KVM itself runs inside a VM without nested
hardware support, it may interpret a guest kernel's instructions one by one, and a stock kernel does not reach
its console in a minute. So a guest must finish a stated amount of work in time, on the CPU model that the
nodes get (host-passthrough).
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.accelerators import ACCELERATORS
from overlaylab.machine.access import KVM_DEVICE, needed_groups, qemu_user_without_access
from overlaylab.machine.bootsector import BOOT_SECTOR, EXIT_STATUS, MARKER
from overlaylab.machine.packages import find_program
from overlaylab.machine.services import boot_id

QEMU = "qemu-system-x86_64"

# 0.5 s under software emulation, less on hardware; over 30 s where instructions are interpreted.
_SECTOR_SECONDS = 10.0
# KVM that needs so many times as long as emulation just did is of no use; and never less than so many seconds.
_SLOWER = 4.0
_SECTOR_LEAST = 2.0

# 4 s under software emulation with two other jobs running; about 1 s with KVM.
_KERNEL_SECONDS = 30.0

_GIVE_TO_GROUP = (
    f"give the device to the group kvm (sudo chown root:kvm {KVM_DEVICE}; sudo chmod 0660 {KVM_DEVICE}), "
    "then type `./task setup`"
)

# The panic of a kernel that initialised everything and found no disk: it got as far as it could.
_KERNEL_DONE = "Unable to mount root fs"


@dataclass(frozen=True)
class Verdict:
    """How nodes' CPUs will run and why; ``fix`` is what would make KVM usable, None where nothing would.

    strongest: the strongest guest that was booted, ``kernel`` or ``boot sector``; None where none was.
    """

    accelerator: str
    reason: str
    fix: str | None = None
    strongest: str | None = None

    @property
    def is_emulated(self) -> bool:
        return ACCELERATORS[self.accelerator].is_emulated


def verdict() -> Verdict:
    """KVM or not, from the cache of this boot where the same question was answered. Seconds otherwise."""
    refused = _refused_at_once()
    if refused:
        return refused
    answer = _answer()
    closed = None if answer.is_emulated else qemu_user_without_access()
    if closed:
        # Not kept with the answer: permissions change without a boot.
        reason = f"KVM works, but {closed}, which runs the nodes, may not open {KVM_DEVICE}"
        return Verdict("tcg", reason, _GIVE_TO_GROUP, answer.strongest)
    return answer


def _answer() -> Verdict:
    """What the guests came to, in this boot or now."""
    kernel = find_kernel()
    key = _key()
    known = _load(key)
    # An answer by boot sector only is asked again once a kernel is at hand.
    if known and (known.is_emulated or known.strongest != "boot sector" or not kernel):
        return known
    answer = _boot(kernel)
    _store(key, answer)
    return answer


def _refused_at_once() -> Verdict | None:
    if platform.machine() != "x86_64":
        return Verdict("tcg", f"the nodes are x86-64, this machine is {platform.machine()}")
    if find_program(QEMU) is None:
        return Verdict("tcg", f"{QEMU} is not installed", "type `./task setup`")
    try:
        descriptor = os.open(KVM_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return Verdict(
            "tcg",
            f"{KVM_DEVICE} does not exist",
            "switch on virtualisation (VT-x, AMD-V) in the firmware, or nested virtualisation where this is a VM",
        )
    except PermissionError:
        remedy = "type `./task setup` to join the group kvm" if "kvm" in needed_groups() else _GIVE_TO_GROUP
        return Verdict("tcg", f"{KVM_DEVICE} may not be opened by this user", remedy)
    except OSError as error:
        return Verdict("tcg", f"{KVM_DEVICE} does not open: {error.strerror}")
    os.close(descriptor)
    return None


def _boot(kernel: Path | None) -> Verdict:
    sector = boot_sector_error("kvm", _sector_limit())
    if sector:
        return Verdict("tcg", f"a guest of 512 bytes did not finish under KVM: {sector}", None, "boot sector")
    if kernel:
        failure = kernel_error(kernel, "kvm")
        if failure:
            return Verdict("tcg", f"a kernel did not finish starting under KVM: {failure}", None, "kernel")
        return Verdict("kvm", f"a kernel ({kernel.name}) started under KVM", None, "kernel")
    return Verdict(
        "kvm",
        "a boot sector ran at full speed in long mode under KVM; no kernel was at hand to try as well",
        None,
        "boot sector",
    )


def _sector_limit() -> float:
    """Seconds that KVM has for the boot sector: a few times what emulation takes for it now."""
    began = time.monotonic()
    if boot_sector_error("tcg", _SECTOR_SECONDS):
        return _SECTOR_SECONDS
    return min(_SECTOR_SECONDS, max(_SECTOR_LEAST, _SLOWER * (time.monotonic() - began)))


def boot_sector_error(accelerator: str, seconds: float) -> str | None:
    """Boot our boot sector; None when it did its work in so many seconds, else what happened instead."""
    with tempfile.NamedTemporaryFile(prefix="overlaylab-bootsector-", suffix=".img") as disk:
        disk.write(BOOT_SECTOR)
        disk.flush()
        code, output = _qemu(
            accelerator,
            [
                *("-m", "64"),
                *("-drive", f"file={disk.name},format=raw,if=ide,readonly=off,snapshot=on"),
                *("-debugcon", "stdio"),
                *("-device", "isa-debug-exit,iobase=0xf4,iosize=1"),
            ],
            seconds,
        )
    if code == EXIT_STATUS and MARKER in output:
        return None
    return _what_happened(code, output, seconds)


def kernel_error(kernel: Path, accelerator: str) -> str | None:
    """Start a Linux kernel without a disk; None when it initialised itself to the end, else what happened."""
    code, output = _qemu(
        accelerator,
        [
            *("-m", "256", "-smp", "2"),
            *("-kernel", str(kernel)),
            # panic=-1 with -no-reboot: QEMU ends at the panic for want of a root file system.
            *("-append", "console=ttyS0 panic=-1"),
            *("-serial", "stdio"),
        ],
        _KERNEL_SECONDS,
    )
    if _KERNEL_DONE in output:
        return None
    return _what_happened(code, output, _KERNEL_SECONDS)


def _qemu(accelerator: str, arguments: list[str], seconds: float) -> tuple[int | None, str]:
    """(exit code or None at the time limit, everything it printed). Leaves no process behind."""
    cpu = "qemu64" if ACCELERATORS[accelerator].is_emulated else "host"
    command = [
        # KILL by timeout(1), which stays when this process is killed. No core files: QEMU may abort.
        *("prlimit", "--core=0", "timeout", "--foreground", "--signal=KILL", str(seconds)),
        *(str(find_program(QEMU)), "-machine", f"pc,accel={accelerator}", "-cpu", cpu),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *arguments),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds + 5,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return None, (late.stdout or b"").decode(errors="replace")
    output = done.stdout.decode(errors="replace")
    # 137: timeout(1) sent KILL, and ends so itself.
    return (None if done.returncode in (137, -9) else done.returncode), output


def _what_happened(code: int | None, output: str, seconds: float) -> str:
    """One line: the time limit, or QEMU's last words."""
    if code is None:
        return f"not done after {seconds:.0f} s"
    words = [line.partition(": ")[2] for line in output.splitlines() if line.startswith("qemu")]
    said = next((word.removeprefix("error: ") for word in words if not word.startswith("warning: ")), None)
    # prlimit and timeout pass a signal on in two ways.
    ending = f"signal {-code}" if code < 0 else f"signal {code - 128}" if code > 128 else f"exit code {code}"
    return f"QEMU ended with {ending}" + (f", {said}" if said else "")


def find_kernel() -> Path | None:
    """A Linux kernel that this user may read: this machine's own (Ubuntu's is root's), else a built image's."""
    boot = Path("/boot")
    found = [boot / f"vmlinuz-{platform.release()}", *sorted(boot.glob("vmlinuz-*"), reverse=True)]
    found += sorted(Path("/usr/lib/modules").glob("*/vmlinuz"), reverse=True)
    found += sorted((paths.cache() / "images").glob("*/vmlinuz"))
    return next((kernel for kernel in found if kernel.is_file() and os.access(kernel, os.R_OK)), None)


def parse_qemu_version(text: str) -> str | None:
    """``7.2.22`` from ``QEMU emulator version 7.2.22 (Debian …)``."""
    match = re.match(r"QEMU emulator version (\S+)", text)
    return match.group(1) if match else None


def _key() -> dict[str, str | None]:
    """What the answer depends on."""
    version = subprocess.run(
        [str(find_program(QEMU)), "--version"], capture_output=True, text=True, check=False
    )
    return {
        "boot_id": boot_id(),
        "kernel_release": platform.release(),
        "qemu_version": parse_qemu_version(version.stdout),
    }


def _cache_file() -> Path:
    return paths.cache() / "host.json"


def _load(key: dict[str, str | None]) -> Verdict | None:
    try:
        stored = json.loads(_cache_file().read_text(encoding="utf-8"))
        return Verdict(**stored["kvm"]) if stored["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(key: dict[str, str | None], answer: Verdict) -> None:
    """Keep the answer; replaced in one step, as two commands may ask at once."""
    target = _cache_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"key": key, "kvm": asdict(answer)}, indent=2) + "\n", encoding="utf-8")
    fresh.replace(target)
