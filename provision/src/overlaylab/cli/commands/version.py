"""``lab version``: what this checkout is, for reports and for telling two of them apart."""

from __future__ import annotations

import hashlib

import click

from overlaylab.core import paths
from overlaylab.machine import checkout
from overlaylab.store import database


@click.command()
def command() -> None:
    """Say version, commit, schema of the database and toolchain. Changes nothing."""
    this = checkout.described()
    state = {True: ", changed since", False: "", None: ""}[this.changed]
    click.echo(f"overlaylab {this.version}")
    click.echo(f"commit     {this.commit or 'unknown'}{state}")
    click.echo(f"schema     {len(database.migrations())}")
    click.echo(f"toolchain  {_toolchain_key()}")


def _toolchain_key() -> str:
    """The name of its folder in the cache, as ./task makes it of the lock file."""
    lock = (paths.PROVISION / "toolchain" / "requirements.txt").read_bytes()
    return hashlib.sha256(lock).hexdigest()[:16]
