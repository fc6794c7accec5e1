"""Several tiers measured one after the other: one run each, which name the group that they belong to.

A group is kept in its runs' arguments (``group``, ``profiles``), and exists once its first run does.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from overlaylab.core import lock
from overlaylab.core.documents import names_in, unknown
from overlaylab.core.errors import UserError
from overlaylab.core.paths import PROFILES
from overlaylab.providers import choice as provider_choice
from overlaylab.providers import registry
from overlaylab.run import experiment
from overlaylab.run.experiment import Request
from overlaylab.run.options import Options
from overlaylab.store.database_errors import explained
from overlaylab.store.store import UNFINISHED, Store

NEWEST = "newest"


@dataclass(frozen=True)
class Group:
    """Runs of one group. profiles: all its tiers in their order; runs: {profile: (run id, state)}, begun ones."""

    group: str
    profiles: tuple[str, ...]
    cluster: str
    runs: Mapping[str, tuple[str, str]]

    @property
    def run_ids(self) -> tuple[tuple[str, str | None], ...]:
        """(profile, run id) of every tier in order; None where no run was begun."""
        return tuple((name, self.runs[name][0] if name in self.runs else None) for name in self.profiles)

    @property
    def left(self) -> tuple[tuple[str, str | None], ...]:
        """(profile, run id or None) of the tiers that are not measured to their end."""
        return tuple(
            (name, run_id)
            for name, run_id in self.run_ids
            if run_id is None or self.runs[name][1] in UNFINISHED
        )


def requests(profiles: str, overlay: str, typed: Options = Options()) -> tuple[Request, ...]:
    """One request per tier of PROFILES=a,b,c, all checked. Raises UserError; nothing has been started then.

    All have one seed, so that blocks have one order on all tiers.
    """
    names = _names(profiles)
    group = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    found: list[Request] = []
    for name in names:
        seed = found[0].seed if found else typed.seed
        request = experiment.request(overlay, replace(typed, profile=name, seed=seed))
        found.append(replace(request, group=group, profiles=names))
    return tuple(found)


def _names(profiles: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in profiles.split(","))
    known = names_in(PROFILES)
    if "" in names:
        raise UserError(
            "PROFILES",
            "must be names with single commas between them",
            seen=f'"{profiles}"',
            fix=f"Known: {', '.join(known)}.",
        )
    for name in names:
        if name not in known:
            raise unknown("PROFILES", "must be profiles in profiles/", name, known)
        if names.count(name) > 1:
            raise UserError(
                "PROFILES",
                "must name each tier once",
                seen=f'"{profiles}"',
                fix="To measure more often, raise BLOCKS.",
            )
    return names


def choose_provider(group: Sequence[Request]) -> tuple[str, str]:
    """(provider, a sentence that says which and why) for all tiers. UserError where one cannot run on it.

    Where the choice would differ between tiers it is VMs for all: system containers and VMs are two
    accelerators, whose results stand in no table together.
    """
    chosen = [provider_choice.choose(one.provider, one.variants, one.profile, one.system) for one in group]
    names = dict.fromkeys(name for name, _ in chosen)
    if len(names) == 1:
        name, first = chosen[0]
        sentences = tuple(dict.fromkeys(sentence for _, sentence in chosen))
        if registry.capabilities(name).shares_kernel:
            return name, "; ".join(sentences)  # each may say of its tier what is not applied
        return name, first if len(sentences) == 1 else f"{first}; the other tiers likewise"
    tier, (_, why) = next(
        (one.profile.name, choice)
        for one, choice in zip(group, chosen, strict=True)
        if choice[0] == registry.fallback()
    )
    return (
        registry.fallback(),
        f"{why}. So it is VMs for all tiers ({tier} decides): accelerators are never mixed",
    )


def groups(store: Store) -> list[Group]:
    """Every group of the database, the one with the newest run first."""
    with explained(store.path):
        rows = store.db.execute(
            "SELECT run_id, state, cluster, profile, arguments FROM run"
            " WHERE json_extract(arguments, '$.group') IS NOT NULL ORDER BY created_at DESC, run_id DESC"
        ).fetchall()
    found: dict[str, list[sqlite3.Row]] = {}
    for row in rows:
        found.setdefault(json.loads(row["arguments"])["group"], []).append(row)
    return [
        Group(
            group=group,
            profiles=tuple(json.loads(own[0]["arguments"])["profiles"]),
            cluster=own[0]["cluster"],
            # Newest first, so that of two runs of one tier the newer stays.
            runs={row["profile"]: (row["run_id"], row["state"]) for row in reversed(own)},
        )
        for group, own in found.items()
    ]


def group_of(store: Store, run_id: str) -> Group | None:
    """The group that a run belongs to; None where it stands alone."""
    return next((g for g in groups(store) if run_id in [own for own, _ in g.runs.values()]), None)


def find_group(store: Store, group: str) -> Group:
    """The group that was meant: its id, the id's unique beginning or end, or ``newest``. Raises UserError."""
    known = groups(store)
    if not known:
        raise UserError(
            str(store.path),
            "holds no group of tiers yet",
            fix="Measure one: ./task lab:weave PROFILES=azure-a0,azure-a1.",
        )
    if group == NEWEST:
        return known[0]
    found = [g for g in known if g.group == group]
    found = found or [g for g in known if g.group.startswith(group) or g.group.endswith(group)]
    if len(found) == 1:
        return found[0]
    raise UserError(
        "GROUP",
        "must be the id of one group of tiers, or its unique beginning or end",
        seen=f"{group}, which fits {len(found) or 'none'}",
        fix=f"There {'is' if len(known) == 1 else 'are'} {', '.join(g.group for g in known)}; "
        f"GROUP={NEWEST} is the newest.",
    )


def latest_unfinished(store: Store, cluster: str | None = None) -> str | None:
    """Id of the newest run that is unfinished, or whose group has tiers that were never begun; of that cluster alone.

    Without a cluster, one that a command uses right now is passed over where another has such a run: what is being
    measured there needs nobody to carry it on.
    """
    with explained(store.path):
        rows = store.db.execute(
            # A proof of profiles has no trials, and nothing to carry on.
            "SELECT run_id, state, cluster FROM run WHERE (?1 IS NULL OR cluster = ?1) AND trials_planned > 0"
            " ORDER BY created_at DESC, run_id DESC",
            (cluster,),
        ).fetchall()
    waiting = {run_id for group in groups(store) if group.left for run_id, _ in group.runs.values()}
    left = [row for row in rows if row["state"] in UNFINISHED or row["run_id"] in waiting]
    free = [row for row in left if not lock.is_held(row["cluster"])] if cluster is None else left
    return next((row["run_id"] for row in free or left), None)
