"""Modules of others that take long to import and that few commands use."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType


def lazily(name: str) -> ModuleType:
    """The module, imported once something of it is used. Raises ModuleNotFoundError at once where there is none.

    Not for our own: an import that lint does not see is one that no layer holds.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
