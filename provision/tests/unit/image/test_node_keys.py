"""How keys come to a node: the script of its first boot, and what the Vagrantfile hands to each provider."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from overlaylab.core import paths
from overlaylab.image import node_image

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBbt5OIZOtue0R0K1mGhSK+GYJrVp9DIzAeIk6gkqZqQ"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBkVF0oI0cHzqLK/0OJSXE6XqZ9aFH32A74eKZprgHFN"
CREDENTIAL = "io.systemd.credential:overlaylab.authorized-keys"


class Boot:
    """A node's file system, as far as the script knows it."""

    def __init__(self, root: Path) -> None:
        self.host_key = root / "etc" / "ssh" / "ssh_host_ed25519_key"
        self.authorized = root / "run" / "overlaylab-authorized-keys"
        self.credential = root / "run" / "credentials" / "@system" / "overlaylab.authorized-keys"
        for path in (self.host_key, self.authorized, self.credential):
            path.parent.mkdir(parents=True, exist_ok=True)
        text = (node_image.PACKER / "scripts" / "keys.sh").read_text()
        script = re.findall(r"<<'SCRIPT'\n(.*?)^SCRIPT$", text, re.DOTALL | re.MULTILINE)[0]
        self.script = re.sub(r"(?<![\w/])/(etc|run)/", rf"{root}/\1/", script)

    def __call__(self, **environment: str) -> None:
        path = {"PATH": "/usr/bin:/bin"}
        subprocess.run(
            ["sh", "-c", self.script], check=True, env=path | environment, stdin=subprocess.DEVNULL
        )


@pytest.fixture
def boot(tmp_path) -> Boot:
    return Boot(tmp_path)


def test_the_first_boot_makes_a_host_key_and_later_ones_keep_it(boot, tmp_path) -> None:
    boot()
    assert stat.S_IMODE(boot.host_key.stat().st_mode) == 0o600
    shown = boot.host_key.with_suffix(".pub").read_text()
    assert re.fullmatch(r"ssh-ed25519 [A-Za-z0-9+/=]+ ?\n", shown), "it tells where it was made"
    boot()
    assert boot.host_key.with_suffix(".pub").read_text() == shown
    second = Boot(tmp_path / "node2")
    second()
    assert second.host_key.with_suffix(".pub").read_text() != shown


@pytest.mark.parametrize("empty", ["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"])
def test_a_host_key_that_a_power_cut_left_empty_is_made_anew(boot, empty) -> None:
    boot()
    boot.host_key.with_name(empty).write_text("")
    boot()
    asked = subprocess.run(
        ["ssh-keygen", "-y", "-f", boot.host_key], check=True, text=True, capture_output=True
    )
    assert asked.stdout.split()[1] == boot.host_key.with_suffix(".pub").read_text().split()[1]


def test_a_vms_credential_lets_its_key_in(boot) -> None:
    boot.credential.write_text(KEY)  # systemd writes no line's end
    boot()
    assert boot.authorized.read_text() == f"{KEY}\n"
    assert stat.S_IMODE(boot.authorized.stat().st_mode) == 0o644  # sshd reads it as the user


def test_a_containers_environment_lets_its_key_in(boot) -> None:
    boot.credential.write_text(OTHER)
    boot(OVERLAYLAB_AUTHORIZED_KEYS=KEY)
    assert boot.authorized.read_text() == f"{KEY}\n"


def test_each_boot_lets_in_what_arrived_with_it_and_nobody_where_nothing_did(boot) -> None:
    boot(OVERLAYLAB_AUTHORIZED_KEYS=KEY)
    boot()
    assert boot.authorized.read_text() == "\n"


STUB = """
require "json"
# Whatever is called on it is noted, and so is what is called in its blocks.
class Noted < BasicObject
  def initialize(log) = @log = log
  def method_missing(name, *arguments, **options, &block)
    @log << [name, arguments, options]
    block&.call(self)
    self
  end
end
module Vagrant
  def self.configure(_)
    log = []
    yield Noted.new(log)
    puts JSON.generate(log)
  end
end
load ARGV[0]
"""


@pytest.mark.skipif(not shutil.which("ruby"), reason="ruby is not installed")
def test_every_provider_is_handed_the_public_key_and_no_other(tmp_path) -> None:
    """VirtualBox cannot be tried everywhere: what VBoxManage would be told is all that can be looked at."""
    key = tmp_path / "id_ed25519"
    key.write_text("PRIVATE")
    key.with_suffix(".pub").write_text(f"{KEY} somebody@somewhere\n")
    container = {
        "container": "overlaylab-pair-node1",
        "address": "192.168.79.11",
        "settings": [],
        "naming": "true",
    }
    environment = {
        "PATH": "/usr/bin:/bin",
        "CLUSTER": "pair",
        "OVERLAYLAB_SSH_KEY": str(key),
        "OVERLAYLAB_BOX": "overlaylab/debian-0123",
        "OVERLAYLAB_POOL": "overlaylab-test",
        "OVERLAYLAB_POOL_PATH": "/pool",
        "OVERLAYLAB_LXC": json.dumps({"node1": container}),
    }
    told = subprocess.run(
        ["ruby", "-e", STUB, str(paths.ROOT / "vagrant" / "Vagrantfile")],
        check=True,
        text=True,
        capture_output=True,
        env=environment,
    ).stdout
    assert "PRIVATE" not in told and "somebody" not in told
    # Without it, Vagrant looks through each node's fstab for folders that are not shared, two seconds without KVM.
    assert ["allow_fstab_modification=", [False], {}] in json.loads(told)
    handed = [[name, *arguments] for name, arguments, _ in json.loads(told) if KEY in json.dumps(arguments)]
    credential = f"{CREDENTIAL}={KEY}"
    setting = "VBoxInternal/Devices/pcbios/0/Config/DmiOEMVBoxVer"
    libvirt = ["sysinfo=", {"oem strings": [credential]}]
    virtualbox = ["customize", ["setextradata", "id", setting, credential]]
    lxc = ["customize", "environment", f"OVERLAYLAB_AUTHORIZED_KEYS={KEY}"]
    # node1 is a container here, node2 is none; Vagrant takes the block of the provider that was chosen.
    assert handed == [lxc, libvirt, virtualbox, libvirt, virtualbox]
