"""What the documents say about this checkout: links, tasks, modules, variables, examples."""

import csv
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from overlaylab.cli.task_help import definitions
from overlaylab.core.paths import ROOT
from overlaylab.specs import overlays
from overlaylab.specs.inventory import load_inventory

PAGES = sorted([*ROOT.glob("*.md"), ROOT / "db" / "README.md", *(ROOT / "docs").glob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
TASKS = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
SOURCE = ROOT / "provision" / "src" / "overlaylab"

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def outside_code(text: str) -> str:
    """The text without fenced blocks and code spans, where a bracket is no link."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What GitHub makes of a page's headings: lower case, hyphens for blanks, no punctuation."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Relative links whose file or heading does not exist."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", outside_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    return broken


def tasks_named(text: str) -> set[str]:
    """``./task a:b`` and ``./task a``; not ``./task --option`` nor ``./task alone`` outside of code."""
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, flags=re.DOTALL))
    return set(re.findall(r"\./task ([a-z][a-z:-]*)", code))


def tasks_of(option: str) -> set[str]:
    """Names that go-task lists: ``--list`` the public ones, ``--list-all`` all."""
    done = subprocess.run(["task", option, "--json"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {task["name"] for task in json.loads(done.stdout)["tasks"]}


@pytest.fixture(scope="module")
def known_tasks() -> set[str]:
    return tasks_of("--list-all")


@pages
def test_relative_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](page.md#one-two) [b](#none) [c](none.md) [d](https://x.example) `[e](f)`\n"
    )
    assert broken_links(page) == ["#none", "none.md"]


@pages
def test_tasks_that_are_named_exist(page: Path, known_tasks: set[str]) -> None:
    assert tasks_named(page.read_text(encoding="utf-8")) - known_tasks == set()


def test_tasks_are_found_in_code_only() -> None:
    text = (
        "./task alone, `./task lab:x`\n```\n./task bench:front-door A=1\n./task --with-tools x\n```\n`./task`"
    )
    assert tasks_named(text) == {"lab:x", "bench:front-door"}


def test_every_public_task_is_named() -> None:
    # One stands for those of the overlays, which are all alike.
    alike = {f"lab:{name}" for name in overlays.names()}
    assert tasks_of("--list") - alike - tasks_named(TASKS) == set()


def test_readme_is_read_in_two_minutes() -> None:
    assert README.count("\n") < 180


def test_the_page_of_pages_leads_to_every_other() -> None:
    page = ROOT / "docs" / "README.md"
    text = outside_code(page.read_text(encoding="utf-8"))
    led_to = {(page.parent / target).resolve() for target in re.findall(r"\]\(([^)\s#]+)\)", text)}
    assert led_to == set(PAGES) - {page}
    sections = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert sections == ["New here", "Measuring", "Training", "Extending"]
    assert "](docs/README.md)" in README


def test_how_to_change_one_thing_takes_ten_lines_that_are_true(known_tasks: set[str]) -> None:
    (script,) = definitions()["dev"]["cmds"]
    _, *lines, end = script.splitlines()
    assert ([int(line[:2]) for line in lines], end) == ([*range(1, 11)], "END")
    text = f"`{' '.join(lines)}`"
    assert tasks_named(text) - known_tasks == set()
    assert [one for one in cited(text) if not (ROOT / one).exists()] == []
    assert {*re.findall(r"[A-Z]+\.md", text)} <= {page.name for page in PAGES}


def test_a_test_takes_as_long_on_every_page() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `\./task (test[a-z:]*)` \| ([^|]*minutes?) \|", table, flags=re.MULTILINE))
    takes = {
        name: found[1]
        for name in told
        if (found := re.search(r"\(([^;)]*minutes?)", definitions()[name]["desc"]))
    }
    assert takes.keys() >= {"test:unit"}
    assert takes == {name: told[name] for name in takes}


def test_folder_map_names_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## Folders")[2].partition("\n## ")[0]
    assert "provision/suites" in table
    for row in re.findall(r"^\| (`.+?) \|", table, flags=re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", row):
            assert (ROOT / name).exists(), name


def test_example_inventory_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "ssh-hosts.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    hosts = tmp_path / "hosts.yml"
    hosts.write_text(example)
    inventory = load_inventory(hosts)
    assert (inventory.name, inventory.provider) == ("hosts", "external")
    assert [(n.name, n.ssh_host, str(n.underlay_address)) for n in inventory.nodes] == [
        ("node1", "203.0.113.11", "10.0.0.11/24"),
        ("node2", "203.0.113.12", "10.0.0.12/24"),
    ]
    assert [n.host_key is None for n in inventory.nodes] == [True, False]


# -- tables -----------------------------------------------------------------------------------------


def broken_tables(text: str) -> list[str]:
    """Rows that no reader shows as one: another number of cells than the head's, no rule below it, no blank line above."""
    broken, lines = [], re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)
    before, head = "", 0
    for line in lines.split("\n"):
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        rule = re.fullmatch(r"\|( ?:?-+:? ?\|)+", line)
        if cells and not head and before.strip() and not before.startswith(("|", "#", "<!--")):
            broken.append(f"below text: {line}")
        elif cells and not head and rule:
            broken.append(f"no head: {line}")
        elif head and before.startswith("|") and cells and cells != head:
            broken.append(f"{head - 1} columns: {line}")
        head = (head or cells) if cells else 0
        before = line
    for first, second in re.findall(r"(?:^|\n)\n(\|.*)\n(.*)", lines):
        if not re.fullmatch(r"\|( ?:?-+:? ?\|)+", second):
            broken.append(f"no rule: {first}")
    return broken


@pages
def test_tables_are_whole(page: Path) -> None:
    assert broken_tables(page.read_text(encoding="utf-8")) == []


def test_a_broken_table_is_found() -> None:
    rule = "|---|---|"
    assert broken_tables(f"a\n\n| a | b |\n{rule}\n| `x\\|y` | 2 |\n\nb\n") == []
    assert broken_tables(f"\n\n| a | b |\n{rule}\n| 1 |\n") == ["2 columns: | 1 |"]
    assert broken_tables("\n\n| a | b |\n| 1 | 2 |\n") == ["no rule: | a | b |"]
    assert broken_tables(f"text\n| a | b |\n{rule}\n") == ["below text: | a | b |"]


# -- files that are cited ---------------------------------------------------------------------------

TOP = ("provision", "docs", "profiles", "vagrant", "db", "packer", "viewer")
MADE = (
    "viewer/dist",
    "viewer/node_modules",
    "viewer/release",
    "profiles/aws-c5.large.yml",
    "profiles/NAME.yml",
)
"""What is made there and kept in no commit, or named as an example."""


def cited(text: str) -> set[str]:
    """Paths of the checkout in code; not those with a part that the reader is to fill in."""
    code = " ".join(re.findall(r"```.*?```|`[^`\n]+`", text, flags=re.DOTALL))
    found = re.findall(rf"(?<![\w/.~-])((?:{'|'.join(TOP)})/[\w./*-]*)(?![\w<…{{$-])", code)
    return {one.rstrip(".") for one in found if not one.startswith(MADE)}


@pages
def test_files_that_are_cited_are_there(page: Path) -> None:
    absent = [one for one in cited(page.read_text(encoding="utf-8")) if not list(ROOT.glob(one.rstrip("/")))]
    assert absent == []


def test_a_citation_is_a_path_in_code() -> None:
    text = (
        "docs/a.md `docs/b.md`, `profiles/<name>.yml` `db/*.csv` `/usr/docs/x` ```\nvim profiles/own.yml\n```"
    )
    assert cited(text) == {"docs/b.md", "db/*.csv", "profiles/own.yml"}


def test_pages_that_code_cites_are_there() -> None:
    """The Vagrantfile cited a design.md that there never was."""
    files = subprocess.run(
        ["git", "ls-files", "provision", "vagrant", "packer", "task", "Taskfile.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    known = {page.name for page in PAGES}
    absent = set()
    for file in files:
        if not file.startswith("provision/tests/"):
            text = (ROOT / file).read_text(encoding="utf-8", errors="replace")
            absent |= {
                (file, name)
                for name in re.findall(r"(?<![\w*/])(?:docs/)?([\w-]+\.md)\b", text)
                if name not in known
            }
    assert absent == set()


def test_what_the_lab_has_and_was_not_measured_is_named() -> None:
    """`All pairs`, said the page, and left two overlays out that have published pairs and a role."""
    page = (ROOT / "docs" / "tiers.md").read_text(encoding="utf-8")
    section = page.partition("## Does it reproduce?")[2].partition("\n## ")[0]
    with (ROOT / "db" / "published.csv").open(newline="") as file:
        published = {row["overlay"] for row in csv.DictReader(file)} - {"host"}
    for name in published & set(overlays.names()):
        assert name.replace("-", " ") in " ".join(section.lower().split()), name


def test_licence_is_apache_2_to_the_letter() -> None:
    text = (ROOT / "LICENSE").read_bytes()
    assert hashlib.sha256(text).hexdigest() == (
        "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
    )
