"""Where host packages come from: the system's own sources, or the bundle beside this checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from overlaylab import bundle_source, host_apt, paths
from overlaylab.errors import UserError

SCRIPT = paths.PROVISION / "toolchain" / "bundle.sh"


def options() -> list[str]:
    """What apt-get and apt-cache are told: nothing, or to take packages from the bundle alone.

    Raises UserError where the bundle is damaged, or for another system or architecture.
    """
    if not bundle_source.present():
        return []
    for file in bundle_source.manifest().files:
        # Of the packages themselves apt compares the digests, with this index.
        if file.path.startswith("bundle/packages/") and "/pool/" not in file.path:
            bundle_source.check(file)
    environment = {**os.environ, "OVERLAYLAB_ROOT": str(paths.ROOT), "OVERLAYLAB_CACHE": str(paths.cache())}
    done = subprocess.run(
        ["sh", SCRIPT, "apt-options"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        where, _, rest = done.stderr.strip().removeprefix("overlaylab: ").partition(": ")
        rule, _, fix = rest.partition(". ")
        raise UserError(where, rule, fix=fix.rstrip("."))
    return done.stdout.splitlines()


def failed(packages: Sequence[str], said: str) -> UserError | None:
    """What to tell where apt-get failed with the bundle, said: its words; None without a bundle, or on a full disk."""
    if not bundle_source.present() or "No space left" in said or "enough free space" in said:
        return None
    return UserError(
        "apt-get install",
        f"must succeed once for {', '.join(packages)}, out of the bundle",
        seen=" | ".join(host_apt.complaints(said)) or "its output is above",
        fix="Where packages have unmet dependencies, this machine is newer than the bundle: make the bundle anew, or "
        "install them from a medium of this machine's system; then type the command again",
    )
