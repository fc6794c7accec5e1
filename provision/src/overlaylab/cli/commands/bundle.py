"""``lab bundle``: one file from which a machine without a network gets the whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from overlaylab.core import paths

if TYPE_CHECKING:
    from overlaylab.machine.bundle_manifest import Manifest


@click.group()
def command() -> None:
    """The bundle: made here, used where no network is."""


@command.command()
@click.option(
    "--out", envvar="OUT", required=True, type=click.Path(path_type=Path), help="The file to write."
)
@click.option(
    "--for", "system", envvar="FOR", required=True, help="The system that it is for, as in debian-12."
)
@click.option(
    "--with", "contents", envvar="WITH", default="", help="Some of lab,viewer,test; all by default."
)
@click.option("--overlays", envvar="OVERLAYS", default="", help="Whose daemons; all by default.")
@click.option(
    "--system",
    "nodes",
    envvar="SYSTEM",
    default="",
    help="Whose images, as in packer/systems; debian by default.",
)
@click.option("--sign", "key", envvar="SIGN", default="", help="A key of ssh to sign it with.")
def make(out: Path, system: str, contents: str, overlays: str, nodes: str, key: str) -> None:
    """Make a bundle of this commit, and print its digest."""
    from overlaylab.image import bundle_make, bundle_parts, systems

    target = paths.typed(out).absolute()
    request = bundle_make.Request(
        system,
        bundle_make.contents_of([contents]) or bundle_parts.CONTENTS,
        bundle_make.contents_of([overlays]),
        bundle_make.contents_of([nodes]) or (systems.DEFAULT,),
        paths.typed(key).absolute() if key else None,
    )
    # As sha256sum(1) prints it and reads it with --check.
    click.echo(f"{bundle_make.make(target, request)}  {target.name}")


@command.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def show(file: Path) -> None:
    """Print what a bundle is for and made of, without checking it."""
    from overlaylab.image import bundle_verify

    click.echo(describe(bundle_verify.read(paths.typed(file))), nl=False)


@command.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def verify(file: Path) -> None:
    """Check every part of a bundle against its manifest, and print the file's digest."""
    from overlaylab.core.progress import say
    from overlaylab.image import bundle_verify

    found = bundle_verify.verify(paths.typed(file))
    say(f"{file.name}: all {sum(1 for _ in found.manifest.files)} files are what its manifest says")
    click.echo(f"{found.digest}  {file.name}")


def describe(manifest: Manifest) -> str:
    """The manifest as a few lines and a table of parts."""
    lines = [
        f"overlaylab {manifest.version}, commit {manifest.commit}",
        f"for {manifest.system}, {manifest.architecture}; with {', '.join(manifest.contents)}",
        "",
        f"{'part':<10}  {'files':>5}  {'MB':>7}  SHA-256 of its sums",
    ]
    for part in manifest.parts:
        lines.append(
            f"{part.name:<10}  {len(part.files):>5}  {part.bytes / 1e6:>7.1f}  {part.sha256[:16]}  {part.about}"
        )
    files = list(manifest.files)
    lines.append(f"{'all':<10}  {len(files):>5}  {sum(file.bytes for file in files) / 1e6:>7.1f}")
    lines += ["", "licences:"]
    lines += [f"  {part.name}: {'; '.join(part.licences)}" for part in manifest.parts]
    return "".join(f"{line}\n" for line in lines)
