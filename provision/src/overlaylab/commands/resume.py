"""``resume``: carry an interrupted run on."""

from __future__ import annotations

import click

from overlaylab import experiment, paths
from overlaylab.commands.measure import carry_out
from overlaylab.errors import UserError
from overlaylab.store import UNFINISHED, Store


@click.command()
@click.option(
    "--run", "run_id", envvar="RUN", help="Which run (default: the newest unfinished one of the cluster)."
)
@click.option("--cluster", envvar="CLUSTER", default="pair", show_default=True, help="Cluster of VMs.")
def command(run_id: str | None, cluster: str) -> None:
    """Complete the plan of a run that was interrupted or killed.

    Finished trials are kept and none is measured twice. Refused where profile, suite, role, image or
    machine changed since: the halves could not be compared.
    """
    with Store.open(paths.database(), create=False) as store:
        run_id = run_id or store.latest_unfinished(cluster)
        if run_id is None:
            raise UserError(
                str(paths.database()),
                f"must hold an unfinished run of cluster {cluster}",
                fix="Begin one with ./task lab:weave, or list what is there with ./task results:list",
            )
        stored = store.run(store.find_run(run_id))
        if stored.state not in UNFINISHED:
            raise UserError(
                f"run {stored.run_id}", "must be unfinished to be carried on", seen=stored.state,
                fix=f"Its table: ./task results:show RUN={stored.run_id}",
            )  # fmt: skip
    arguments = dict(stored.record.arguments)
    asked = experiment.request(
        arguments["overlay"],
        modes=arguments["modes"],
        arguments=arguments["arguments"],
        cluster=arguments["cluster"],
        provider=None if arguments["inventory"] else stored.record.provider,
        inventory=arguments["inventory"],
        profile_name=arguments["profile"],
        suite=arguments["suite"],
        blocks=arguments["blocks"],
        scale=arguments["scale"],
        seed=arguments["seed"],
    )
    carry_out(asked, resume=stored.run_id)
