"""What hooks are told of a run, when, and what becomes of a trial where they changed something."""

from __future__ import annotations

from lab_fakes import Counters
from lab_run import COUNTERS, FASTDP, HOST, Bench

from overlaylab.core.errors import NodeError
from overlaylab.run.hooks import Hooks


class Told(Hooks):
    """Notes what it is told; `moves` says that counters have moved, `fails` is raised once by that method."""

    def __init__(self, bench: Bench, *, moves: bool = False, fails: str | None = None) -> None:
        self.bench, self.moves, self.fails = bench, moves, fails
        self.log: list[tuple] = []

    def _note(self, *what: object) -> None:
        self.log.append(what)
        if what[0] == self.fails:
            self.fails = None
            raise NodeError(f"node1: no answer to {what[0]}")

    async def entered(self, cell) -> None:
        assert self.bench.lab.current == cell[0].variant
        self._note("entered", str(cell[0].variant), len(cell))

    async def before_trial(self, trial, ends) -> bool:
        assert (ends.client.name, ends.server.name) == (trial.client_node, trial.server_node)
        self._note("before", trial.benchmark)
        if self.moves:
            # Somebody's own traffic: what the nodes count on the way to the next reading.
            for node in (ends.client, ends.server):
                counters = node.answers[COUNTERS]
                assert isinstance(counters, Counters)
                counters.calls += 5
        return self.moves

    async def after_trial(self, trial, result) -> None:
        assert self.bench.rows("SELECT count(*) FROM _trial WHERE status IN ('planned', 'running')") == [
            (4 - sum(what[0] == "after" for what in self.log) - 1,)
        ]
        self._note("after", trial.benchmark, result.status)


def gained(bench: Bench) -> list[int]:
    """Bytes that the first node sent in each trial, by its own counters."""
    return [
        n
        for (n,) in bench.rows(
            "SELECT json_extract(node_state, '$.node1.after.tx_bytes') - json_extract(node_state,"
            " '$.node1.before.tx_bytes') FROM _output ORDER BY trial_id"
        )
    ]


async def test_hooks_are_told_of_each_cell_and_each_trial_in_turn(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
    hooks = Told(bench)
    await bench.run(hooks=hooks)
    trials = [
        step for name in ("tcp-goodput", "tcp-latency") for step in (("before", name), ("after", name, "ok"))
    ]
    cells = [str(trial.variant) for trial in bench.plan[::2]]
    assert sorted(cells) == ["host", "weave fastdp"]
    assert hooks.log == [step for name in cells for step in (("entered", name, 2), *trials)]
    assert gained(bench) == [1_000_000] * 4


async def test_what_a_hook_did_on_the_nodes_is_not_the_trials(lab_store) -> None:
    bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
    await bench.run(hooks=Told(bench, moves=True))
    assert bench.outcomes() == [("ok", None)] * 4
    assert gained(bench) == [1_000_000] * 4


async def test_a_hook_that_fails_has_its_cell_entered_again_and_no_stored_trial_repeated(lab_store) -> None:
    for fails, entered in (("entered", 3), ("before", 3), ("after", 3)):
        bench = Bench(lab_store, variants=(HOST, FASTDP), blocks=1)
        hooks = Told(bench, fails=fails)
        await bench.run(hooks=hooks)
        assert [what[0] for what in hooks.log].count("entered") == entered
        assert [what[0] for what in hooks.log].count("after") == 4
        assert bench.rows(f"SELECT count(*) FROM _trial WHERE run_id = '{bench.run_id}'") == [(4,)]
        assert f"  node1: no answer to {fails}; entering the variant again" in bench.said
