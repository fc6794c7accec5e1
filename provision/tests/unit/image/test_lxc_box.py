"""The box for containers: what it is made of, where the root file system lies, and its template at work."""

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from overlaylab.core.errors import UserError
from overlaylab.image import lxc_box, node_image


@pytest.fixture
def definition(monkeypatch, tmp_path, own_cache):
    """A copy of packer/lxc, which a test may change, and an image with a key that needs no SSH key."""
    copy = tmp_path / "lxc"
    shutil.copytree(lxc_box.DEFINITION, copy)
    monkeypatch.setattr(lxc_box, "DEFINITION", copy)
    monkeypatch.setattr(node_image, "image_key", lambda system: "0123456789abcdef")
    return copy


def test_the_boxs_key_covers_image_and_definition(definition, monkeypatch) -> None:
    keys = [lxc_box.key()]
    with (definition / "config").open("a") as file:
        file.write("# another\n")
    keys.append(lxc_box.key())
    added = definition / "rootfs" / "etc" / "another"
    added.write_text("")
    keys.append(lxc_box.key())
    added.rename(added.with_name("renamed"))
    keys.append(lxc_box.key())
    monkeypatch.setattr(node_image, "image_key", lambda system: "fedcba9876543210")
    keys.append(lxc_box.key())
    assert len(set(keys)) == 5
    assert lxc_box.key() == keys[-1]
    assert lxc_box.name() == f"debian-{keys[-1][:12]}"


def test_a_box_of_other_inputs_is_not_the_box(definition) -> None:
    folder = node_image.folder("debian")
    folder.mkdir(parents=True)
    assert not lxc_box.is_built()
    (folder / "overlaylab-lxc.box").write_text("")
    (folder / "lxc.json").write_text(json.dumps({"key": lxc_box.key()}))
    assert lxc_box.is_built()
    assert lxc_box.build() == folder / "overlaylab-lxc.box"  # asks nobody for anything
    (definition / "config").write_text("")
    assert not lxc_box.is_built()


def test_the_shared_root_is_named_by_what_is_in_it(definition, monkeypatch, tmp_path) -> None:
    """Images of the same key hold the packages of the day that each was built on, and two users may share LXC."""
    monkeypatch.setattr(lxc_box.boxes, "extract_disk", lambda box, into: into / "box.img")
    monkeypatch.setattr(lxc_box.process, "run", lambda argv, *_, **__: None)
    monkeypatch.setattr(lxc_box, "_partitions", lambda disk: table({"start": 2048, "type": "83", "size": 1}))
    names = []
    for day in (b"monday", b"monday", b"tuesday"):
        work, folder = tmp_path / f"work{len(names)}", tmp_path / f"image{len(names)}"
        work.mkdir()
        folder.mkdir()
        (work / "box.img").write_bytes(b"")

        def pack(argv, why, day=day):
            Path(argv[-1]).write_bytes(day)
            return subprocess.CompletedProcess(argv, 0)

        monkeypatch.setattr(lxc_box, "run_as_root", pack)
        lxc_box._build_in(work, folder, "debian")
        with tarfile.open(folder / "overlaylab-lxc.box") as box:
            metadata = json.load(box.extractfile("./metadata.json"))
        names.append(metadata["template-opts"]["--image"])
    assert names[0] == names[1] != names[2]
    assert {name.rpartition("-")[0] for name in names} == {lxc_box.name()}


def table(*partitions: dict, **more) -> dict:
    """As `sfdisk --json` prints it."""
    return {
        "partitiontable": {"device": "disk.raw", "unit": "sectors", "partitions": list(partitions), **more}
    }


def test_the_largest_linux_partition_holds_the_root() -> None:
    # As recorded from the image's disk: an MBR with one partition.
    one = {"node": "disk.raw1", "start": 2048, "size": 16775168, "type": "83", "bootable": True}
    assert lxc_box.root_offset(table(one, label="dos", sectorsize=512)) == 2048 * 512
    efi = {"start": 2048, "size": 99999999, "type": "C12A7328-F81F-11D2-BA4B-00A0C93EC93B"}
    boot = {"start": 512, "size": 100, "type": "0FC63DAF-8483-4772-8E79-3D69D8477DE4"}
    root = {"start": 1024, "size": 9000, "type": "0fc63daf-8483-4772-8e79-3d69d8477de4"}
    assert lxc_box.root_offset(table(efi, boot, root, sectorsize=4096)) == 1024 * 4096
    with pytest.raises(UserError) as wrong:
        lxc_box.root_offset(table(efi))
    assert wrong.value.where == "disk.raw"
    assert wrong.value.seen == efi["type"]


# -- the template -------------------------------------------------------------------------------------


@pytest.fixture
def template(tmp_path):
    """template(node): runs the box's lxc-template for that node as lxc-create would; the node's folder."""
    tarball = tmp_path / "rootfs.tar.gz"
    with gzip.open(tarball, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in (("./rootfs/etc/hostname", b"debian\n"), ("./rootfs/sbin/init", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    lxcpath = tmp_path / "lxcpath"

    def run(node: str):
        folder = lxcpath / node
        folder.mkdir(parents=True)
        (folder / "config").write_text("lxc.net.0.type = empty\n")
        subprocess.run(
            [
                "sh", str(lxc_box.DEFINITION / "template.sh"), f"--path={folder}", f"--name={node}",
                f"--rootfs={folder}/rootfs", "--image", "debian-0123", "--tarball", str(tarball),
                "--config", str(lxc_box.DEFINITION / "config"),
            ],
            check=True,
        )  # fmt: skip
        return folder

    run.tarball = tarball
    return run


def lines(folder, key: str) -> list[str]:
    """The values of a key in a container's configuration."""
    found = (line.partition(" = ") for line in (folder / "config").read_text().splitlines())
    return [value for name, _, value in found if name == key]


def test_nodes_share_one_root_and_add_layers_of_their_own(template) -> None:
    first = template("overlaylab-pair-node1")
    shared = first.parent / "overlaylab-image-debian-0123"
    (shared / "mark").write_text("")
    second = template("overlaylab-pair-node2")
    assert (shared / "mark").exists(), "it was unpacked again"
    assert (shared / "rootfs" / "etc" / "hostname").read_text() == "debian\n"
    assert shared.stat().st_mode & 0o777 == 0o700
    assert lines(second, "lxc.rootfs.path") == [
        f"overlay:{second}/provisioned:{shared}/rootfs:{second}/upper"
    ]
    assert lines(second, "lxc.hook.pre-start") == [f"{second}/fresh"]
    assert sorted(path.name for path in second.iterdir()) == ["config", "fresh", "provisioned", "upper"]
    assert sorted(path.name for path in first.parent.iterdir()) == [
        "overlaylab-image-debian-0123",
        "overlaylab-pair-node1",
        "overlaylab-pair-node2",
    ]


def test_a_containers_configuration_is_the_boxs_and_says_whose_it_is(template) -> None:
    folder = template("overlaylab-pair-node1")
    text = (folder / "config").read_text()
    assert text.startswith(f"# made of {template.tarball}\n")
    assert "lxc.net.0.type" not in text  # of /etc/lxc/default.conf
    assert lines(folder, "lxc.cap.drop") == ["sys_module sys_time sys_rawio"]


def test_an_unpacking_that_was_cut_off_is_begun_anew(template, tmp_path) -> None:
    half = tmp_path / "lxcpath" / "overlaylab-image-debian-0123.new" / "rootfs"
    half.mkdir(parents=True)
    (half / "half").write_text("")
    folder = template("overlaylab-pair-node1")
    shared = folder.parent / "overlaylab-image-debian-0123"
    assert sorted(path.name for path in (shared / "rootfs").iterdir()) == ["etc", "sbin"]
    assert not half.parent.exists()


def test_a_start_is_clean_once_the_node_is_provisioned(template) -> None:
    folder = template("overlaylab-pair-node1")

    def start() -> None:
        # As LXC calls lxc.hook.pre-start.
        subprocess.run([folder / "fresh"], env={"LXC_CONFIG_FILE": f"{folder}/config"}, cwd="/", check=True)

    (folder / "upper" / "hosts").write_text("")
    start()
    assert (folder / "upper" / "hosts").exists(), "what Vagrant changes is kept"
    (folder / "provisioned").rmdir()
    (folder / "upper").rename(folder / "provisioned")
    (folder / "upper").mkdir()
    (folder / "frozen").touch()
    (folder / "upper" / "dirt").write_text("")
    (folder / "work").mkdir()
    start()
    assert list((folder / "upper").iterdir()) == []
    assert not (folder / "work").exists()
    assert (folder / "provisioned" / "hosts").exists()
