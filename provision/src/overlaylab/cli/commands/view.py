"""``lab view``: the desktop viewer."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--runtime", envvar="RUNTIME", help="The Electron to take: current or fallback.")
def command(file: Path | None, runtime: str | None) -> None:
    """Open a window on FILE, by default on the results database. Stays until the window is closed."""
    from overlaylab.core import paths
    from overlaylab.desktop import start
    from overlaylab.report import viewer_file

    start.view(file and paths.typed(file), runtime or None, viewer_file.make_current)
