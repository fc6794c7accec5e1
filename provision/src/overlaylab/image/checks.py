"""What ``./task doctor`` says of what is built or fetched once: the image, the daemons, the network that takes."""

from __future__ import annotations

from overlaylab.image import daemons, node_image
from overlaylab.machine import bundle_source, packages
from overlaylab.machine.checks import OK, Check


def all_checks() -> list[Check]:
    """Both, in their order in the table."""
    return [check_image(), check_network()]


def image_built() -> bool:
    """Whether the nodes' image is there."""
    return node_image.manifest() is not None


def check_image() -> Check:
    if image_built():
        return Check("image", OK, "built")
    return Check("image", OK, "not built yet: the first lab task builds it, or `./task image:build`")


def check_network() -> Check:
    if bundle_source.present():
        return Check("network", OK, f"never asked: the bundle {bundle_source.manifest().version} lies beside")
    needed = ["packages"] if packages.uses_apt() and packages.missing() else []
    needed += [] if image_built() else ["the image"]
    needed += [f"the daemons of {name}" for name in daemons.names() if not daemons.cached(name)]
    if needed:
        return Check("network", OK, f"needed once, for {' and '.join(needed)}; not tried here")
    return Check("network", OK, "not needed any more: packages, image and overlay daemons are there")
