"""``resume``: carry an interrupted run on."""

from __future__ import annotations

import click

from overlaylab.cli.commands import policy
from overlaylab.cli.commands.measure import carry_out, carry_out_group
from overlaylab.core import paths
from overlaylab.core.errors import UserError
from overlaylab.live import policy_lab
from overlaylab.results import tiers
from overlaylab.run import experiment
from overlaylab.store.store import UNFINISHED, Store


@click.command()
@click.option("--run", "run_id", envvar="RUN", help="Which run (default: the newest unfinished one).")
@click.option("--cluster", envvar="CLUSTER", help="The newest unfinished run of this cluster.")
def command(run_id: str | None, cluster: str | None) -> None:
    """Complete the plan of a run that was interrupted or killed.

    Finished trials are kept and none is measured twice. Where the run is one of several tiers (PROFILES=), those
    that are unfinished or were never begun follow, and the table of all of them. Refused where profile, suite, role, image or
    machine changed since: the halves could not be compared.
    """
    with Store.open(paths.database(), create=False) as store:
        run_id = run_id or tiers.latest_unfinished(store, cluster or None)
        if run_id is None:
            raise UserError(
                str(paths.database()),
                f"must hold an unfinished run{f' of cluster {cluster}' if cluster else ''}",
                fix="Begin one with ./task lab:weave, or list what is there with ./task results:list",
            )
        stored = store.run(store.find_run(run_id))
        group = tiers.group_of(store, stored.run_id)
        rules = policy_lab.rules_of(store, stored.run_id)
    left = group.left if group else ()
    if "overlay" not in stored.record.arguments:
        raise UserError(
            f"run {stored.run_id}", "must have a plan to be carried on", seen=stored.record.suite,
            fix="A proof of profiles is begun anew: ./task bench:profiles",
        )  # fmt: skip
    if stored.state not in UNFINISHED and not left:
        raise UserError(
            f"run {stored.run_id}", "must be unfinished to be carried on", seen=stored.state,
            fix=f"Its table: ./task results:show RUN={stored.run_id}",
        )  # fmt: skip
    arguments, provider = stored.record.arguments, stored.record.provider
    if rules is not None:
        policy.carry_out(experiment.again(arguments, provider), rules, resume=stored.run_id)
        return
    if group is None:
        carry_out(experiment.again(arguments, provider), resume=stored.run_id)
        return
    todo = sorted(left, key=lambda tier: tier[1] != stored.run_id)
    carry_out_group([(experiment.again(arguments, provider, name), run) for name, run in todo])
