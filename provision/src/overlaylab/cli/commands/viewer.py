"""``lab viewer``: setting the viewer up, and running commands on a screen of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

runtime_option = click.option(
    "--runtime", envvar="RUNTIME", help="The Electron to take: current or fallback."
)


@click.group()
def command() -> None:
    """The desktop viewer's parts; `lab view` starts it."""


@command.command()
@runtime_option
@click.option("--screen", is_flag=True, help="What a screen that nobody sees takes as well.")
@click.option("--browser", is_flag=True, help="Chromium as well.")
def prepare(runtime: str | None, screen: bool, browser: bool) -> None:
    """Install and build what the viewer needs, and say where its Electron is."""
    from overlaylab.desktop import start
    from overlaylab.machine import packages

    asked = {packages.SCREENLESS: screen, packages.BROWSER: browser}
    groups = (packages.VIEWER, *(group for group, wanted in asked.items() if wanted))
    click.echo(start.prepare(runtime or None, groups).folder)


@command.command("as-user", context_settings={"ignore_unknown_options": True})
@runtime_option
@click.option(
    "--keep",
    envvar="KEEP",
    type=click.Path(path_type=Path),
    help="Copy what COMMAND wrote to $VIEWER_OUT here.",
)
@click.option("--browser", is_flag=True, help="COMMAND needs Chromium too.")
@click.option("--screen", "size", help="Size of the screen, as in 1920x1080x24.")
@click.option("--screens", type=click.IntRange(1, 8), default=1, help="So many, named in $VIEWER_SCREENS.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def as_user(
    runtime: str | None,
    keep: Path | None,
    browser: bool,
    size: str | None,
    screens: int,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND (after --) as an ordinary user, also where root types this, on a screen that nobody sees.

    Electron's npm package finds its runtime there by itself. Exit code: COMMAND's.
    """
    from overlaylab.core import paths
    from overlaylab.desktop import screen as viewer_screen
    from overlaylab.desktop import start
    from overlaylab.machine import packages

    groups = (packages.VIEWER, packages.SCREENLESS, *((packages.BROWSER,) if browser else ()))
    made = start.prepare(runtime or None, groups)
    variables = {"ELECTRON_OVERRIDE_DIST_PATH": str(made.folder), "VIEWER_RUNTIME": made.kind}
    kept = keep and paths.typed(keep)
    sys.exit(viewer_screen.run(argv, variables, kept, size or viewer_screen.SIZE, screens))


@command.command()
@runtime_option
@click.option(
    "--all",
    "everything",
    envvar="ALL",
    is_flag=True,
    help="In two sizes, light and dark; --out says where to.",
)
@click.option(
    "--out", envvar="OUT", type=click.Path(path_type=Path), help="The folder to write to; else docs/images."
)
@click.argument("scenes", nargs=-1)
def screenshots(runtime: str | None, everything: bool, out: Path | None, scenes: tuple[str, ...]) -> None:
    """Take a picture of every view, or of SCENES, on the demo database."""
    from overlaylab.core import paths
    from overlaylab.core.errors import UserError
    from overlaylab.desktop import screen as viewer_screen
    from overlaylab.desktop import start
    from overlaylab.machine import packages

    if everything and out is None:
        raise UserError("viewer:screenshots", "ALL=1 takes many pictures that belong to no documentation", fix="Name a folder for them: OUT=folder")  # fmt: skip
    made = start.prepare(runtime or None, (packages.VIEWER, packages.SCREENLESS))
    # Node would say that package.json names no kind of module: its parts are of two kinds.
    node = ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"]
    argv = [*node, str(paths.VIEWER / "screenshots" / "take.mts"), "all" if everything else "docs", *scenes]
    variables = {"ELECTRON_OVERRIDE_DIST_PATH": str(made.folder)}
    sys.exit(viewer_screen.run(argv, variables, paths.typed(out or paths.ROOT / "docs" / "images")))


@command.command()
@click.option(
    "--add",
    envvar="ADD",
    metavar="ID",
    help="A finished run of the results database, or an attempt at a drill, which then is in the demo too.",
)
@click.argument("packed", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def demo(add: str | None, packed: Path | None) -> None:
    """Bring the viewer's demo database, or the gzipped database PACKED, to the newest schema and statistics."""
    from overlaylab.core import paths
    from overlaylab.report import demo as viewer_demo

    packed = packed or viewer_demo.DEMO
    changed = viewer_demo.make_current(packed)
    if add:
        viewer_demo.add(paths.database(), add, packed)
        click.echo(f"{add} is in the demo now")
    else:
        click.echo("brought to the newest schema and statistics" if changed else "nothing to do")


@command.command()
@runtime_option
@click.option("--out", envvar="OUT", type=click.Path(path_type=Path), help="The folder to make.")
def package(runtime: str | None, out: Path | None) -> None:
    """Make a folder with the viewer in it that runs from any place, without node; prints its program."""
    from overlaylab.core import paths
    from overlaylab.core.progress import say
    from overlaylab.desktop import package as viewer_package
    from overlaylab.desktop import start

    made = start.prepare(runtime or None)
    program = viewer_package.package(paths.typed(out or viewer_package.DEFAULT_OUT), made)
    say(
        f"{viewer_package.size(program.parent) / 1e6:.0f} MB, with Electron {made.version}; copy it where you like"
    )
    click.echo(program)
