"""Results that tests choose, and what is printed of them."""

import random
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

from overlaylab.core.model import Sample
from overlaylab.report.table import show
from overlaylab.results.results import report

FIXTURES = Path(__file__).parents[1] / "fixtures" / "results"
sys.path.insert(0, str(FIXTURES))
import maker  # noqa: E402

HEADERS = {"fastdp": 50, "fastdp-encrypted": 84, "sleeve": 62, "sleeve-encrypted": 86}
ALL = (maker.HOST, maker.FASTDP, maker.FASTDP_ENCRYPTED, maker.SLEEVE, maker.SLEEVE_ENCRYPTED)


def headers(variant):
    return HEADERS.get(variant.key)


def outcomes(run, values, benchmark="tcp-goodput", metric="goodput", resolution=None, **changes):
    """Results for maker.fill: values {variant: [value of block 1, …]}; None is a failed trial."""
    planned = {(t.block, t.variant): t for t in maker.plan(run) if t.benchmark == benchmark}
    found = {}
    for variant, series in values.items():
        for block, value in enumerate(series, start=1):
            usual = maker.result(planned[block, variant], random.Random(1))
            sample = Sample(metric, value or 0.0, resolution=resolution)
            found[block, variant, benchmark] = (
                maker.failed("no server") if value is None else replace(usual, samples=(sample,), **changes)
            )
    return found


def printed(store, run_id=None, width=80, **more):
    out = StringIO()
    show(store, run_id, Console(file=out, width=width, highlight=False), headers=headers, **more)
    return out.getvalue()


def table_of(store, run, values, **more):
    """The one table, as {variant: row}."""
    run_id = maker.fill(store, run, benchmarks=[maker.TCP], results=outcomes(run, values, **more))
    (table,) = report(store, run_id, headers).tables
    return table, {row.variant: row for row in table.rows}


THREE = replace(maker.RUN, blocks=3, variants=(maker.FASTDP, maker.HOST))
