"""Where things lie: the checkout, the one cache folder, the results."""

import os
from dataclasses import dataclass
from pathlib import Path

from overlaylab.core.errors import UserError

# The checkout.
ROOT = Path(__file__).resolve().parents[4]

PROVISION = ROOT / "provision"
CLUSTERS = ROOT / "vagrant" / "clusters"
PROFILES = ROOT / "profiles"
SUITES = PROVISION / "suites"
DRILLS = PROVISION / "drills"
ROLES = PROVISION / "roles"
# Bytes of a file's name on Linux's file systems (NAME_MAX).
LONGEST = 255
DB = ROOT / "db"
VIEWER = ROOT / "viewer"


# Where a node has the node kit, and below it what overlays bring: programs, scripts, daemons. The second one where /opt
# cannot be written.
NODE_HOME, OTHER_NODE_HOME = "/opt/overlaylab", "/var/opt/overlaylab"


@dataclass(frozen=True)
class Place:
    """A variable that says where something lies, with its row in docs/tasks.md, in Markdown."""

    variable: str
    default: str
    meaning: str

    @property
    def typed(self) -> str | None:
        """None where nothing is typed."""
        return os.environ.get(self.variable) or None


DATABASE = Place("LAB_DB", "`results/lab.sqlite`", "the database")
CACHE = Place(
    "OVERLAYLAB_CACHE",
    "`/var/tmp/overlaylab-$USER`",
    "the cache folder; outside a home that others cannot search",
)


def cache() -> Path:
    """The cache folder: all that is installed or kept outside the checkout."""
    return Path(CACHE.typed or f"/var/tmp/overlaylab-{os.environ.get('USER') or os.getuid()}")


def typed(path: str | Path) -> Path:
    """The file that was meant: a relative path counts from the folder in which the task was typed. Raises UserError.

    Tasks run in the checkout, wherever they are typed; the front door says where that was.
    """
    caller = os.environ.get("OVERLAYLAB_CALLER")
    meant = Path(caller, path) if caller and Path.cwd() == ROOT != Path(caller) else Path(path)
    if any(len(os.fsencode(part)) > LONGEST for part in meant.parts) or len(os.fsencode(meant)) > 4000:
        raise UserError(
            "file",
            f"must have a name that the system takes: {LONGEST} bytes, 4000 with its folders",
            seen=meant.name,
            fix="Correct the path: is it a name, and not what the file holds?",
        )
    return meant


def database() -> Path:
    """The results database."""
    return typed(DATABASE.typed or ROOT / "results" / "lab.sqlite")
