"""What a person reads of intervals and verdicts: the cells, and the sentences under the tables that say what they claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from overlaylab.results.rows import Ratio, Row, Table, name_of
from overlaylab.results.verdicts import comparisons, enough, fewest
from overlaylab.run.design import Rules
from overlaylab.stats.inference import CANNOT_TELL, CONFIDENCE, MEDIAN_TAKES, Verdict, worded

MISSING = "–"


def digits(value: float) -> str:
    """A ratio with three digits that matter."""
    if value < 0.1:
        return f"{value:.4f}"
    return f"{value:.3f}" if value < 2 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def percent(value: float) -> str:
    """``2 %``, ``0.5 %``"""
    return f"{value * 100:.3g} %"


def confidence() -> str:
    """``95 %``"""
    return percent(CONFIDENCE)


def ratio_cell(row: Row, final: bool) -> str:
    """The median; behind it (its interval), or [min–max] where none is claimed: few blocks, or a run that goes on."""
    if row.ratio is None:
        return MISSING
    if row.variant.is_baseline:
        return "1"
    if row.ratio.same:
        return "= (within one step)"
    return digits(row.ratio.median) + around(row.ratio, final)


def around(ratio: Ratio, final: bool) -> str:
    """`` (0.953–0.960)`` or `` [0.953–0.960]``, see `ratio_cell`; nothing for a single block."""
    if final and ratio.interval:
        return f" ({digits(ratio.interval.low)}–{digits(ratio.interval.high)})"
    low, high = digits(ratio.low), digits(ratio.high)
    return "" if low == high else f" [{low}–{high}]"


def precision_sentence(tables: Sequence[Table], rules: Rules, blocks_done: int) -> str | None:
    """How a run with PRECISION ended; None for one without."""
    if rules.precision is None or not rules.looks:
        return None
    most = rules.looks[-1]
    if blocks_done < most:
        words = precision_words(tables, rules, True)
        return f"Ended after block {blocks_done} of at most {most}: {words} (PRECISION)."
    words = precision_words(tables, rules, enough(tables, rules, most))
    return f"All {most} blocks were taken; {words} (PRECISION)."


def precision_words(tables: Sequence[Table], rules: Rules, known: bool) -> str:
    """``every ratio is known to ±2 %``, with the names of what has none; rules have a precision."""
    assert rules.precision is not None
    rows = [row for table in tables if table.primary for row in table.rows if not row.variant.is_baseline]
    without = dict.fromkeys(name_of(row.variant, False) for row in rows if row.ratio is None)
    if all(row.ratio is None for row in rows):
        return "no overlay has a ratio to the host, which more blocks would not mend"
    words = f"{'every' if known else 'not every'} ratio is known to ±{percent(rules.precision)}"
    return (
        f"{words}, and {', '.join(without)} {'has' if len(without) == 1 else 'have'} none"
        if without
        else words
    )


def verdict_of(row: Row) -> Verdict | None:
    """None for the host, and below six blocks: nothing is said of them."""
    if row.variant.is_baseline or row.ratio is None or row.ratio.n < MEDIAN_TAKES:
        return None
    return row.ratio.verdict


def verdict_words(word: str, table: Table) -> str:
    """As people say it of the table's metric."""
    return worded(word, table.metric, table.better)


def verdict_cell(row: Row, table: Table) -> str:
    """In words; nothing is said below six blocks."""
    verdict = verdict_of(row)
    if verdict is None:
        return "" if row.variant.is_baseline else MISSING
    return verdict_words(verdict.word, table)


def ratios(tables: Sequence[Table]) -> list[tuple[Table, Row]]:
    """The rows that have a ratio to the host."""
    return [(t, r) for t in tables for r in t.rows if r.ratio and not r.variant.is_baseline]


def sentences(tables: Sequence[Table], rules: Rules, final: bool) -> Iterable[str]:
    """What intervals and verdicts claim, and what they do not."""
    rows = ratios(tables)
    if not rows:
        return
    if not final:
        yield "[a–b]: min–max over blocks. Intervals and verdicts come with the last block: looking early misleads."
        return
    few = {row.ratio.n for _, row in rows if row.ratio and row.ratio.n < MEDIAN_TAKES}
    if few:
        count = "1 block" if few == {1} else f"{min(few)} blocks"
        yield f"[a–b]: min–max. From fewer than six blocks ({count}) nothing is claimed, neither interval nor verdict."
    if len(few) == len({row.ratio.n for _, row in rows if row.ratio}):
        return
    yield from _interval(rules)
    yield from _margin(rules)
    yield from _family(tables, rules)


def _interval(rules: Rules) -> Iterable[str]:
    looks = f" at all {len(rules.looks)} looks together" if len(rules.looks) > 1 else ""
    yield f"(a–b): where the median over blocks lies with {confidence()} or more{looks} (order statistics)."


def _margin(rules: Rules) -> Iterable[str]:
    yield (
        f"Verdict, by the margin of {percent(rules.margin)} that was given before the run: same where all of the interval "
        f"lies between {digits(1 - rules.margin)} and {digits(1 + rules.margin)}; else faster or slower where all of it lies "
        f"on one side of 1; else cannot tell."
    )


def _family(tables: Sequence[Table], rules: Rules) -> Iterable[str]:
    first = [table for table in tables if table.primary]
    if not ratios(first):
        yield "The primary metric has no ratio: each verdict holds for itself alone, so of 20 such, one may be wrong."
        return
    count, least = comparisons(tables), fewest(tables, rules)
    name = f"{first[0].benchmark}: {first[0].metric}"
    if count > 1:
        yield (
            f"Verdicts on {name} hold together ({confidence()}, Holm over {count} comparisons); each of another table "
            f"for itself alone: of 20 such, one may be wrong."
        )
    kept = [
        (table, row)
        for table, row in ratios(first)
        if row.ratio
        and row.ratio.verdict
        and row.ratio.verdict.word == CANNOT_TELL != row.ratio.verdict.alone
    ]
    for table, row in kept:
        assert row.ratio and row.ratio.verdict
        alone = worded(row.ratio.verdict.alone, table.metric, table.better)
        yield f"   {name_of(row.variant, False)}: {alone}, had it been the only comparison."
    blocks = max(row.ratio.n for _, row in ratios(first) if row.ratio)
    if kept and blocks < least:
        yield f"{blocks} blocks cannot tell {count} overlays from the host at once, whatever they measure: BLOCKS={least} can."
