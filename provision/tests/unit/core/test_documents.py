"""Reading documents: lines, digests, quantities. Wrong documents: test_documents_golden.py."""

import os
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from overlaylab.core.documents import dotted, parse_document
from overlaylab.core.errors import UserError
from overlaylab.core.quantities import QuantityError, quantity


def write(folder: Path, text: str) -> Path:
    path = folder / "some.yml"
    path.write_text(text)
    return path


def test_where_names_file_line_and_field(tmp_path: Path) -> None:
    document = parse_document(write(tmp_path, "a: 1\nb:\n  - c: 2\n  - c: 3\n"))
    assert document.where("b", 1, "c") == f"{tmp_path}/some.yml:4: b[1].c"
    assert document.where() == f"{tmp_path}/some.yml:1"


def test_where_falls_back_to_the_line_of_what_holds_a_missing_field(tmp_path: Path) -> None:
    document = parse_document(write(tmp_path, "a: 1\nb:\n  c: 2\n"))
    assert document.where("b", "absent", "x") == f"{tmp_path}/some.yml:2: b.absent.x"


def test_a_merged_key_has_the_line_of_its_mapping(tmp_path: Path) -> None:
    document = parse_document(write(tmp_path, "a: &common {x: 1}\nb:\n  <<: *common\n  y: 2\n"))
    assert document.data["b"] == {"x": 1, "y": 2}
    assert document.where("b", "x").endswith(":2: b.x")


def test_digest_is_of_the_data_not_of_the_text(tmp_path: Path) -> None:
    first = parse_document(write(tmp_path, "a: 1\nb: two\n")).digest
    assert parse_document(write(tmp_path, "# why\nb:   two\na: 1\n")).digest == first
    assert parse_document(write(tmp_path, "a: 1\nb: three\n")).digest != first
    assert len(first) == 64


def test_yaml_is_version_1_2(tmp_path: Path) -> None:
    """In YAML 1.1, no is false and 010 is 8: neither may happen to a zone or a number."""
    assert parse_document(write(tmp_path, "zone: no\nnumber: 010\ndate: 2020-01-02\n")).data == {
        "zone": "no",
        "number": 10,
        "date": "2020-01-02",
    }


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "some.yml"
    path.write_bytes(b"a: \xff\xfe\n")
    with pytest.raises(UserError, match="must be a readable text file in UTF-8"):
        parse_document(path)
    with pytest.raises(UserError, match="No such file"):
        parse_document(tmp_path / "absent.yml")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("- " * 3000 + "x\n", "nested more than 40 levels deep"),
        ("a: [\n" + "  x1,\n" * 30_000 + "]\n", "more than 2500 values"),
        ("a: " + "x" * 1_000_000, "must be at most 200 kB long"),
    ],
)
def test_a_file_that_would_be_read_for_long_is_refused_early(tmp_path: Path, text: str, seen: str) -> None:
    with pytest.raises(UserError, match=seen):
        parse_document(write(tmp_path, text))


@pytest.mark.parametrize("broken", ["Scanner", "Constructor"])
def test_no_failure_of_the_yaml_library_is_a_traceback(tmp_path: Path, monkeypatch, broken: str) -> None:
    """Its own mistakes are many: an index, a key or an attribute that is not there."""
    from ruamel.yaml.constructor import SafeConstructor
    from ruamel.yaml.scanner import Scanner

    def fails(*_: object) -> None:
        raise AttributeError("nobody foresaw it")

    if broken == "Scanner":
        monkeypatch.setattr(Scanner, "fetch_plain", fails)
    else:
        monkeypatch.setattr(SafeConstructor, "construct_document", fails)
    with pytest.raises(UserError, match=r"some\.yml:1: must be valid YAML"):
        parse_document(write(tmp_path, "a: 1\n"))


def test_a_file_that_is_regular_and_has_nothing_yet(tmp_path: Path, monkeypatch) -> None:
    """So is /proc/kmsg for root, which no test reads: messages would be gone for who waits for them."""
    path = write(tmp_path, "a: 1\n")
    with path.open() as real:
        file = MagicMock(**{"fileno.return_value": real.fileno(), "read.return_value": None})
        file.__enter__.return_value = file
        monkeypatch.setattr(os, "fdopen", lambda descriptor, _: os.close(descriptor) or file)
        with pytest.raises(UserError, match="whose text lies there"):
            parse_document(path)


def test_only_a_regular_file_is_read_and_nothing_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "some.yml")
    for path in (tmp_path / "some.yml", Path("/dev/zero")):
        with pytest.raises(UserError, match="must be a regular file"):
            parse_document(path)


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        ("1001 Gbit/s", "bit/s", "no link of a node is faster"),
        ("3601 s", "s", "nothing here lasts an hour"),
        ("0.5 bytes", "bytes", "a whole number of bytes"),
        ("1.0005 kB", "bytes", "a whole number of bytes"),
        ("٩٧٢ Mbit/s", "bit/s", "a number, a blank and a unit"),
    ],
)
def test_a_quantity_that_no_network_has(text: str, unit: str, why: str) -> None:
    with pytest.raises(QuantityError, match=why):
        quantity(text, unit)


def test_dotted() -> None:
    assert dotted(["nodes", 0, "zone"]) == "nodes[0].zone"


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("100 Mbit/s", "bit/s", 1e8),
        ("5.5 kbit/s", "bit/s", 5500),
        ("0.966 ms", "s", 0.000966),
        ("200 us", "s", 0.0002),
        ("200 µs", "s", 0.0002),
        ("64 KiB", "bytes", 65536),
        ("50 MB", "bytes", 50e6),
        ("9001 bytes", "bytes", 9001),
    ],
)
def test_quantity(text: str, unit: str, value: float) -> None:
    assert quantity(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("100", "bit/s"),
        (100, "bit/s"),
        (None, "s"),
        ("100Mbit/s", "bit/s"),
        ("100 Mb/s", "bit/s"),
        ("100 MB/s", "bit/s"),
        ("100 mbit/s", "bit/s"),
        ("1e3 bit/s", "bit/s"),
        ("-1 ms", "s"),
        ("5 m", "s"),
        ("5 ms", "bytes"),
        (" 5 ms", "s"),
        ("5 ms\n", "s"),
    ],
)
def test_no_quantity(text: object, unit: str) -> None:
    with pytest.raises(QuantityError, match="must be a number, a blank and a unit"):
        quantity(text, unit)
