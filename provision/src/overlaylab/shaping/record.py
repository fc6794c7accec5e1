"""What a node remembers of the profile in force on it: which, how it was proven, and when.

It lies on the node itself, because there it goes with the profile: by a revert, by clearing, by another profile.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from overlaylab.core.model import ProfileCheck
from overlaylab.shaping.checks import readable
from overlaylab.shaping.scripts import RECORD, STATE
from overlaylab.specs.profile import Profile

# POSIX sh for root on a node; `on_node` reads what it prints.
READ = f"""
cat {RECORD} 2>/dev/null || echo null
cat {STATE}/digest 2>/dev/null || :
"""


_VERDICTS = {"pass": "passed", "not-applicable": "cannot be made here", "fail": "FAILED"}


@dataclass(frozen=True)
class Record:
    """at: UTC in ISO 8601. delayed: whether its latency is in force, too; checks: those that proved it, in words.

    verdicts: {verdict: how many of them have it}. baseline: {"node1 node2": RTT in s without the delay}, as `Shaper.baseline`.
    digest_in_force: of what the node itself was told (`NodeShaping.digest`).
    """

    profile: str
    profile_digest: str
    at: str
    delayed: bool
    checks: tuple[str, ...]
    verdicts: Mapping[str, int]
    baseline: Mapping[str, float]
    digest_in_force: str = ""

    @property
    def failed(self) -> int:
        """How many checks failed."""
        return self.verdicts.get("fail", 0)

    @property
    def when(self) -> str:
        """`at` for people."""
        return f"{self.at[:10]} {self.at[11:16]} UTC"

    @property
    def of_pairs(self) -> dict[frozenset[str], float]:
        """The baseline with the keys that a Shaper has."""
        return {frozenset(pair.split()): rtt for pair, rtt in self.baseline.items()}


def made(
    profile: Profile, baseline: Mapping[frozenset[str], float], checks: Sequence[ProfileCheck] | None
) -> Record:
    """The record of a profile that has just been put in force; checks: None where its latency was left out."""
    return Record(
        profile=profile.name,
        profile_digest=profile.digest,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        delayed=checks is not None,
        checks=tuple(map(readable, checks or ())),
        verdicts=dict(Counter(check.verdict for check in checks or ())),
        baseline={" ".join(sorted(pair)): rtt for pair, rtt in baseline.items()}
        if checks is not None
        else {},
    )


def keep_script(record: Record) -> str:
    """POSIX sh for root on a node."""
    return f"mkdir -p {RECORD.rpartition('/')[0]}\ncat >{RECORD} <<'RECORD'\n{json.dumps(asdict(record))}\nRECORD\n"


def on_node(printed: str) -> tuple[Record | None, bool]:
    """(what the node remembers, whether a profile is in force on it), from what READ prints.

    No record is trusted that tells of something else than what is in force.
    """
    first, _, digest = printed.strip().partition("\n")
    try:
        found = json.loads(first)
        record = Record(**{**found, "checks": tuple(found["checks"])}) if found else None
    except (ValueError, TypeError, KeyError):  # another version's
        record = None
    in_force = bool(digest.strip())
    return (record if record and in_force and record.digest_in_force == digest.strip() else None), in_force


def in_words(found: Mapping[str, tuple[Record | None, bool]]) -> str:
    """Which profile is in force on nodes, how it was proven and when; found: {node: what `on_node` says}."""
    by_words: dict[str, list[str]] = {}
    for node, (record, in_force) in found.items():
        by_words.setdefault(_one(record, in_force), []).append(node)
    if len(by_words) == 1:
        return next(iter(by_words))
    return "; ".join(f"{', '.join(nodes)}: {words}" for words, nodes in by_words.items())


def _one(record: Record | None, in_force: bool) -> str:
    if record is None:
        return "one that a run put in force, without a proof that is kept" if in_force else "none"
    if not record.delayed:
        return f"{record.profile} without its latency (FAST=1), not proven, since {record.when}"
    told = [f"{n} {word}" for verdict, word in _VERDICTS.items() if (n := record.verdicts.get(verdict, 0))]
    return f"{record.profile}, since {record.when}; of its checks {', '.join(told)}"
