"""Around a call of apt-get: who else uses it, waiting for them, and what to tell when it fails.

``provision/toolchain/packages.sh`` does the same for ./task, before there is a toolchain.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from overlaylab.core.errors import UserError
from overlaylab.core.progress import say

# Seconds for which another program's installation is waited for.
WAIT = 300

LOCKS = tuple(
    Path(name)
    for name in (
        "/var/lib/dpkg/lock-frontend",
        "/var/lib/dpkg/lock",
        "/var/lib/apt/lists/lock",
        "/var/cache/apt/archives/lock",
    )
)

# How apt-get and dpkg say that another program was a moment faster than they.
HELD = ("Could not get lock", "was locked by another process")
# How apt-get says that an installation was killed, or ran out of disk, and dpkg has to end it first.
INTERRUPTED = "dpkg was interrupted"
# How it says that such an one left packages without what they depend on. Not what it says of packages to come.
BROKEN = "E: Unmet dependencies"

_NOISE = "delaying package configuration, since apt-utils is not installed"


def holder(table: Path = Path("/proc/locks")) -> str | None:
    """Who holds a lock of dpkg or apt, ``apt-get, process 123``. proc_locks(5) tells anybody; opening takes root."""
    inodes = {str(path.stat().st_ino) for path in LOCKS if path.exists()}
    for line in table.read_text(encoding="ascii").splitlines():
        # "1: POSIX  ADVISORY  WRITE 123 08:01:456 0 EOF"; one who waits has an arrow in the second column.
        fields = line.split()
        if fields[1] == "POSIX" and fields[5].rpartition(":")[2] in inodes:
            return f"{_name(fields[4])}, process {fields[4]}"
    return None


def _name(process: str) -> str:
    try:
        return Path("/proc", process, "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "a program"


def wait_until_free() -> None:
    """Wait while another program uses apt, and say for whom. UserError after WAIT seconds.

    apt-get waits for dpkg's lock by itself, silently, and for that of the package lists not at all.
    """
    given_up = time.monotonic() + WAIT
    told = False
    while who := holder():
        if not told:
            say(f"packages are being installed by {who}: waiting for it, {WAIT} s at most")
            told = True
        if time.monotonic() > given_up:
            raise UserError(
                "apt",
                "must not be in use by another program",
                seen=f"{who}, for {WAIT} s",
                fix="Wait until that ends, then type the command again; nothing was changed",
            )
        time.sleep(1)


def pass_on(text: str | None) -> str:
    """Print what apt-get wrote to standard error but for noise; the same text."""
    lines = [line for line in (text or "").splitlines() if _NOISE not in line]
    if lines:
        print(*lines, sep="\n", file=sys.stderr, flush=True)
    return "\n".join(lines)


def complaints(text: str) -> list[str]:
    """The lines of apt-get's output that say what is wrong, at most the last six, without repetition."""
    lines = [line for line in text.splitlines() if re.match(r"[EW]: |dpkg: error", line)]
    return list(dict.fromkeys(lines))[-6:]


def is_held(said: str) -> bool:
    """Whether that is why apt-get or dpkg, said: its words, did nothing."""
    return any(words in said for words in HELD)


def failed(packages: Sequence[str], code: int, said: str) -> UserError:
    """What to tell when an installation failed. said: what apt-get wrote, refreshing the lists included."""
    if own := remedy_here(said):
        fix = own
    elif len(broken := _sources(said)) == 1:
        fix = f"Correct or remove the package source that is named ({broken[0]}), or check the network"
    else:
        fix = "Check the network and the package sources (Debian: main; Ubuntu: main and universe)"
    return UserError(
        "apt-get install",
        f"must succeed once for {', '.join(packages)}",
        seen=" | ".join(complaints(said)) or f"exit code {code}, its output is above",
        fix=f"{fix}, then type the command again; what is installed by then is kept",
    )


def remedy_here(said: str) -> str | None:
    """What helps where the cause is on this machine, whatever the packages' source; None where it is not."""
    if "No space left" in said or "enough free space" in said:
        return "Free some disk (`sudo apt-get clean` removes downloaded packages)"
    if is_held(said):
        return "Wait until the program that is named ends"
    if any(words in said for words in (INTERRUPTED, BROKEN, "dpkg: error")):
        return "Put right what is named; `sudo dpkg --configure -a` and `sudo apt-get --fix-broken install` try again"
    return None


def _sources(said: str) -> list[str]:
    """Files and addresses of the sources that apt-get complains of; with several, it is rather the network."""
    about = ("Failed to fetch", "The repository", "GPG error", "Malformed entry")
    lines = [line for line in complaints(said) if any(words in line for words in about)]
    found = [re.search(r"\S+\.(?:list|sources)\b|\w+://[^\s']+", line) for line in lines]
    return list(dict.fromkeys(one[0] for one in found if one))
