"""What people read about the overlays: docs/overlays.md, from what the roles say about themselves and their pages.

A role's page is its README.md: the sections below, with a sentence or two above them at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.specs import overlays
from overlaylab.specs.overlays import Mode, Overlay

# Headings of a role's page, in this order.
SECTIONS = (
    "### How it works",
    "### How it is started here",
    "### How to see that it is healthy",
    "### What people run into",
)

INTRODUCTION = """\
# Overlays

What the tasks `lab:<overlay>` measure: the real daemons, set up as their makers mean it. `./task lab:explain` prints the
part of one, with the values of the one that runs; `./task lab:mtu` says whether its MTU suits the underlay.

Written by `./task docs:overlays` from `provision/roles/overlay_*`: `meta/overlay.yml` and `README.md` of each.
"""


def path() -> Path:
    """The file that `text` belongs in."""
    return paths.ROOT / "docs" / "overlays.md"


def page(name: str) -> str:
    """What the role's README.md says, without blank lines around it. UserError where it has none."""
    file = overlays.role(name) / "README.md"
    if not file.exists():
        raise UserError(
            f"overlay {name}",
            "must have a page",
            seen=f"no {file.name} in {file.parent.name}",
            fix=f"Write it, with the sections {', '.join(s.removeprefix('### ') for s in SECTIONS)}",
        )
    return file.read_text(encoding="utf-8").strip()


def text() -> str:
    """docs/overlays.md."""
    every = [overlays.load(name) for name in overlays.names()]
    parts = [INTRODUCTION]
    parts.append(
        "## What each mode puts on the underlay\n\n"
        + table(_MODES, (row for o in every for row in _modes(o)))
    )
    parts.append(_NOTES)
    parts.append("## What each overlay needs\n\n" + table(_OVERLAYS, map(_overlay, every)))
    parts += [f"## {_heading(overlay)}\n\n{page(overlay.name)}\n" for overlay in every]
    return "\n".join(parts)


_MODES = ("overlay", "mode", "encapsulation", "header bytes", "default MTU", "encrypted")
_OVERLAYS = ("overlay", "version", "control plane", "network policy", "ports between nodes", "kernel modules")
_NOTES = """\
Header bytes are what an inner packet gains; with encryption, at most. Default MTU is what the makers' own settings
give between endpoints, as a number or in terms of the underlay's.
"""


def _heading(overlay: Overlay) -> str:
    return f"{overlay.title[0].upper()}{overlay.title[1:]}"


def _modes(overlay: Overlay) -> Iterable[Sequence[str]]:
    for mode in overlay.modes.values():
        yield (
            overlay.name,
            mode.key if mode.key != overlay.name else "–",
            mode.encapsulation or "–",
            str(mode.header_bytes),
            default_mtu(mode),
            "yes" if mode.encrypted else "no",
        )


def default_mtu(mode: Mode) -> str:
    """For people, with a minus sign that is none."""
    return "–" if mode.default_mtu is None else str(mode.default_mtu).replace(" - ", " − ")


def _overlay(overlay: Overlay) -> Sequence[str]:
    _, *below = overlays.foundations(overlay.name)
    modules = dict.fromkeys([*_modules(overlay), *(name for one in below for name in one.needs.modules)])
    return (
        overlay.name,
        overlay.version,
        overlay.control_plane or "–",
        overlay.policy or "–",
        ", ".join(overlay.ports) or "none",
        ", ".join(modules) or "none",
    )


def _modules(overlay: Overlay) -> Iterable[str]:
    """Kernel modules that it uses in any of its modes, each once."""
    return dict.fromkeys(name for key in overlay.modes for name in overlays.modules_of(overlay.variant(key)))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def would_start(overlay: Overlay) -> list[str]:
    """What ./task lab:<overlay> would start where nothing is typed, a line each."""
    name = overlay.name
    lines = [
        f"./task lab:{name} converges {', '.join(overlay.default_modes)}; known are {', '.join(overlay.modes)} (MODES)"
    ]
    for key in overlay.default_modes:
        mode = overlay.modes[key]
        lines.append(
            f"  {key}: {mode.encapsulation or 'encapsulation not stated'}, {mode.header_bytes} bytes of headers, "
            f"default MTU {default_mtu(mode)}"
        )
    units = dict.fromkeys(u for key in overlay.default_modes for u in overlays.units_of(overlay.variant(key)))
    facts = {
        "version": overlay.version,
        "daemons": ", ".join(units) or "none",
        "endpoints' addresses": f"{overlay.range}" if overlay.range else "the underlay's",
        "ports between nodes": ", ".join(overlay.ports) or "none",
        "kernel modules": ", ".join(_modules(overlay)) or "none",
    }
    lines += [f"  {what}: {value}" for what, value in facts.items()]
    for option, about in overlays.options(name).items():
        default = about.get("default")
        given = "" if default is None else f" (default {default})"
        lines.append(f"  ARGUMENTS={option}=…: {str(about['description']).rstrip('.')}{given}")
    return lines
