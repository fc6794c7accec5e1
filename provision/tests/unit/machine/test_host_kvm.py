"""KVM is decided by guests that finish their work; the answer is kept for one boot."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from overlaylab.machine import bootsector, kvm
from overlaylab.machine.kvm import Verdict

SOURCE = Path(bootsector.__file__).with_suffix(".S")
# Recorded: QEMU 7.2, -accel kvm -cpu host, on a KVM that interprets its guests.
QEMU_SAYS = """\
qemu-system-x86_64: warning: host doesn't support requested feature: CPUID.01H:ECX.pni [bit 0]
qemu-system-x86_64: error: failed to set MSR 0x10a to 0x69
qemu-system-x86_64: ../../target/i386/kvm/kvm.c:3183: kvm_buf_set_msrs: Assertion failed.
"""

needs_qemu = pytest.mark.skipif(not shutil.which(kvm.QEMU), reason="QEMU is not installed")


@pytest.mark.skipif(not (shutil.which("as") and shutil.which("ld")), reason="binutils are not installed")
def test_the_boot_sector_is_what_its_source_says(tmp_path):
    subprocess.run(["as", "-o", tmp_path / "x.o", SOURCE], check=True)
    subprocess.run(
        ["ld", "-m", "elf_x86_64", "-Ttext", "0x7c00", "--oformat", "binary", "-o", "x.bin", "x.o"],
        cwd=tmp_path,
        check=True,
    )
    assert (tmp_path / "x.bin").read_bytes() == bootsector.BOOT_SECTOR


def test_the_boot_sector_has_size_and_signature():
    assert len(bootsector.BOOT_SECTOR) == 512
    assert bootsector.BOOT_SECTOR[-2:] == b"\x55\xaa"


@needs_qemu
def test_the_boot_sector_finishes_where_guests_run():
    """Software emulation is the control: it always works."""
    assert kvm.boot_sector_error("tcg", 10.0) is None


@needs_qemu
def test_a_guest_that_does_something_else_is_found_out(monkeypatch):
    # jmp $ with a valid signature: boots, and never gets anywhere.
    monkeypatch.setattr(kvm, "BOOT_SECTOR", b"\xeb\xfe".ljust(510, b"\0") + b"\x55\xaa")
    assert kvm.boot_sector_error("tcg", 1.0) == "not done after 1 s"


@needs_qemu
def test_a_file_that_is_no_kernel_does_not_count_as_one(tmp_path):
    (tmp_path / "vmlinuz").write_bytes(b"no kernel" * 100)
    error = kvm.kernel_error(tmp_path / "vmlinuz", "tcg")
    assert error == "QEMU ended with exit code 1, invalid kernel header"


@pytest.fixture
def qemu(monkeypatch, tmp_path):
    """A QEMU that is a script of the test's."""

    def script(text):
        path = tmp_path / "qemu"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        monkeypatch.setattr(kvm, "find_program", lambda name: str(path))

    return script


def test_kvm_is_tried_on_the_cpu_that_the_nodes_get(qemu, tmp_path):
    qemu(f'echo "$@" >{tmp_path}/argv; echo RPLX; exit 85')
    assert kvm.boot_sector_error("kvm", 10.0) is None
    assert "-machine pc,accel=kvm -cpu host" in (tmp_path / "argv").read_text()


@pytest.mark.parametrize("text", ["echo RPL; exit 85", "echo RPLX; exit 0"])
def test_marker_and_exit_code_are_both_needed(qemu, text):
    qemu(text)
    assert kvm.boot_sector_error("kvm", 10.0) is not None


def test_a_qemu_that_hangs_is_ended_with_what_it_started(qemu, tmp_path):
    qemu(f"echo $$ >{tmp_path}/pid; exec sleep 60")
    assert kvm.boot_sector_error("kvm", 0.3) == "not done after 0 s"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("code", "output", "text"),
    [
        (None, "RP", "not done after 10 s"),
        (1, "", "QEMU ended with exit code 1"),
        (134, QEMU_SAYS, "QEMU ended with signal 6, failed to set MSR 0x10a to 0x69"),
        (-6, QEMU_SAYS, "QEMU ended with signal 6, failed to set MSR 0x10a to 0x69"),
    ],
)
def test_what_happened_is_one_line(code, output, text):
    assert kvm._what_happened(code, output, 10.0) == text


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright", "7.2.22"),
        ("something else", None),
    ],
)
def test_qemu_version(text, version):
    assert kvm.parse_qemu_version(text) == version


@pytest.fixture
def probe(monkeypatch, tmp_path):
    """A machine whose /dev/kvm opens: probe.sector, .control (emulated), .kernel and .closed say what the guests come to."""
    monkeypatch.setenv("OVERLAYLAB_CACHE", str(tmp_path))

    probe = SimpleNamespace(
        sector=None,
        control=None,
        kernel=None,
        closed=None,
        at_hand=Path("/boot/vmlinuz-6.1"),
        key={"boot_id": "1", "kernel_release": "6.1", "qemu_version": "7.2"},
        booted=[],
    )

    def boot_sector(accelerator, seconds):
        probe.booted.append(("sector", accelerator))
        return probe.sector if accelerator == "kvm" else probe.control

    def boot_kernel(kernel, accelerator):
        probe.booted.append((kernel.name, accelerator))
        return probe.kernel

    monkeypatch.setattr(kvm, "_refused_at_once", lambda: None)
    monkeypatch.setattr(kvm, "_key", lambda: dict(probe.key))
    monkeypatch.setattr(kvm, "find_kernel", lambda: probe.at_hand)
    monkeypatch.setattr(kvm, "boot_sector_error", boot_sector)
    monkeypatch.setattr(kvm, "kernel_error", boot_kernel)
    monkeypatch.setattr(kvm, "qemu_user_without_access", lambda: probe.closed)
    return probe


def test_kvm_needs_a_kernel_that_starts(probe):
    verdict = kvm.verdict()
    assert verdict == Verdict("kvm", "a kernel (vmlinuz-6.1) started under KVM", None, "kernel")
    assert probe.booted == [("sector", "tcg"), ("sector", "kvm"), ("vmlinuz-6.1", "kvm")]


def test_a_failing_boot_sector_is_answer_enough(probe):
    probe.sector = "not done after 10 s"
    verdict = kvm.verdict()
    assert verdict.accelerator == "tcg"
    assert verdict.reason == "a guest of 512 bytes did not finish under KVM: not done after 10 s"
    assert probe.booted == [("sector", "tcg"), ("sector", "kvm")]


@pytest.mark.parametrize(
    ("emulated", "control", "limit"),
    [(0.1, None, 2.0), (1.0, None, 4.0), (9.0, None, 10.0), (0.1, "QEMU ended with exit code 1", 10.0)],
)
def test_kvm_has_a_few_times_what_emulation_takes(monkeypatch, emulated, control, limit):
    clock = iter([100.0, 100.0 + emulated])
    monkeypatch.setattr(kvm, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(kvm, "boot_sector_error", lambda accelerator, seconds: control)
    assert kvm._sector_limit() == pytest.approx(limit)


def test_a_kernel_that_hangs_is_no_kvm_although_the_boot_sector_ran(probe):
    probe.kernel = "not done after 30 s"
    verdict = kvm.verdict()
    assert verdict.accelerator == "tcg"
    assert verdict.reason == "a kernel did not finish starting under KVM: not done after 30 s"


def test_without_a_kernel_the_answer_says_so_and_is_asked_again_when_there_is_one(probe):
    probe.at_hand = None
    verdict = kvm.verdict()
    assert (verdict.accelerator, verdict.strongest) == ("kvm", "boot sector")
    assert "no kernel was at hand" in verdict.reason
    probe.at_hand = Path("/boot/vmlinuz-6.1")
    probe.kernel = "not done after 30 s"
    assert kvm.verdict().accelerator == "tcg"


def test_kvm_that_the_nodes_may_not_open_is_no_kvm(probe):
    probe.closed = "libvirt-qemu"
    verdict = kvm.verdict()
    assert verdict.accelerator == "tcg"
    assert verdict.reason == "KVM works, but libvirt-qemu, which runs the nodes, may not open /dev/kvm"
    assert "sudo chown root:kvm /dev/kvm" in verdict.fix
    # Permissions change without a boot, and then nothing has to be booted again.
    probe.closed = None
    probe.booted.clear()
    assert kvm.verdict().accelerator == "kvm"
    assert probe.booted == []


def test_the_answer_is_kept(probe, tmp_path):
    first = kvm.verdict()
    probe.booted.clear()
    assert kvm.verdict() == first
    assert probe.booted == []
    assert json.loads((tmp_path / "host.json").read_text())["key"] == probe.key
    assert [path.name for path in tmp_path.iterdir()] == ["host.json"]


@pytest.mark.parametrize("field", ["boot_id", "kernel_release", "qemu_version"])
def test_another_boot_kernel_or_qemu_is_asked_anew(probe, field, monkeypatch):
    kvm.verdict()
    probe.booted.clear()
    monkeypatch.setattr(probe, "key", {**probe.key, field: "2"})
    kvm.verdict()
    assert ("sector", "kvm") in probe.booted


@pytest.mark.parametrize("text", ["", "[]", '{"key": {}}', '{"key": 1, "kvm": {"what": 1}}'])
def test_a_damaged_cache_is_asked_anew(probe, tmp_path, text):
    (tmp_path / "host.json").write_text(text)
    assert kvm.verdict().accelerator == "kvm"


def test_no_device_is_answered_at_once_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(kvm, "KVM_DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(kvm, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    verdict = kvm.verdict()
    assert (verdict.accelerator, verdict.reason) == ("tcg", f"{tmp_path}/kvm does not exist")
    assert verdict.fix == (
        "switch on virtualisation (VT-x, AMD-V) in the firmware, or nested virtualisation where this is a VM"
    )


@pytest.mark.parametrize(
    ("groups", "fix"),
    [
        (["libvirt", "kvm"], "type `./task setup` to join the group kvm"),
        (["libvirt"], kvm._GIVE_TO_GROUP),
    ],
)
def test_a_closed_device_names_the_fix_that_holds(monkeypatch, groups, fix):
    def refuse(path, flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(kvm, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(kvm, "needed_groups", lambda: groups)
    assert kvm.verdict() == Verdict("tcg", "/dev/kvm may not be opened by this user", fix)


def test_another_architecture_runs_the_nodes_in_software(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert kvm.verdict() == Verdict("tcg", "the nodes are x86-64, this machine is aarch64")
