"""The options of a run, given to a command: what `run.options` declares, in click's words."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from overlaylab.run.options import Options, declared


@dataclass(frozen=True)
class Own:
    """What a command says of an option in other words, or does where it is left out: None is as `Options` has it."""

    help: str | None = None
    default: object = None


def run_options(*names: str, **own: Own) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of a run that a command takes, all where none is named; it is called with ``typed``, the `Options`."""
    wanted = {*names, *own} or declared().keys()
    taken = [option for option in declared().values() if option.name in wanted]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**given: Any) -> None:
            typed = Options(**{option.name: given.pop(option.name) for option in taken})
            command(typed=typed, **given)

        for option in reversed(taken):
            here = own.get(option.name, Own())
            default = option.default if here.default is None else here.default
            add = click.option(
                f"--{option.name.replace('_', '-')}",
                envvar=option.variable,
                type=option.about.kind or option.kind,
                is_flag=option.kind is bool,
                default=default,
                show_default=default not in (None, False),
                help=here.help or option.about.help,
            )
            call = add(call)
        return call

    return decorate
