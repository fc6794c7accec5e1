"""Tests on real nodes: cluster pair as VMs and, where this machine's kernel has what that takes, as system
containers; and a database of each test's own."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab_turns import PASSED_OVER, pass_over

from overlaylab.core import lock, paths
from overlaylab.core.model import Variant
from overlaylab.providers import Provider, registry, requirements
from overlaylab.specs.profile import load_profile

# 5 Mbit/s: little enough for an emulated CPU that is also busy with something else.
TIER = "azure-a0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    pass_over(items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in PASSED_OVER:
        terminalreporter.write_line(f"passed over: {line}")


class Lab:
    """The command line as a user types it, and the database that it writes."""

    def __init__(self, database: Path, **environment: str) -> None:
        self.database = database
        self.environment = (
            os.environ | {"LAB_DB": str(database), "PROFILE": TIER, "NO_COLOR": "1"} | environment
        )
        for name in (
            "MODES",
            "BLOCKS",
            "SCALE",
            "INVENTORY",
            "DRY_RUN",
            "RUN",
            "SUITE",
            "CLUSTER",
            "FRESH",
            "PROVIDER",
            "DRILL",
            "OVERLAY",
            "SAMPLE",
            "PROFILES",
            "OVERLAYS",
        ):
            if name not in environment:
                self.environment.pop(name, None)

    def start(self, *words: str) -> subprocess.Popen:
        """Start ./task WORDS in a process group of its own."""
        self.process = subprocess.Popen(
            [str(paths.ROOT / "task"), *words], env=self.environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return self.process

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen]:
        """./task WORDS while the block runs; killed at its end where it still runs."""
        process = self.start(*words)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            print(process.communicate()[0])

    def run(self, *words: str, code: int = 0, seconds: float = 900) -> str:
        """Run ./task WORDS to its end, which must be `code`; returns what it printed."""
        process = self.start(*words)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        except KeyboardInterrupt:
            # In a group of its own, it hears nothing of the terminal's.
            os.killpg(process.pid, signal.SIGINT)
            process.communicate()
            raise
        print(output)
        assert process.returncode == code, output
        return output

    def query(self, sql: str, *arguments: object) -> list[tuple]:
        """Rows of a SQL statement over the database."""
        # Closed at once: a reader that stays keeps the file from becoming plain again.
        with closing(sqlite3.connect(self.database)) as db:
            return db.execute(sql, arguments).fetchall()

    def wait_for_trials(self, count: int, seconds: float = 300) -> None:
        """Wait until that many trials of the command that was started last are finished."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                (found,) = self.query("SELECT count(*) FROM trial WHERE status IN ('ok', 'failed', 'void')")[
                    0
                ]
            except sqlite3.OperationalError:
                found = 0
            if found >= count:
                return
            if self.process.poll() is not None:
                pytest.fail(f"the command ended after {found} trials, with {self.process.returncode}")
            time.sleep(0.2)
        pytest.fail(f"no {count} finished trials within {seconds} s")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "lab.sqlite")


@pytest.fixture(scope="session")
def lab_in(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Lab]:
    """lab_in(NAME=value, …): a Lab with these variables and a database of its own."""
    return lambda **environment: Lab(tmp_path_factory.mktemp("lab") / "lab.sqlite", **environment)


class Cluster:
    """The nodes of cluster pair, driven from within a test."""

    def __init__(self, provider: str) -> None:
        # Containers have their vCPUs for life: those that `lab:host` gives them under TIER.
        self.provider = registry.make(
            provider, "pair", print, underlay_mtu=1500, vcpus=load_profile(TIER).vcpus
        )
        self.inventory = self.provider.folder / "inventory.yml"

    def do(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Run `work(provider)` while holding the cluster's lock."""

        async def main() -> Any:
            try:
                return await work(self.provider)
            finally:
                if self.inventory.exists():
                    self.provider.nodes.drop()

        with lock.cluster_lock("pair", "a test"):
            return asyncio.run(main())

    def clean(self) -> None:
        """Nodes in their clean state, made if need be."""

        async def work(provider: Any) -> None:
            await provider.prepare([], print)
            if provider.capabilities.snapshots:
                await provider.revert(provider.clean_snapshot())
            else:
                await provider.clean()
            # A node that has just booted is still asking whether its IPv6 addresses are its own.
            await provider.nodes.sh('until [ -z "$(ip -6 address show tentative)" ]; do sleep 0.1; done')

        self.do(work)

    def sh(self, script: str, **options) -> dict[str, str]:
        """What a script prints on each node."""

        async def work(provider: Provider) -> dict[str, str]:
            await provider.nodes.connect()
            return {name: done.stdout for name, done in (await provider.nodes.sh(script, **options)).items()}

        return self.do(work)

    def converge(self, *variants: Variant) -> None:
        """These variants prepared, and the nodes in the last one's state."""

        async def work(provider: Provider) -> None:
            await provider.prepare(variants, print)
            await provider.enter(variants[-1])

        self.do(work)


@pytest.fixture(scope="session")
def nodes() -> Cluster:
    """The nodes as VMs."""
    return Cluster("libvirt")


def why_no_containers() -> str | None:
    """Why the host network cannot be measured in system containers here; None where it can."""
    return requirements.verdict(Variant("host"), load_profile(TIER), "lxc").reason


@pytest.fixture(scope="session")
def containers() -> Cluster:
    """The nodes as system containers."""
    reason = why_no_containers()
    if reason:
        pytest.skip(f"this machine's kernel {reason}")
    return Cluster("lxc")


@pytest.fixture(scope="session")
def quickest() -> dict[str, str]:
    """Variables for what is the same on every provider: containers answer in seconds, VMs in minutes."""
    return {"PROVIDER": "libvirt" if why_no_containers() else "lxc"}
