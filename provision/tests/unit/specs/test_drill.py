"""Drills as they are written. Wrong ones: test_documents_golden.py."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.core.measures import MEASURES
from overlaylab.core.model import Variant
from overlaylab.core.paths import DRILLS, ROOT
from overlaylab.specs import drill, overlays
from overlaylab.specs.drill import Hint, Probe
from overlaylab.specs.drill_checks import GUARDS

EXAMPLE = "large-downloads-hang"
PAGE = (ROOT / "docs" / "adding-a-drill.md").read_text(encoding="utf-8")

each_drill = pytest.mark.parametrize("name", drill.names())


def test_an_example() -> None:
    one = drill.load(EXAMPLE)
    assert (one.name, one.level, one.minutes, one.cycles, one.shows_within) == (EXAMPLE, 1, 15, 6, 60.0)
    assert one.variants == (Variant("flannel", "vxlan"), Variant("flannel", "host-gw"))
    assert one.probes[0] == Probe("fetched", at_least=0.9, symptom=True)
    assert one.probes[-1] == Probe("page", at_least=0.9, role="server")
    assert (one.guards, dict(one.own_guards)) == (("overlay", "firewall", "daemons"), {})
    assert one.needs == drill.Needs()
    assert one.hints[1] == Hint(
        cost=10,
        role="server",
        condition='ip -4 route show | grep -q "mtu lock"',
        text="A node that may not forward a packet whole says so to its sender, with a number in it. Look at each "
        "route that the server's node takes to the client's endpoint, and at what its devices say of their size.",
    )
    assert [solution.name for solution in one.solutions] == [
        "delete-the-rule",
        "restore-the-route",
        "lower-the-mtu",
    ]
    assert "iptables -D OUTPUT" in one.solutions[0].script
    assert {wrong.refused_by for wrong in one.wrong} == {"fetched"}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example in a folder of its own, where drills are sought first."""
    monkeypatch.setattr(drill, "FOLDERS", [tmp_path])
    shutil.copytree(DRILLS / EXAMPLE, tmp_path / EXAMPLE)
    return tmp_path / EXAMPLE


def test_own_guards_and_needs(copy: Path) -> None:
    text = (copy / "drill.yml").read_text(encoding="utf-8")
    text = text.replace("[overlay, firewall, daemons]", "[overlay, no-proxy]")
    (copy / "drill.yml").write_text(
        text + "needs: {features: [link:vxlan], own_kernel: true, profile: none}\n"
    )
    (copy / "guards").mkdir()
    (copy / "guards" / "no-proxy.sh").write_text("#!/bin/sh\nexit 1\n")
    one = drill.load(EXAMPLE)
    assert (one.guards, dict(one.own_guards)) == (("overlay",), {"no-proxy": "#!/bin/sh\nexit 1\n"})
    assert one.needs == drill.Needs(("link:vxlan",), own_kernel=True, profile="none")


def test_a_digest_is_of_all_that_decides(copy: Path) -> None:
    before = drill.load(EXAMPLE).digest
    assert before == drill.digest(copy)
    (copy / "proof.json").write_text("{}")
    (copy / "README.md").write_text("About it.")
    assert drill.load(EXAMPLE).digest == before
    with (copy / "wrong" / "restart-the-web-server.sh").open("a") as file:
        file.write("# more\n")
    assert drill.load(EXAMPLE).digest != before


def test_a_folder_without_its_document_is_no_drill(copy: Path) -> None:
    (copy.parent / "later").mkdir()
    assert drill.names() == (EXAMPLE,)
    with pytest.raises(UserError, match="must be a drill in provision/drills/") as wrong:
        drill.load("large-download-hangs")
    assert f'Did you mean "{EXAMPLE}"?' in wrong.value.fix


def test_a_script_that_nothing_names_is_refused(copy: Path) -> None:
    (copy / "undo.sh").write_text("#!/bin/sh\n")
    with pytest.raises(UserError, match="must name every file of the drill's folder") as wrong:
        drill.load(EXAMPLE)
    assert wrong.value.seen == "undo.sh, which it does not"


@pytest.mark.parametrize(
    ("field", "was", "becomes", "word"),
    [
        ("ticket", "nothing comes any", "nothing of any MTU comes", None),
        ("ticket", "nothing comes any", "ICMP: nothing comes any", '"icmp", a word of the topic "ICMP"'),
        ("title", "downloads hang", "black downloads", '"black", a word of the topic "black holes"'),
        # A word that anybody uses.
        ("ticket", "nothing comes any", "on that path nothing comes any", None),
    ],
)
def test_words_that_give_the_cause_away(
    copy: Path, field: str, was: str, becomes: str, word: str | None
) -> None:
    text = (
        (copy / "drill.yml").read_text(encoding="utf-8").replace("[path MTU discovery,", "[path discovery,")
    )
    (copy / "drill.yml").write_text(text.replace(was, becomes, 1))
    if word is None:
        drill.load(EXAMPLE)
        return
    with pytest.raises(UserError, match="must not give the cause away") as wrong:
        drill.load(EXAMPLE)
    assert (wrong.value.seen, field in wrong.value.where) == (word, True)


# -- those that there are -----------------------------------------------------------------------------


def test_every_folder_holds_a_drill() -> None:
    assert {path.name for path in DRILLS.iterdir() if path.is_dir()} == set(drill.names())


@each_drill
def test_scripts_are_posix_sh(name: str) -> None:
    one = drill.load(name)
    scripts = {
        "inject": one.inject,
        **one.own_guards,
        **{part.name: part.script for part in (*one.solutions, *one.wrong)},
        **{f"hint {number}": hint.condition for number, hint in enumerate(one.hints, 1)},
    }
    for what, script in scripts.items():
        done = subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), what


@each_drill
def test_an_injection_says_nothing_to_who_reads_it_on_a_node(name: str) -> None:
    found = drill.load(name)
    # The kit, the overlay's own daemons and their folders are there anyway.
    units = {
        unit.removesuffix(".service") for variant in found.variants for unit in overlays.units_of(variant)
    }
    told = re.sub(
        "|".join(
            map(
                re.escape,
                ("/run/overlaylab/", "/opt/overlaylab/overlay/", "/opt/overlaylab/bin/", *sorted(units)),
            )
        ),
        "",
        found.inject,
    )
    assert re.findall(r"(?i)drill|overlaylab|--comment|inject|sabotage", told) == []


@each_drill
def test_references_lead_somewhere(name: str) -> None:
    for reference in drill.load(name).references:
        page, _, anchor = reference.partition("#")
        if page.startswith(("docs/", "db/")):
            headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
            assert not anchor or anchor in anchors, reference


# -- the page that says how to write one ----------------------------------------------------------------


def test_the_page_has_every_measure_guard_and_field() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert [row for row in rows if row in MEASURES] == list(MEASURES)
    assert [row for row in rows if row in GUARDS] == list(GUARDS)


def test_the_page_shows_the_example_as_it_is() -> None:
    (shown,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    (pieces,) = [re.split(r"^ *…\n", shown, flags=re.MULTILINE)]
    text = (DRILLS / EXAMPLE / "drill.yml").read_text(encoding="utf-8")
    assert len(pieces) > 1
    for piece in pieces:
        assert piece in text


def test_the_paths_of_the_trainings_page_are_the_drills_own() -> None:
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    paths = re.findall(r"\*\* \(`([a-z-]+)`\):.*?\n\n\| drill.*?\n\|---\|---\|\n((?:\|.*\n)+)", text)
    on_page = {
        course: re.findall(r"^\| `([a-z-]+)` \| (\d) \|$", rows, re.MULTILINE) for course, rows in paths
    }
    assert on_page.keys() == {course for name in drill.names() for course in drill.load(name).courses}
    for course, rows in on_page.items():
        known = [found for name in drill.names() if course in (found := drill.load(name)).courses]
        assert sorted(rows) == sorted((found.name, str(found.level)) for found in known)
        assert len(rows) == 5
