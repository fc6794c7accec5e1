"""Calico's overlay-policy: what the datastore is told, and that it waits until Felix has put that in place."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from overlaylab.core.paths import ROLES

CALICO = ROLES / "overlay_calico" / "files"
SETTINGS = 'MODE={mode}\nINTERFACE=eth1\nNODE=node1\nRANGE=172.16.0.0/16\nMTU=\nPEERS="192.168.92.12"\n'


class Felix:
    """A node on which overlay-policy runs: calicoctl stands for Felix, and puts in place at once what it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "calico").mkdir()
        (folder / "bin").mkdir()
        (folder / "settings").write_text(SETTINGS.format(mode="ipip"))
        (folder / "calico.env").write_text("DATASTORE_TYPE=etcdv3\n")
        self.obeys()

    def obeys(self) -> None:
        marked = f"sed -n 's|.*Allow, source: {{nets: .\\(198.19[^]]*\\).*|-A cali-pi-overlaylab -s \\1 -j MARK|p' {self.folder}/told"
        self.calicoctl(
            f'echo "$*" >>{self.folder}/asked\ncat >{self.folder}/told\n{marked} >{self.folder}/rules'
        )

    def calicoctl(self, body: str) -> None:
        for path, text in (("calico/calicoctl", body), ("bin/iptables-nft", f"cat {self.folder}/rules")):
            (self.folder / path).write_text(f"#!/bin/sh\n{text}\n")
            (self.folder / path).chmod(0o755)

    def policy(self, *words: str) -> subprocess.CompletedProcess[str]:
        common = f"state={self.folder}\ncalico={self.folder}/calico\n"
        text = (CALICO / "overlay-policy").read_text()
        for old, new in (
            (". /opt/overlaylab/overlay/common.sh\n", f"state={self.folder}\n"),
            ("/opt/overlaylab/overlay/calico.sh", f"{self.folder}/calico.sh"),
        ):
            assert old in text
            text = text.replace(old, new)
        library = (CALICO / "calico.sh").read_text()
        (self.folder / "calico.sh").write_text(
            library.replace("calico=/opt/overlaylab/overlay/calico\n", common)
        )
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(
            ["sh", "-c", text, "overlay-policy", *words], env=environment, capture_output=True, text=True
        )

    def told(self) -> dict:
        return yaml.safe_load((self.folder / "told").read_text())


@pytest.fixture
def felix(tmp_path: Path) -> Felix:
    return Felix(tmp_path)


def nets(policy: dict) -> list[tuple[str, str | None]]:
    return [
        (rule["action"], rule.get("source", {}).get("nets", [None])[0]) for rule in policy["spec"]["ingress"]
    ]


@pytest.mark.parametrize(
    ("words", "after"),
    [
        (["deny"], [("Deny", None)]),
        (["allow"], [("Allow", "172.16.0.0/16")]),
        (
            ["rules", "2"],
            [("Allow", "198.18.0.1/32"), ("Allow", "198.18.0.2/32"), ("Allow", "172.16.0.0/16")],
        ),
    ],
)
def test_a_policy_is_written_and_waited_for(felix, words, after):
    done = felix.policy(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"policy": " ".join(words), "rules": 1}
    policy = felix.told()
    assert (policy["kind"], policy["spec"]["selector"]) == ("GlobalNetworkPolicy", "has(overlaylab)")
    first, *rest = nets(policy)
    # The rule that tells that it is this policy, and no earlier one, that is in place.
    assert first[1].startswith("198.19.") and rest == after


def test_rules_in_force_are_shown_alike_as_long_as_they_are(felix):
    rules = felix.folder / "rules"
    for mark, hashed in (("198.19.7.7", "a1"), ("198.19.8.8", "b2")):
        rules.write_text(
            f'-P INPUT ACCEPT\n-A cali-pi-shop -s {mark}/32 -m comment --comment "cali:{hashed}" -j MARK --set-xmark 0x1/0x1\n'
        )
        done = felix.policy("show")
        assert (done.returncode, done.stdout) == (
            0,
            "-A cali-pi-shop -s mark/32 -j MARK --set-xmark 0x1/0x1\n",
        )
    rules.write_text("-P INPUT ACCEPT\n")
    assert (felix.policy("show").returncode, felix.policy("show").stdout) == (0, "")
    assert not (felix.folder / "asked").exists()


def test_the_addresses_of_many_rules_differ(felix):
    assert felix.policy("rules", "600").returncode == 0
    found = [net for _, net in nets(felix.told())]
    assert len(set(found)) == 602
    assert found[251] == "198.18.1.1/32"


def test_no_policy_is_left(felix):
    felix.policy("deny")
    done = felix.policy("clear")
    assert json.loads(done.stdout) == {"policy": "clear", "rules": 0}
    assert (felix.folder / "asked").read_text().splitlines()[-1] == (
        "delete globalnetworkpolicy overlaylab --skip-not-exists"
    )


def test_a_datastore_that_refuses_is_told(felix):
    felix.calicoctl("echo 'connection refused'; exit 1")
    done = felix.policy("deny")
    assert done.returncode == 1
    assert done.stderr == "overlay-policy: the datastore did not take the policy: connection refused\n"


@pytest.mark.parametrize("words", [[], ["rules"], ["rules", "many"], ["rules", "60001"], ["drop"]])
def test_what_is_no_policy_is_refused(felix, words):
    assert felix.policy(*words).returncode == 1
    assert not (felix.folder / "asked").exists()
