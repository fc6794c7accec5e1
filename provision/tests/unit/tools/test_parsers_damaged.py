"""Damaged outputs against the parsers: always the same ones, or others with EXAMPLES=5000. And the rule itself."""

import getpass
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from lab_damage import Damaged, broken_rule, damaged, recorded

from overlaylab.core.model import Sample
from overlaylab.tools import base
from overlaylab.tools.parsers import ParseError

# What hypothesis keeps of the code that it reads, beside pytest's own: by itself it would lie in the checkout. Not in the
# cache folder either: tests that take root would leave there what its user cannot remove.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / f"pytest-of-{getpass.getuser()}" / "hypothesis")
# By itself a test is the same each time: what it finds in a checkout, it finds on every machine.
SETTINGS = settings(
    max_examples=int(os.environ.get("EXAMPLES", "100")),
    derandomize="EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("tool", base.names())
def test_every_tool_has_recorded_outputs_of_success_and_of_failure(tool: str) -> None:
    assert {one.good for one in recorded(tool)} == {True, False}


@pytest.mark.parametrize("tool", base.names())
@given(data=st.data())
@SETTINGS
def test_damaged_outputs_give_samples_or_parse_error(tool: str, data: st.DataObject) -> None:
    for one in data.draw(damaged(tool)):
        assert broken_rule(one) is None


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (ParseError("it said so"), None),
        (ParseError(" "), "ParseError says nothing"),
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
        def parse(stdout, *_):
            if stdout == "whole":
                return [Sample("retransmits", 0)]
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr(base, "load", lambda tool: Tool)
    (origin, *_) = recorded("ping")
    whole = Damaged(origin.__class__("ping/whole", "ping", "whole", "", 0, {}, True), (), "", "", 0, {}, True)
    assert broken_rule(whole) == rule
