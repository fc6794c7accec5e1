"""A bare machine to try the project on: a minimal Debian root in namespaces of its own, and an ordinary user in it.

python3 provision/tests/bare shell [--offline] [--bundle FILE] [COMMAND]    look around, or run one command line
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import roots
import settings
import space

CHECKOUT = Path(__file__).resolve().parents[3]


@contextlib.contextmanager
def machine(*, network: bool = True, bundle: Path | None = None) -> Iterator[space.Space]:
    """A bare root with the ordinary user, this machine's way out, and a clone of the commit in ~/overlaylab.

    bundle: that file is unpacked there instead.
    """
    with roots.unpacked() as root, space.running(root, network=network) as there:

        def run(argv: list[str]) -> None:
            done = there.as_root(argv, capture_output=True)
            if done.returncode:
                raise SystemExit(
                    f"bare root: {' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}"
                )

        home = settings.add_user(root, run)
        settings.write(root, home)
        run(["update-ca-certificates"])
        if bundle is None:
            clone(there, home, run)
        else:
            unpack(there, home, bundle)
        yield there


def clone(there: space.Space, home: Path, run) -> None:
    """The commit, and what came before it: by a file, as git reads no repository of another user's."""
    bundle = home / "overlaylab.bundle"
    subprocess.run(["git", "-C", CHECKOUT, "bundle", "create", "--quiet", bundle, "HEAD"], check=True)
    run(["chown", "-R", f"{space.USER}:", f"/home/{space.USER}"])
    done = there.as_user(
        "git init --quiet --initial-branch=main overlaylab && cd overlaylab && git pull --quiet ../overlaylab.bundle HEAD"
        " && rm ../overlaylab.bundle"
    )
    if done.returncode:
        raise SystemExit("bare root: the checkout could not be cloned")


def unpack(there: space.Space, home: Path, bundle: Path) -> None:
    """A bundle (docs/offline.md) as its user unpacks it."""
    shutil.copyfile(bundle, home / "overlaylab.tar")
    if there.as_user("tar xf overlaylab.tar && rm -f overlaylab.tar").returncode:
        raise SystemExit(f"bare root: {bundle} could not be unpacked")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bare", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    shell = commands.add_parser(
        "shell", help="a login shell of the ordinary user, or one command line of theirs"
    )
    shell.add_argument("--offline", action="store_true", help="leave it nothing but loopback")
    shell.add_argument("--bundle", type=Path, help="unpack this file there instead of cloning the commit")
    shell.add_argument("line", nargs="?", default="", help="what to type; without it, a shell")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit(
            "bare root: needs root, for namespaces and mounts: sudo python3 provision/tests/bare …"
        )
    with machine(network=not asked.offline, bundle=asked.bundle) as there:
        return there.as_user(asked.line).returncode


if __name__ == "__main__":
    sys.exit(main())
