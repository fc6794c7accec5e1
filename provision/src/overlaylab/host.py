"""The host, the machine that runs the nodes: making it ready, and what it is and can do.

Lab tasks call ``ensure()`` first. It costs a quarter of a second when all is in place, changes nothing then
and never touches the network.
"""

from __future__ import annotations

from overlaylab import host_access, host_packages, host_services
from overlaylab.host_services import stop_services

__all__ = ["ensure", "stop_services"]


def ensure() -> None:
    """Make this machine able to run the libvirt lab: packages, groups, cache folder, libvirt.

    Call it before anything else in a command: where a group was joined since the login, it starts the command
    again inside that group (and does not return). Raises UserError for what it cannot put right.
    """
    host_access.prepare_cache()
    with host_access.setup_lock():
        missing = host_packages.missing()
        if missing:
            host_packages.install(missing)
        host_access.join_groups()
    host_access.enter_groups()
    with host_access.setup_lock():
        host_services.ensure_running()
