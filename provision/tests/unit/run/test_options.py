"""One declaration for each option: command line, stored run and printed words all come from it and lead back to it."""

import json
import re
import shlex
from pathlib import Path

import pytest

from overlaylab.cli import main
from overlaylab.cli.commands import measure
from overlaylab.core.errors import UserError
from overlaylab.core.paths import ROOT
from overlaylab.run import options as options_module
from overlaylab.run.design import PERCENT
from overlaylab.run.options import Options, declared, read

NAMES = list(declared())
OF_A_RUN = [name for name, option in declared().items() if option.key]
# What a run stored before there were OVERLAYS, MARGIN, PRECISION and FRESH.
OLDEST = {
    "overlay": "weave",
    "modes": "fastdp",
    "arguments": None,
    "cluster": "pair",
    "provider": "libvirt",
    "inventory": None,
    "profile": "azure-a1",
    "suite": "quick",
    "blocks": 3,
    "scale": 1.0,
    "seed": 7,
}


def unusual(name: str):
    """A value that is not its default, with a character that a shell takes for its own where that is possible."""
    option = declared()[name]
    if option.about.kind is PERCENT:
        return 0.025
    return {str: f"of {name}'s own", int: 7, float: 2.5, bool: True}[option.kind]


def parsed(*words: str) -> Options:
    # A command keeps the help option of its first context.
    names = main.cli.context_settings["help_option_names"]
    with measure.command.make_context("measure", ["weave", *words], help_option_names=names) as context:
        typed = dict(context.params)
    assert typed.pop("overlay") == "weave"
    return Options(**typed)


@pytest.fixture(autouse=True)
def nothing_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in declared().values():
        monkeypatch.delenv(option.variable, raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_printed_is_read_again_from_the_environment(name, monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(**{name: unusual(name)})
    (word,) = [one for one in options.words() if one not in Options().words()]
    (plain,) = shlex.split(word)
    variable, _, value = plain.partition("=")
    assert variable == name.upper()
    monkeypatch.setenv(variable, value)
    assert parsed() == options


@pytest.mark.parametrize("name", NAMES)
def test_it_may_be_written_as_an_option_too(name) -> None:
    value = [] if declared()[name].kind is bool else [declared()[name].typed(unusual(name))]
    assert parsed(f"--{name.replace('_', '-')}", *value) == Options(**{name: unusual(name)})


@pytest.mark.parametrize("name", OF_A_RUN)
def test_what_is_stored_is_read_again(name) -> None:
    options = Options(**{name: unusual(name)})
    assert read(json.loads(json.dumps(options.stored()))) == options


def test_the_page_shows_a_field_as_it_is() -> None:
    page = (ROOT / "docs" / "adding-an-option.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert shown in Path(options_module.__file__).read_text(encoding="utf-8")


def test_keys_of_stored_runs_stay() -> None:
    keys = {option.key for option in declared().values()} - {None}
    assert keys >= {*OLDEST, "only", "margin", "precision", "fresh"} - {"overlay"}
    assert not {"profiles", "dry_run"} & set(OF_A_RUN), "these are of no single run"


def test_a_run_of_an_older_lab_has_the_defaults_of_what_it_did_not_know() -> None:
    assert read(OLDEST) == Options(
        modes="fastdp", cluster="pair", provider="libvirt", profile="azure-a1", blocks=3, seed=7
    )


def test_nothing_typed_prints_what_always_counts() -> None:
    assert Options().words() == ["SUITE=quick", "SCALE=1.0"]
    assert parsed() == Options()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            {"fresh": -1},
            "FRESH: must lie between 0 and 1000 (found: -1). FRESH=5 boots the nodes for every fifth block; leave it out for the suite's own",
        ),
        (
            {"seed": 2**63},
            "SEED: must lie between 0 and 2^63 - 1 (found: 9223372036854775808). Leave it out for a new one",
        ),
    ],
)
def test_a_number_beyond_its_limits_is_refused(typed, said) -> None:
    with pytest.raises(UserError) as wrong:
        Options(**typed).check()
    assert str(wrong.value) == said


@pytest.mark.parametrize("name", [name for name, option in declared().items() if option.about.limits])
def test_a_limit_itself_is_allowed(name) -> None:
    limits = declared()[name].about.limits
    for value in (limits.least, limits.most):
        Options(**{name: value}).check()
