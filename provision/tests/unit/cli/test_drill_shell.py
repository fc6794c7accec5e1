"""A shell's recording: what the terminal showed, in asciicast's version 2."""

import json
import subprocess
import sys

import pytest

from overlaylab.cli import drill_shell

RECORD = """
import sys
from pathlib import Path
from overlaylab.cli.drill_shell import record
sys.exit(record(["sh", "-c", "read -r line; echo \\"got $line\\"; exit 3"], Path(sys.argv[1])))
"""


def test_what_a_program_shows_is_shown_and_kept(tmp_path) -> None:
    cast = tmp_path / "recordings" / "an-attempt.cast"
    done = subprocess.run(
        [sys.executable, "-c", RECORD, str(cast)],
        input="a line\n",
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "got a line" in done.stdout
    header, *lines = map(json.loads, cast.read_text().splitlines())
    assert (header["version"], header["width"], header["height"]) == (2, 80, 24)
    assert header["title"] == "an-attempt"
    assert "".join(text for _, kind, text in lines if kind == "o") == done.stdout.replace(
        "\n", "\r\n"
    ).replace("\r\r", "\r")
    assert [at for at, *_ in lines] == sorted(at for at, *_ in lines)
    assert cast.stat().st_mode & 0o777 == 0o600


def test_a_letter_that_comes_in_two_parts_is_one(tmp_path) -> None:
    cast = tmp_path / "a.cast"
    recording = drill_shell.Recording(cast, 100, 40, "a")
    for part in (b"\xc3", b"\xa4\xff"):
        recording.shown(part)
    recording.resized(120, 50)
    recording.close()
    _, shown, resized = map(json.loads, cast.read_text().splitlines())
    assert (shown[1:], resized[1:]) == (["o", "ä\ufffd"], ["r", "120x50"])


def test_one_recording_is_never_written_over(tmp_path) -> None:
    drill_shell.Recording(tmp_path / "a.cast", 80, 24, "a").close()
    with pytest.raises(FileExistsError):
        drill_shell.Recording(tmp_path / "a.cast", 80, 24, "a")
