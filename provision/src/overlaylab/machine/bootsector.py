"""The assembled bootsector.S: a guest that proves more than /dev/kvm's existence does."""

from __future__ import annotations

# What it prints: real mode, protected mode, long mode after its work, exception.
MARKER = "RPLX"

# What QEMU ends with; isa-debug-exit makes it of the 42 that the guest writes.
EXIT_STATUS = 42 * 2 + 1

_CODE = bytes.fromhex(
    "fafc31c08ed88ec08ed0bc0070b052e6e90f0116007d0f20c00c010f22c066ea267c0000080066b810008ed88ec08ed0"
    "b050e6e9bf0010000031c0b9000c0000f3abc7050010000003200000c7050020000003300000c7050030000083000000"
    "0f20e083c8200f22e0b8001000000f22d8b9800000c00f320d000100000f300f20c00d000000800f22c0ea917c000018"
    "00b980f0fa02ffc975fcb04ce6e948c7c70050000031c0b900040000f3abc7042560500000ce7c1800c7042564500000"
    "008e00000f011c25067d00000f0bb058e6e9b02a66baf400eef4660f1f4400000000000000000000ffff0000009acf00"
    "ffff00000092cf00ffff0000009aaf001f00e07c0000ff0f0050"
)

# 512 bytes.
BOOT_SECTOR = _CODE.ljust(510, b"\0") + b"\x55\xaa"
