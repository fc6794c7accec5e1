"""Where host packages come from: the system's own sources, or the bundle beside this checkout."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.machine import apt, bundle_source
from overlaylab.machine.bundle_manifest import FOLDER

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
    """What to tell where apt-get failed with the bundle, said: its words; None where the bundle is not the cause.

    Raises UserError where the bundle lacks packages: it is older than this checkout, or made for less.
    """
    if not bundle_source.present() or apt.remedy_here(said):
        return None
    if lacking := sorted(_unknown(said) - _held()):
        bundle_source.lacks("all packages", ", ".join(lacking))
    return UserError(
        "apt-get install",
        f"must succeed once for {', '.join(packages)}, out of the bundle",
        seen=" | ".join(apt.complaints(said)) or "its output is above",
        fix="Where packages have unmet dependencies, this machine is newer than the bundle: make the bundle anew, or "
        "install them from a medium of this machine's system; then type the command again",
    )


def _unknown(said: str) -> set[str]:
    """Packages that apt-get knows nothing of, or by name alone."""
    words = r"^E: (?:Unable to locate package (\S+)|Package '(\S+)' has no installation candidate)"
    return {found[1] or found[2] for found in re.finditer(words, said, re.MULTILINE)}


def _held() -> set[str]:
    """Packages in the bundle's own index: where apt-get does not find one of them, it is not for want of it."""
    try:
        index = (paths.ROOT / FOLDER / "packages" / "Packages").read_text(encoding="utf-8")
    except OSError:
        return set()
    return set(re.findall(r"^Package: (\S+)$", index, re.MULTILINE))
