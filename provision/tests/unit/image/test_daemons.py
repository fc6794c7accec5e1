"""Pinned builds of daemons: keys, the go command, the cache, and what is told when a build cannot be made."""

import gzip
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from lab_commands import lab

from overlaylab.core.errors import UserError
from overlaylab.image import daemons
from overlaylab.machine import bundle_source
from overlaylab.specs import overlays

GO = """#!/bin/sh
# Stands in for go: `go version`, and `go build … -o out/ PACKAGE…`, which writes a file for each package.
[ "$1" != version ] || { echo "go version go1.27.3 linux/amd64"; exit 0; }
# `go mod download -json MODULE@VERSION` and `go list -m -f {{.Dir}} MODULE`: one module in a folder beside the calls.
case $1 in
mod) echo "$GONOSUMDB $GOFLAGS $*" >>"$GO_CALLS"; printf '{"Sum":"%s","Dir":"%s"}\n' "$(cat "$GO_CALLS.sum")" "$GO_CALLS.module"; exit 0 ;;
list) echo "$GO_CALLS.module"; exit 0 ;;
esac
echo "$CGO_ENABLED $GOFLAGS $*" >>"$GO_CALLS"
[ ! -e "$GO_CALLS.fails" ] || { cat "$GO_CALLS.fails"; exit 1; }
for word; do case $word in example.org/*) echo "made of $word" >"out/${word##*/}" ;; esac; done
"""
BUILD = """
module: example.org/net
binaries: {netd: example.org/net/cmd/netd, net-cni: example.org/net/cni}
cgo: false
tags: [one, two]
ldflags: ["-X main.version={version}"]
"""


@pytest.fixture
def recipes(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the recipe `net`, and a go that only says that it builds."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "go").write_text(GO)
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    folder = tmp_path / "daemons" / "net"
    folder.mkdir(parents=True)
    (folder / "build.yml").write_text(BUILD)
    (folder / "go.mod").write_text(
        "module x\n\nrequire (\n\texample.org/net v1.2.3+incompatible // indirect\n)\n"
    )
    (folder / "go.sum").write_text("")
    monkeypatch.setattr(daemons, "RECIPES", folder.parent)
    return folder


def calls() -> list[str]:
    path = Path(os.environ["GO_CALLS"])
    return path.read_text().splitlines() if path.exists() else []


def test_a_build_is_announced_and_one_that_is_there_is_not(recipes, capsys) -> None:
    daemons.prepare(["net"])
    daemons.prepare(["net", "net"])
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == [
        "building net 1.2.3 (about 1 min 30 s) …",
        "building net 1.2.3",
    ]
    assert len(calls()) == 1


def test_a_build_goes_on_beside_what_follows_and_is_waited_for(recipes, capsys) -> None:
    building = daemons.begin(["net", "net"])
    assert building is not None
    assert daemons.ensure("net")["version"] == "1.2.3"
    building.join()
    assert len(calls()) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "building net 1.2.3 beside what follows (about 1 min 30 s of a core)"
    assert "building net: 0 s" in said
    assert daemons.begin(["net"]) is None


def test_what_a_bundle_holds_is_not_announced_as_a_build(recipes, monkeypatch, capsys) -> None:
    key = daemons.build_key(daemons.load_recipe("net"), daemons._go_version())
    packed: list[str] = []

    def supply(target: Path, what: str, **_: object) -> bool:
        packed.append(f"{what} in {target.name}")
        target.mkdir(parents=True)
        (target / "manifest.json").write_text(json.dumps({"key": key, "binaries": {}}))
        return True

    monkeypatch.setattr(bundle_source, "present", lambda: True)
    monkeypatch.setattr(bundle_source, "supply", supply)
    assert daemons.begin(["net"]) is None
    assert packed == [f"the daemons of net in net-{key[:12]}"]
    assert calls() == []
    assert capsys.readouterr().err == ""


def test_a_build_beside_that_fails_is_said_at_once_and_raised_by_whoever_needs_it(recipes, capsys) -> None:
    Path(f"{os.environ['GO_CALLS']}.fails").write_text("no such package\n")
    building = daemons.begin(["net"])
    assert building is not None
    building.join()
    assert "daemons of net: could not be built: no such package" in capsys.readouterr().err
    with pytest.raises(UserError, match="could not be built: no such package"):
        daemons.ensure("net")


def test_a_build_is_checked_by_digest_and_made_once(recipes, own_cache):
    assert not daemons.cached("net")
    built = daemons.ensure("net")
    assert (built["name"], built["version"], built["go"]) == (
        "net",
        "1.2.3",
        "go version go1.27.3 linux/amd64",
    )
    content = b"made of example.org/net/cni\n"
    cni = built["binaries"]["net-cni"]
    assert Path(cni["path"]).read_bytes() == content
    assert Path(cni["path"]).parent == own_cache / "daemons" / f"net-{built['key'][:12]}"
    assert cni["sha256"] == hashlib.sha256(content).hexdigest()
    assert gzip.decompress(Path(cni["archive"]).read_bytes()) == content
    assert daemons.cached("net")
    assert daemons.ensure("net") == built
    assert calls() == [
        "0 -mod=readonly -modcacherw build -trimpath -buildvcs=false -tags one two "
        "-ldflags -s -w -X main.version=1.2.3 -o out/ example.org/net/cmd/netd example.org/net/cni"
    ]


SUM = "h1:" + "A" * 43 + "="
PATCH = """--- a/types.go
+++ b/types.go
@@ -1,3 +1,3 @@
 package api

-const Backend Kind = "nft"
+const Backend = "nft"
"""


@pytest.fixture
def patched(recipes: Path) -> Path:
    """The recipe `net` with a file out of its module, and with a module that it patches."""
    module = Path(os.environ["GO_CALLS"] + ".module")
    module.mkdir()
    (module / "types.go").write_text('package api\n\nconst Backend Kind = "nft"\n')
    (module / "net.cfg.template").write_text("for {{.Node}}\n")
    Path(os.environ["GO_CALLS"] + ".sum").write_text(SUM)
    (recipes / "build.yml").write_text(
        BUILD + f"files: {{net.cfg: net.cfg.template}}\n"
        f"patched:\n- {{module: example.org/api, sum: '{SUM}', patch: api.patch}}\n"
    )
    (recipes / "api.patch").write_text(PATCH)
    with (recipes / "go.mod").open("a") as file:
        file.write("\nrequire example.org/api v0.0.0-2025\n\nreplace example.org/api => ./api\n")
    return recipes


def test_a_patched_module_is_built_from_a_copy(patched, monkeypatch):
    seen = {}
    real = daemons.copy_patched

    def look(name, modules, work, environment):
        real(name, modules, work, environment)
        seen["copy"] = (work / "api" / "types.go").read_text()

    monkeypatch.setattr(daemons, "copy_patched", look)
    folder = Path(daemons.ensure("net")["binaries"]["netd"]["path"]).parent
    assert seen["copy"] == 'package api\n\nconst Backend = "nft"\n'
    module = Path(os.environ["GO_CALLS"] + ".module")
    assert (module / "types.go").read_text() == 'package api\n\nconst Backend Kind = "nft"\n'
    assert calls()[0] == "example.org/api -modcacherw mod download -json example.org/api@v0.0.0-2025"
    assert sorted(path.name for path in folder.iterdir()) == [
        "go.mod", "go.sum", "manifest.json", "net-cni", "net-cni.gz", "net.cfg", "net.cfg.gz", "netd", "netd.gz",
    ]  # fmt: skip


def test_files_of_a_module_are_brought_like_its_binaries(patched):
    about = daemons.ensure("net")["binaries"]["net.cfg"]
    assert Path(about["path"]).read_text() == "for {{.Node}}\n"
    assert about["sha256"] == hashlib.sha256(b"for {{.Node}}\n").hexdigest()
    assert gzip.decompress(Path(about["archive"]).read_bytes()) == b"for {{.Node}}\n"


def test_another_patch_is_another_build(patched):
    first = daemons.ensure("net")["key"]
    (patched / "api.patch").write_text(PATCH + "\n")
    assert daemons.ensure("net")["key"] != first


def test_a_patch_that_does_not_fit_is_named(patched):
    (patched / "api.patch").write_text(PATCH.replace("Kind", "Sort"))
    with pytest.raises(UserError, match=r"api\.patch does not fit example\.org/api v0\.0\.0-2025: .*FAILED"):
        daemons.ensure("net")
    assert not daemons.cached("net")


def test_another_module_than_was_patched_is_refused(patched):
    Path(os.environ["GO_CALLS"] + ".sum").write_text(SUM.replace("A", "B"))
    with pytest.raises(
        UserError, match=r"is not the module that the recipe patches .*h1:BBB.*Expected h1:AAA"
    ):
        daemons.ensure("net")


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("go.mod", "=> ./api", "=> example.org/fork v1.0.0", "must be required, and replaced with a folder"),
        ("go.mod", "require example.org/api v0.0.0-2025", "", "must be required, and replaced with a folder"),
        ("build.yml", "api.patch", "other.patch", "must be a file beside it"),
        ("build.yml", SUM, "h1:short", "sum"),
        ("build.yml", "api.patch", "../api.patch", "patch"),
    ],
)
def test_a_wrong_patch_is_named_before_anything_is_built(patched, file, old, new, told):
    path = patched / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError) as wrong:
        daemons.ensure("net")
    assert told in str(wrong.value)
    assert calls() == []


def test_a_file_that_the_module_lacks_is_named(patched):
    (Path(os.environ["GO_CALLS"] + ".module") / "net.cfg.template").unlink()
    with pytest.raises(
        UserError, match=r"net\.cfg\.template cannot be read in example\.org/net \(No such file"
    ):
        daemons.ensure("net")


def test_the_makers_name_of_a_version_counts(recipes):
    (recipes / "build.yml").write_text(BUILD + "version: 1.3.0+20250813\n")
    assert daemons.ensure("net")["version"] == "1.3.0+20250813"
    assert "-X main.version=1.3.0+20250813" in calls()[0]


@pytest.mark.parametrize("file", ["build.yml", "go.mod", "go.sum"])
def test_another_input_is_another_build(recipes, file):
    first = daemons.ensure("net")["key"]
    path = recipes / file
    path.write_text(path.read_text().replace("[one, two]", "[one]") + ("\n" if file != "build.yml" else ""))
    assert daemons.ensure("net")["key"] != first
    assert len(calls()) == 2


def test_a_comment_is_no_input(recipes):
    first = daemons.ensure("net")["key"]
    (recipes / "build.yml").write_text("# Why it is built\n" + BUILD)
    assert daemons.ensure("net")["key"] == first


def test_another_compiler_is_another_build(recipes):
    recipe = daemons.load_recipe("net")
    assert daemons.build_key(recipe, "go1.27.3") != daemons.build_key(recipe, "go1.27.4")


def test_a_build_that_was_cut_is_made_again(recipes):
    built = daemons.ensure("net")
    Path(built["binaries"]["netd"]["path"]).write_text("half")
    assert not daemons.cached("net")
    assert daemons.ensure("net") == built
    assert len(calls()) == 2


def test_a_failed_build_leaves_nothing_that_counts(recipes, own_cache):
    Path(os.environ["GO_CALLS"] + ".fails").write_text("net.go:3: undefined: x\n")
    with pytest.raises(
        UserError, match=r"daemons of net: could not be built: net\.go:3: undefined: x\. The whole output"
    ):
        daemons.ensure("net")
    assert not daemons.cached("net")
    Path(os.environ["GO_CALLS"] + ".fails").unlink()
    assert daemons.ensure("net")["version"] == "1.2.3"


def test_no_network_is_said_so(recipes):
    Path(os.environ["GO_CALLS"] + ".fails").write_text(
        "dial tcp: lookup proxy on 127.0.0.1:53: no such host\n"
    )
    with pytest.raises(UserError, match="fetches Go modules: check the network, or set GOPROXY"):
        daemons.ensure("net")


def test_a_missing_header_is_named_before_anything_is_built(recipes):
    if shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")
    text = BUILD.replace("cgo: false", "cgo: true\nheaders: [no/such.h]\nhost_packages: [libno-dev]")
    (recipes / "build.yml").write_text(text)
    with pytest.raises(UserError, match=r"the C header no/such\.h is needed .* apt-get install libno-dev"):
        daemons.ensure("net")
    assert calls() == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            BUILD.replace("example.org/net\n", "example.org/other\n"),
            "must be required in the go.mod beside it",
        ),
        (BUILD.replace("cgo: false", "cgo: maybe"), "build.yml:4: cgo: "),
        (BUILD + "flags: []\n", "flags"),
    ],
)
def test_a_wrong_recipe_is_named(recipes, text, told):
    (recipes / "build.yml").write_text(text)
    with pytest.raises(UserError) as wrong:
        daemons.load_recipe("net")
    assert told in str(wrong.value)


def test_an_unknown_name_lists_the_known_ones(recipes):
    with pytest.raises(UserError, match=r'"nett"\)\. Did you mean "net"\? Known: net\.'):
        daemons.ensure("nett")


def test_command_prints_digest_and_path(recipes):
    done = lab("daemons", "build")
    built = daemons.ensure("net")["binaries"]
    assert done.exit_code == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        [b["sha256"], b["path"]] for b in built.values()
    ]


def test_the_first_recipe_of_every_overlay_is_its_version():
    versions = {name: overlays.load(name).version for name in overlays.names()}
    built = {
        name: daemons.load_recipe(recipes[0]).version
        for name in versions
        if (recipes := overlays.load(name).daemons)
    }
    assert {name: versions[name] for name in built} == built


def test_manifest_holds_no_path_of_this_machine(recipes, own_cache):
    folder = Path(daemons.ensure("net")["binaries"]["netd"]["path"]).parent
    assert str(own_cache) not in json.dumps(json.loads((folder / "manifest.json").read_text()))
