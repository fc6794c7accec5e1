"""A real process that plans, measures on fake nodes and stores, to be killed or to run out of disk.

``python lab_trouble.py DATABASE``: measure until the plan is done; what went wrong with the store goes to standard
output, with exit code 3.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable

from lab_run import Bench, Lab, Shaper

from overlaylab.core.errors import UserError
from overlaylab.run.runner import Runner
from overlaylab.store.store import UNFINISHED, Store

BLOCKS = 25


async def measure(path: str, told: Callable[[int], object]) -> str:
    """Begin a run, or carry the newest on where it is unfinished; told: of each trial that has been stored."""
    with Store.open(path) as store:
        run_id = store.db.execute("SELECT max(run_id) FROM _run").fetchone()[0]
        if run_id is None or store.run(run_id).state not in UNFINISHED:
            run_id = Bench(store, blocks=BLOCKS).run_id
        finish = store.finish_trial

        def finish_and_tell(trial_id: int, *more) -> None:
            finish(trial_id, *more)
            told(trial_id)

        store.finish_trial = finish_and_tell  # type: ignore[method-assign]
        try:
            await Runner(store, run_id, Lab(), Shaper(), lambda line: None).run()  # type: ignore[arg-type]
        except UserError:
            store.set_run_state(run_id, "interrupted")  # as commands/measure.py does
            raise
        return run_id


def forked(path: str) -> tuple[int, int]:
    """(process, what it tells): a child that measures until it is done or killed."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    try:
        asyncio.run(measure(path, lambda trial_id: os.write(writer, f"{trial_id}\n".encode())))
        os._exit(0)
    finally:
        os._exit(1)


if __name__ == "__main__":
    try:
        asyncio.run(measure(sys.argv[1], lambda trial_id: print(trial_id, flush=True)))
    except UserError as error:
        print(error)
        sys.exit(3)
