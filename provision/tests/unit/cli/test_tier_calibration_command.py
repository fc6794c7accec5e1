"""`profile calibrate`: what it says, refuses and writes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from lab_builders import inventory
from lab_commands import lab, refused
from test_tier_calibration_document import measured

from overlaylab.bench import calibration_nodes
from overlaylab.cli import calibrate
from overlaylab.cli.commands import cluster
from overlaylab.specs.inventory import write_inventory
from overlaylab.specs.profile import read_profile

pytestmark = pytest.mark.usefixtures("machine")


@pytest.fixture
def hosts(tmp_path, monkeypatch) -> str:
    """An inventory of two SSH hosts, in the folder that the command runs in."""
    for name in ("NAME", "OUT", "FORCE", "DURATION", "CLOUD", "INSTANCE", "PROVIDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hosts.yml"
    write_inventory(path, replace(inventory("a", "a"), name="hosts", provider="external"))
    return "hosts.yml"


@pytest.fixture
def cloud(hosts, monkeypatch) -> SimpleNamespace:
    """Hosts that were measured: `found` is what comes of it, `asked` the seconds that were asked for."""
    known = SimpleNamespace(found=measured(), asked=[], dropped=0)

    class Nodes(dict):
        def __init__(self, _) -> None: ...

        async def connect(self) -> None: ...

        def drop(self) -> None:
            known.dropped += 1

    class Calibration:
        def __init__(self, nodes, duration, say) -> None:
            known.asked.append(duration)

        async def measure(self):
            return known.found

    monkeypatch.setattr("overlaylab.providers.kinds.hosts.Nodes", Nodes)
    monkeypatch.setattr(calibration_nodes, "Calibration", Calibration)
    return known


def test_the_plan_says_how_long_and_what_load(hosts, tmp_path) -> None:
    told = calibrate.plan(["node1", "node2"], "hosts.yml", 60, tmp_path / "x.yml")
    assert (
        told[0]
        == f"calibrating between node1 and node2 of hosts.yml, about 2 min 55 s, into {tmp_path}/x.yml"
    )
    assert "60 s of TCP each way" in told[1] and "15 GB" in told[1]
    assert "5201/tcp and udp of node2" in told[2]


def test_a_dry_run_starts_nothing(hosts, cloud, tmp_path) -> None:
    result = lab("profile", "calibrate", NAME="x", INVENTORY=hosts, OUT="x.yml", DRY_RUN="1")
    assert result.exit_code == 0
    assert cloud.asked == []
    assert not (tmp_path / "x.yml").exists()


def test_what_was_found_is_written_and_shown(hosts, cloud, tmp_path) -> None:
    variables = {"CLOUD": "AWS", "INSTANCE": "c5.large", "DURATION": "600"}
    result = lab(
        "profile", "calibrate", NAME="aws-c5.large", INVENTORY=hosts, OUT="aws-c5.large.yml", **variables
    )
    assert result.exit_code == 0, result.output
    assert (cloud.asked, cloud.dropped) == ([600], 1)
    tier = read_profile(tmp_path / "aws-c5.large.yml")
    assert tier.stands_for == {"cloud": "AWS", "instance": "c5.large"}
    assert (tier.name, tier.rate) == ("aws-c5.large", 100e6)
    for number in ("rate", "100 Mbit/s", "latency.within_zone", "0.965 ms", "1500 bytes", "measured"):
        assert number in result.stdout


def test_variables_that_are_empty_count_as_not_typed(hosts, cloud) -> None:
    empty = dict.fromkeys(("DURATION", "FORCE", "CLOUD", "INSTANCE", "DRY_RUN", "PROVIDER"), "")
    result = lab("profile", "calibrate", NAME="x", INVENTORY=hosts, OUT="x.yml", **empty)
    assert result.exit_code == 0, result.output
    assert cloud.asked == [60]


def test_a_profile_that_is_there_is_not_replaced_unasked(hosts, cloud, tmp_path) -> None:
    (tmp_path / "x.yml").write_text("mine\n")
    wrong = refused("profile", "calibrate", NAME="x", INVENTORY=hosts, OUT="x.yml")
    assert (wrong.where, wrong.rule) == ("OUT", "must not be there yet")
    assert (tmp_path / "x.yml").read_text() == "mine\n"
    assert cloud.asked == []
    assert lab("profile", "calibrate", NAME="x", INVENTORY=hosts, OUT="x.yml", FORCE="1").exit_code == 0
    assert read_profile(tmp_path / "x.yml").rate == 100e6


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({"NAME": "azure-a1"}, "NAME"),
        ({"NAME": "My Cloud"}, "NAME"),
        ({"NAME": "../x"}, "NAME"),
        ({"NAME": "x", "OUT": "x.txt"}, "OUT"),
        ({"NAME": "x", "OUT": "none/x.yml"}, "OUT"),
        ({"NAME": "x", "INSTANCE": "c5.large"}, "INSTANCE"),
        ({"NAME": "x", "INVENTORY": "absent.yml"}, "INVENTORY"),
        ({"NAME": "x", "INVENTORY": "", "CLUSTER": "pear"}, "CLUSTER"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_measured(hosts, cloud, variables, where) -> None:
    assert refused("profile", "calibrate", **({"INVENTORY": hosts} | variables)).where == where
    assert cloud.asked == []


def test_one_host_is_no_pair(hosts, cloud, tmp_path) -> None:
    write_inventory(tmp_path / "one.yml", replace(inventory("a"), name="one", provider="external"))
    wrong = refused("profile", "calibrate", NAME="x", INVENTORY="one.yml")
    assert (wrong.where.partition(": ")[2], wrong.seen) == ("all.hosts", "1")


def a_cluster(folder, **states: str) -> SimpleNamespace:
    async def status() -> dict[str, str]:
        return states

    return SimpleNamespace(folder=folder, inventory=inventory("a", "a"), cluster="pair", status=status)


def test_the_labs_own_nodes_must_exist_and_be_up(hosts, cloud, tmp_path, monkeypatch) -> None:
    found = a_cluster(tmp_path, node1="running", node2="shut off")
    monkeypatch.setattr(cluster, "provider_of", lambda *_: found)
    wrong = refused("profile", "calibrate", NAME="x", OUT="x.yml")
    assert (wrong.where, wrong.rule) == ("cluster pair", "has no nodes yet")
    monkeypatch.setattr(cluster, "has_nodes", lambda *_: True)
    (tmp_path / "inventory.yml").touch()
    wrong = refused("profile", "calibrate", NAME="x", OUT="x.yml")
    assert (wrong.where, wrong.seen) == ("cluster pair", "node1 running, node2 shut off")
    assert cloud.asked == []
