"""What click knows of a value, in the words of the variable that a user typed for it."""

from __future__ import annotations

import re

import click

from overlaylab.core.errors import UserError

# How click says which value it refused; it keeps it nowhere else.
REFUSED = re.compile(
    r"(?P<quote>['\"]?)(?P<seen>.*)(?P=quote) is not (a valid|in the range|one of) ", re.DOTALL
)


def name(parameter: click.Parameter) -> str:
    """The variable of a task: what its command reads, else the option's own name, as the tasks hand it on."""
    if isinstance(parameter.envvar, str):
        return parameter.envvar
    if isinstance(parameter, click.Argument) and parameter.metavar:
        return parameter.metavar
    typed = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.name or ""
    return typed.lstrip("-").replace("-", "_").upper()


def refused(wrong: click.BadParameter) -> UserError | None:
    """The same error as the others are told; None where click does not say which value it is about."""
    if wrong.param is None:
        return None
    about = getattr(wrong.param, "help", None)
    if isinstance(wrong, click.MissingParameter):
        typed = name(wrong.param)
        form = "|".join(wrong.param.type.choices) if isinstance(wrong.param.type, click.Choice) else "…"
        return UserError(typed, "must be given", fix=about or f"Type {typed}={form}.")
    found = REFUSED.match(wrong.message)
    return UserError(
        name(wrong.param),
        rule(wrong.param.type) or wrong.message.rstrip("."),
        seen=found["seen"] if found else None,
        fix=about or ("Choose one of these." if wrong.param.required else "Leave it out for its default."),
    )


def rule(kind: click.ParamType[object]) -> str | None:
    """What has to hold for a value of that type; None where click's own words have to do."""
    if isinstance(kind, click.Choice):
        return f"must be one of {', '.join(map(str, kind.choices))}"
    if isinstance(kind, click.types.IntParamType):
        what = "must be a whole number"
    elif isinstance(kind, click.types.FloatParamType):
        what = "must be a number"
    else:
        return None
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if least is None and most is None:
        return what
    return f"{what} from {least} {'on' if most is None else f'to {most}'}"
