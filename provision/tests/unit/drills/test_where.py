"""Where a drill runs: what the kernel lacks refuses it, and what cannot be told without root does not where it is asked for."""

from __future__ import annotations

import pytest

from overlaylab.core.errors import UserError
from overlaylab.drills import where
from overlaylab.providers import requirements
from overlaylab.providers.requirements import Verdict
from overlaylab.specs import drill as drills
from overlaylab.specs.profile import load_profile

UNTRIED = Verdict(False, "not known without root: bridge", untried=("link:bridge",))
LACKS = Verdict(False, "lacks macvlan", lacks=("link:macvlan",), untried=("link:bridge",))


@pytest.fixture
def drill() -> drills.Drill:
    return drills.load("pings-fine-refuses-every-call")


def of_containers(monkeypatch, found: Verdict) -> None:
    monkeypatch.setattr(
        requirements,
        "verdict",
        lambda variant, profile, provider: found if provider == "lxc" else Verdict(True),
    )


def test_on_a_machine_where_nothing_was_tried_yet_what_is_asked_for_is_tried(drill, monkeypatch) -> None:
    of_containers(monkeypatch, UNTRIED)
    none = load_profile("none")
    variant, provider = where.choose(drill, None, none, "lxc")
    assert (variant.overlay, provider) == ("macvlan", "lxc")
    # Nobody asked: what surely runs is taken.
    assert where.choose(drill, None, none, None)[1] == "libvirt"
    assert where.reason(drill, variant, none, "lxc") == UNTRIED.reason


def test_what_the_kernel_lacks_is_refused_in_any_case(drill, monkeypatch) -> None:
    of_containers(monkeypatch, LACKS)
    with pytest.raises(UserError, match="lacks macvlan"):
        where.choose(drill, None, load_profile("none"), "lxc")
