"""Where things lie: the checkout, the one cache folder, the results."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The checkout."""

PROVISION = ROOT / "provision"
CLUSTERS = ROOT / "vagrant" / "clusters"
PROFILES = ROOT / "profiles"
SUITES = PROVISION / "suites"
ROLES = PROVISION / "roles"
DB = ROOT / "db"
VIEWER = ROOT / "viewer"


def cache() -> Path:
    """The cache folder (OVERLAYLAB_CACHE): all that is installed or kept outside the checkout."""
    default = f"/var/tmp/overlaylab-{os.environ.get('USER') or os.getuid()}"
    return Path(os.environ.get("OVERLAYLAB_CACHE") or default)


def database() -> Path:
    """The results database: LAB_DB, else results/lab.sqlite in the checkout."""
    return Path(os.environ.get("LAB_DB") or ROOT / "results" / "lab.sqlite")
