"""Wheels of a lock file, fetched by pip."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def download(lock: Path, folder: Path, options: Sequence[str] = ()) -> bool:
    """Fetch what ``lock`` pins into ``folder``; pip compares it with its hashes. Whether it is all there."""
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    argv += ["--require-hashes", "--only-binary", ":all:", "--dest", str(folder), "-r", str(lock), *options]
    return subprocess.run(argv, stdout=sys.stderr, stdin=subprocess.DEVNULL, check=False).returncode == 0
