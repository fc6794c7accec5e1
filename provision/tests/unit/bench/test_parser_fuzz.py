"""Damaged outputs against the parsers (a fixed seed; `./task bench:fuzz` takes more), and the rule itself."""

import pytest

from overlaylab.bench import parser_fuzz
from overlaylab.bench.parser_fuzz import Mutant, Outcome, broken_rule
from overlaylab.core import paths
from overlaylab.core.model import Sample
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError

INPUTS = parser_fuzz.recorded(paths.ROOT)


def test_every_tool_has_recorded_outputs_of_success_and_of_failure() -> None:
    for tool in base.tools():
        assert {one.good for one in INPUTS if one.tool == tool} == {True, False}, tool


def test_damaged_outputs_give_samples_or_parse_error() -> None:
    outcome = parser_fuzz.fuzz(INPUTS, 4000, seed=20)
    assert [(f.number, f.mutant.origin.name, f.mutant.how, f.rule) for f in outcome.findings] == []
    assert set(outcome.accepted) == set(outcome.refused) == set(base.tools())


def test_a_seed_makes_the_same_inputs() -> None:
    first, again, other = (list(parser_fuzz.mutants(INPUTS, 50, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (ParseError("it said so"), None),
        (ParseError(" "), "ParseError says nothing"),
        (KeyError("end"), "KeyError: 'end'"),
        ([], "no sample and no ParseError"),
        ([Sample("goodput", 1.0)], None),
        ([Sample("goodput", float("nan"))], "goodput: value is nan"),
        ([Sample("goodput", 0.0)], "goodput is 0"),
        ([Sample("goodput", 0.0, 1.0, 2.0), Sample("goodput", 9.0)], "a zero out of nothing: goodput"),
        ([Sample("retransmits", 0)], None),
        ([Sample("latency_rtt", 0.0, 1.0, 1.0)], "latency_rtt is 0"),
        ([Sample("loss", -0.1)], "loss is -0.1"),
        ([Sample("loss", 0.0)], "a zero out of nothing: loss"),
        ([Sample("jitter", 1.0, 2.0, 1.0)], "jitter: from 2.0 to 1.0"),
        ([Sample("jitter", 1.0, 2.0)], "jitter: half a time"),
        ([Sample("jitter", 1.0, quantile=1.0)], "jitter: quantile 1.0"),
        ([Sample("jitter", 1.0, resolution=0.0)], "jitter: resolution 0.0"),
        ([Sample("datagrams", 10**310)], f"datagrams: value is 1{'0' * 310}"[:200]),
    ],
)
def test_the_rule(monkeypatch, answer: object, rule: str | None) -> None:
    class Tool:
        @staticmethod
        def parse(*_):
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr(base, "load", lambda tool: Tool)
    mutant = Mutant(INPUTS[0], "cut", "", "", 0, {}, only_less=True)
    assert broken_rule(mutant, {"retransmits"}, Outcome()) == rule
