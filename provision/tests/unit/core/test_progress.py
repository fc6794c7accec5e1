"""What is said while something goes on, and estimates from earlier durations."""

import json

import pytest
from lab_commands import lab

from overlaylab.core import progress
from overlaylab.specs.profile import load_profile


@pytest.fixture(autouse=True)
def _own_cache(own_cache) -> None: ...


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (7.6, "8 s"),
        (89.4, "89 s"),
        (89.6, "1 min 30 s"),
        (200, "3 min 20 s"),
        (605, "10 min 05 s"),
        (3600, "60 min 00 s"),
    ],
)
def test_seconds_as_people_say_them(seconds, text) -> None:
    assert progress.readable(seconds) == text


def test_an_estimate_is_the_median_of_the_last_five(own_cache) -> None:
    assert progress.estimate("boot") is None
    assert progress.estimate("boot", 40) == 40
    for seconds in (1000, 1000, 10, 30, 20, 31.26, 25):
        progress.remember("boot", seconds)
    assert progress.estimate("boot", 40) == 25
    assert progress.estimate("other", 40) == 40
    assert json.loads((own_cache / "durations.json").read_text()) == {"boot": [10, 30, 20, 31.3, 25]}


@pytest.mark.parametrize("text", ["", "{", "not json", "[]", "null"])
def test_a_damaged_file_is_no_estimate_and_is_replaced(own_cache, text) -> None:
    own_cache.mkdir()
    (own_cache / "durations.json").write_text(text)
    assert progress.estimate("boot", 40) == 40
    progress.remember("boot", 8)
    assert progress.estimate("boot", 40) == 8


def test_a_cache_that_cannot_be_written_is_no_failure(own_cache) -> None:
    own_cache.write_text("a file where the folder should be")
    progress.remember("boot", 8)
    assert progress.estimate("boot", 40) == 40


def test_a_step_says_its_estimate_and_what_it_took(own_cache, capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress.console, "_force_terminal", False)
    ticks = iter([100.0, 104.0, 200.0, 202.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(ticks))
    with progress.step("boot", "bringing nodes up", 150):
        pass
    with progress.step("boot", "bringing nodes up", 150):
        pass
    assert capsys.readouterr().err.splitlines() == [
        "bringing nodes up (about 2 min 30 s) …",
        "bringing nodes up: 4 s",
        "bringing nodes up (about 4 s) …",
        "bringing nodes up: 2 s",
    ]
    assert json.loads((own_cache / "durations.json").read_text()) == {"boot": [4.0, 2.0]}


def test_a_step_that_fails_is_not_remembered(own_cache) -> None:
    with pytest.raises(ZeroDivisionError), progress.step("boot", "bringing nodes up"):
        raise ZeroDivisionError
    assert progress.estimate("boot") is None


def test_a_line_is_said_as_it_is(capsys) -> None:
    progress.say("[bold] is no markup, and a long line stays one line: " + "x" * 200)
    assert (
        capsys.readouterr().err == "[bold] is no markup, and a long line stays one line: " + "x" * 200 + "\n"
    )


def test_a_pipe_gets_every_line_of_a_table_whole(monkeypatch) -> None:
    """At 80 columns a table was folded in the middle of a sentence, and no grep found it."""
    source = load_profile("aws-t2.small").figures["rate"].source
    assert len(source) > 80
    monkeypatch.delenv("COLUMNS", raising=False)
    assert source in lab("profile", "show", PROFILE="aws-t2.small").stdout
    assert source not in lab("profile", "show", PROFILE="aws-t2.small", COLUMNS="80").stdout
