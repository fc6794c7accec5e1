"""A bare machine to try the project on: a minimal Debian root in namespaces of its own, and an ordinary user in it.

    python3 provision/tests/bare walk [--cold | --warm | --systemd | --offline]     type the README's two commands; what CI does
    python3 provision/tests/bare first [COMMAND…]      type each as the first command on a machine of its own
    python3 provision/tests/bare shell [--offline] [--bundle FILE] [COMMAND]    look around, or run one command line

Needs root. Its state (roots, caches of downloads, image and daemons) lies in OVERLAYLAB_BARE, by default
/var/tmp/overlaylab-bare, and is removed with that folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import bare_caches
import bare_first
import bare_roots
import bare_settings
import bare_space
import bare_walk

CHECKOUT = Path(__file__).resolve().parents[3]
# What this takes, and the packages that bring it.
PROGRAMS = {"mmdebstrap": "mmdebstrap debian-archive-keyring", "slirp4netns": "slirp4netns", "git": "git"}

Run = Callable[[list[str]], None]


@contextlib.contextmanager
def machine(
    *,
    network: bool = True,
    systemd: bool = False,
    bundle: Path | None = None,
    later: contextlib.ExitStack | None = None,
) -> Iterator[tuple[bare_space.Space, Run]]:
    """A bare root with the ordinary user, this machine's way out, and a clone of the commit in ~/overlaylab.

    systemd: it is the first process there. bundle: that file (docs/offline.md) is unpacked instead of the clone.
    later: with which its files are removed, not at once. With it comes run(argv), which runs something in it as root and
    ends this program where that fails.
    """
    packages = bare_roots.WITH_SYSTEMD if systemd else bare_roots.PACKAGES
    with (
        bare_roots.unpacked(packages, later) as root,
        bare_space.running(root, network=network, systemd=systemd) as there,
    ):

        def run(argv: list[str]) -> None:
            done = there.as_root(argv, capture_output=True)
            if done.returncode:
                raise SystemExit(
                    f"bare root: {' '.join(argv)} ended with {done.returncode}: {done.stderr.strip()}"
                )

        if systemd:
            run(["sh", "-c", "until [ -S /run/systemd/private ]; do sleep 0.1; done"])
            # It is "degraded", and the exit code 1, where a unit failed: that is for who is there to see.
            there.as_root(["systemctl", "is-system-running", "--wait"], capture_output=True)
        home = bare_settings.add_user(root, run)
        bare_settings.write(root, home)
        run(["update-ca-certificates"])
        if bundle is None:
            _clone(there, home, run)
        else:
            _unpack(there, home, bundle)
        yield there, run


@contextlib.contextmanager
def _lent() -> Iterator[bare_space.Space]:
    """A machine with what earlier runs fetched and built."""
    with machine() as (there, run):
        _lend(there, run, toolchain=True)
        yield there


def _lend(there: bare_space.Space, run: Run, *, toolchain: bool = False) -> None:
    bare_caches.lend(there.root, toolchain=toolchain)
    # Its user owns all of it, as if fetched and built there.
    run(["sh", "-c", f"[ ! -e /{bare_caches.OWN} ] || chown -R {bare_space.USER}: /{bare_caches.OWN}"])


def _clone(there: bare_space.Space, home: Path, run: Run) -> None:
    """The commit, and what came before it: by a file, as git reads no repository of another user's."""
    bundle = home / "overlaylab.bundle"
    git = ["git", "-c", "safe.directory=*", "-C", str(CHECKOUT)]
    subprocess.run([*git, "bundle", "create", "--quiet", str(bundle), "HEAD"], check=True)
    run(["chown", "-R", f"{bare_space.USER}:", f"/home/{bare_space.USER}"])
    done = there.as_user(
        "git init --quiet --initial-branch=main overlaylab && cd overlaylab"
        " && git pull --quiet ../overlaylab.bundle HEAD && rm ../overlaylab.bundle"
    )
    if done.returncode:
        raise SystemExit("bare root: the checkout could not be cloned")


def _unpack(there: bare_space.Space, home: Path, bundle: Path) -> None:
    """A bundle as its user unpacks it."""
    shutil.copyfile(bundle, home / "overlaylab.tar")
    if there.as_user("tar xf overlaylab.tar && rm -f overlaylab.tar").returncode:
        raise SystemExit(f"bare root: {bundle} could not be unpacked")


def _ensure_programs() -> None:
    packages = [names for program, names in PROGRAMS.items() if shutil.which(program) is None]
    if packages:
        print(f"bare root: installing {' '.join(packages)} with apt-get", flush=True)
        apt = [
            "env",
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "--quiet",
            "--option=DPkg::Lock::Timeout=300",
        ]
        subprocess.run([*apt, "update"], check=False)
        install = [*apt, "--yes", "--no-install-recommends", "install", *" ".join(packages).split()]
        subprocess.run(install, check=True)


def main() -> int:
    """Parse and do what was asked; the exit code."""
    parser = argparse.ArgumentParser(prog="bare", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    walking = commands.add_parser(
        "walk", help="type the README's two commands and look what they leave behind"
    )
    which = walking.add_mutually_exclusive_group()
    for kind, help_text in (
        (bare_walk.COLD, "without any cache (by itself one commit in five)"),
        (bare_walk.WARM, "with the caches, whatever commit this is"),
        (bare_walk.SYSTEMD, "only what systemd does otherwise"),
        (bare_walk.OFFLINE, "only a bundle: made on one machine, used on another without a network"),
    ):
        which.add_argument(f"--{kind}", dest="walk", action="store_const", const=kind, help=help_text)
    first = commands.add_parser("first", help="type each command on a machine of its own, a row each")
    first.add_argument(
        "lines", nargs="*", help="what to type instead of one command of every family of tasks"
    )
    shell = commands.add_parser(
        "shell", help="a login shell of the ordinary user, or one command line of theirs"
    )
    shell.add_argument("--offline", action="store_true", help="leave it nothing but loopback")
    shell.add_argument("--bundle", type=Path, help="unpack this file there instead of cloning the commit")
    shell.add_argument("--systemd", action="store_true", help="with systemd as its first process")
    shell.add_argument("--lend", action="store_true", help="with what earlier runs fetched and built")
    shell.add_argument("line", nargs="?", default="", help="what to type; without it, a shell")
    asked = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit(
            "bare root: needs root, for namespaces and mounts: sudo python3 provision/tests/bare …"
        )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    _ensure_programs()
    if asked.command == "first":
        return bare_first.walk(_lent, bare_first.rows(asked.lines))
    if asked.command == "walk":
        walks = bare_walk.chosen(asked.walk, bare_walk.turn(CHECKOUT))
        with contextlib.ExitStack() as later:
            return next((code for kind in walks if (code := _walk(kind, later))), 0)
    with machine(network=not asked.offline, systemd=asked.systemd, bundle=asked.bundle) as (there, run):
        if asked.lend:
            _lend(there, run)
        before = there.without_route()
        code = there.as_user(asked.line).returncode
        judged = asked.offline and asked.line
        return (bare_walk.refused(before, there.without_route()) if judged else 0) or code


def _walk(kind: str, later: contextlib.ExitStack) -> int:
    if kind == bare_walk.OFFLINE:
        return _walk_offline(later)
    with machine(systemd=kind == bare_walk.SYSTEMD, later=later) as (there, run):
        if kind != bare_walk.COLD:
            _lend(there, run)
        if kind == bare_walk.SYSTEMD:
            return bare_walk.walk_systemd(there)
        return bare_walk.walk(there, cold=kind == bare_walk.COLD)


def _walk_offline(later: contextlib.ExitStack) -> int:
    """Make a bundle on one machine, and use it on another that has nothing but loopback."""
    bundle = bare_roots.state() / bare_walk.BUNDLE
    try:
        with machine(later=later) as (there, run):
            _lend(there, run, toolchain=True)
            if not bare_walk.make_bundle(there):
                return 1
            shutil.move(there.root / "home" / bare_space.USER / bare_walk.BUNDLE, bundle)
            bare_caches.collect(there.root)
        with machine(network=False, bundle=bundle, later=later) as (there, _):
            return bare_walk.walk_offline(there)
    finally:
        bundle.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
