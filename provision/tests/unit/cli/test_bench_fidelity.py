"""bench:fidelity from the command line: what it would measure, what it measures, and what it judges."""

import pytest
from lab_commands import lab, refused
from test_fidelity_lab import maker, measure, on

from overlaylab.cli.commands import bench_fidelity
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.run import experiment
from overlaylab.store.store import Store

pytestmark = pytest.mark.usefixtures("machine", "untyped")


@pytest.fixture
def untyped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEASURE", "PROVIDER"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """What was to be measured: (profile, modes, arguments, blocks, scale)."""
    found: list[tuple] = []

    def carry_out(asked) -> None:
        typed = asked.options
        found.append((asked.profile.name, typed.modes, typed.arguments, asked.blocks, typed.scale))

    monkeypatch.setattr(bench_fidelity, "carry_out", carry_out)
    return found


def filled(*runs: str) -> None:
    """A database with six blocks of sleeve on these tiers, as on a machine that emulates."""
    paths.database().parent.mkdir(exist_ok=True)
    with Store.open(paths.database()) as store:
        for name in runs:
            measure(store, on(name))


def test_what_is_missing_is_listed_with_its_time_and_nothing_starts(carried) -> None:
    result = lab("bench", "fidelity", DRY_RUN="1", PROFILES="azure-a1,aws-t2.medium")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split(" SEED=")[0] for line in lines[::2]] == [
        "./task lab:weave MODES=sleeve CLUSTER=pair PROFILE=azure-a1 SUITE=quick BLOCKS=6 SCALE=1.0",
        "./task lab:weave MODES=sleeve CLUSTER=pair PROFILE=aws-t2.medium SUITE=quick BLOCKS=6 SCALE=1.0",
        "./task lab:weave MODES=fastdp ARGUMENTS=overlay_weave_mtu=1410 CLUSTER=pair PROFILE=aws-t2.medium"
        " SUITE=quick BLOCKS=6 SCALE=1.0",
        "./task lab:weave MODES=sleeve,fastdp ARGUMENTS=overlay_weave_mtu=8950 CLUSTER=pair"
        " PROFILE=aws-t2.medium SUITE=quick BLOCKS=6 SCALE=1.0",
        "./task lab:flannel MODES=vxlan ARGUMENTS=overlay_flannel_mtu=8951 CLUSTER=pair"
        " PROFILE=aws-t2.medium SUITE=quick BLOCKS=6 SCALE=1.0",
        lines[-1],
    ]
    assert lines[1].startswith("   24 trials, about ")
    assert lines[7].startswith("   36 trials, about ")
    assert lines[-1].startswith("5 runs, about ") and lines[-1].endswith(" with nodes up and converged")
    assert carried == []
    assert not paths.database().exists()


def test_only_what_is_missing_is_measured(carried) -> None:
    filled("azure-a0", "azure-a1")
    with Store.open(paths.database()) as store:
        run = on("azure-a0")
        maker.fill(store, run)  # goodput and latency
    result = lab("bench", "fidelity", PROFILES="azure-a0,azure-a1", SCALE="2")
    assert result.exit_code == 0, result.output
    # A1's goodput is there, but no latency.
    assert carried == [("azure-a1", "sleeve", None, 6, 2.0)]
    assert "azure-a0" in result.stdout and "azure-a1" in result.stdout


def test_a_database_may_be_judged_as_it_is(carried) -> None:
    filled("azure-a1")
    result = lab("bench", "fidelity", MEASURE="no", PROFILES="azure-a1", COLUMNS="120")
    assert result.exit_code == 0, result.output
    assert "0.725 (0.700–0.750) 6" in result.stdout
    assert "1 of 2 not measured" in result.stdout
    assert carried == []


def test_without_a_database_everything_is_unmeasured_and_none_is_made(carried) -> None:
    result = lab("bench", "fidelity", MEASURE="no", PROFILES="azure-a1")
    assert result.exit_code == 0, result.output
    assert "2 of 2 not measured" in result.stdout
    assert not paths.database().exists()


def test_nothing_to_measure_is_said() -> None:
    filled("azure-a1")
    with Store.open(paths.database()) as store:
        maker.fill(store, on("azure-a1"))
    result = lab("bench", "fidelity", DRY_RUN="1", PROFILES="azure-a1")
    assert result.stdout == "nothing to measure: MEASURE=no judges what the database holds\n"


def test_a_run_that_stops_does_not_stop_the_others(carried, monkeypatch) -> None:
    def carry_out(asked) -> None:
        if asked.profile.name == "azure-a0":
            raise UserError("run", "stopped: profile azure-a0 failed its check", fix="Look")
        carried.append(asked.profile.name)

    monkeypatch.setattr(bench_fidelity, "carry_out", carry_out)
    result = lab("bench", "fidelity", PROFILES="azure-a0,azure-a1")
    assert result.exit_code == 1, result.output
    assert carried == ["azure-a1"]
    assert "4 of 4 not measured" in result.stdout
    assert "azure-a0: run: stopped: profile azure-a0 failed its check" in result.stdout


def test_a_tier_that_the_lab_refuses_is_named_and_the_others_go_on(carried, monkeypatch) -> None:
    right = experiment.request

    def request(overlay, typed):
        if typed.profile == "azure-a0":
            raise UserError("profiles/azure-a0.yml", "cannot be put in force here", fix="None")
        return right(overlay, typed)

    monkeypatch.setattr(experiment, "request", request)
    listed = lab("bench", "fidelity", DRY_RUN="1", PROFILES="azure-a0,azure-a1").stdout
    assert "cannot be measured here: azure-a0: profiles/azure-a0.yml: cannot be put in force here" in listed
    assert "1 run, about" in listed
    assert lab("bench", "fidelity", PROFILES="azure-a0,azure-a1").exit_code == 1
    assert carried == [("azure-a1", "sleeve", None, 6, 1.0)]


@pytest.mark.parametrize(
    ("typed", "where"),
    [
        ({"PROFILES": "none"}, "PROFILES"),
        ({"PROFILES": "azure-a9"}, "PROFILE"),
        ({"BLOCKS": "0"}, "BLOCKS"),
        ({"SUITE": "none"}, "SUITE"),
    ],
)
def test_what_is_typed_wrongly_is_refused_before_anything_starts(carried, typed, where) -> None:
    assert refused("bench", "fidelity", **typed).where == where
    assert carried == []
