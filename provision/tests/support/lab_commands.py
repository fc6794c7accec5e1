"""The command line as a test types it."""

from __future__ import annotations

from click.testing import CliRunner, Result

from overlaylab.cli import main
from overlaylab.core.errors import UserError


def lab(*words: str, **variables: str) -> Result:
    """The command line, with these variables in the environment; errors come as the result's exception."""
    return CliRunner().invoke(main.cli, words, env=variables)


def refused(*words: str, **variables: str) -> UserError:
    result = lab(*words, **variables)
    assert isinstance(result.exception, UserError), result.output
    return result.exception
