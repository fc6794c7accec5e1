"""Quantities as people write them, ``100 Mbit/s`` or ``0.966 ms``, in base units.

There is one spelling per unit. What could be read in two ways (``100 Mb``, ``5m``, a bare number) is refused.
"""

from __future__ import annotations

import re
from decimal import Decimal

# Base unit -> spelling -> factor. Decimal prefixes are powers of 1000, binary ones (KiB) of 1024.
UNITS: dict[str, dict[str, Decimal]] = {
    "bit/s": {
        "bit/s": Decimal(1),
        "kbit/s": Decimal(10**3),
        "Mbit/s": Decimal(10**6),
        "Gbit/s": Decimal(10**9),
    },
    "s": {"s": Decimal(1), "ms": Decimal("1e-3"), "µs": Decimal("1e-6"), "us": Decimal("1e-6")},
    "bytes": {
        "bytes": Decimal(1),
        **{f"{p}B": Decimal(1000**n) for n, p in enumerate("kMG", 1)},
        **{f"{p}iB": Decimal(1024**n) for n, p in enumerate("KMG", 1)},
    },
}

# Base unit -> what a quantity may be at most, and why.
LARGEST: dict[str, tuple[Decimal, str]] = {
    "bit/s": (Decimal(10**12), "1000 Gbit/s: no link of a node is faster"),
    "s": (Decimal(3600), "3600 s: nothing here lasts an hour"),
    "bytes": (Decimal(10**12), "1000 GB: no node holds more"),
}

_FORM = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) (\S+)")


class QuantityError(ValueError):
    """The text is no quantity of that unit; str() is the rule in words."""


def quantity(text: object, unit: str) -> float:
    """``quantity("0.966 ms", "s")`` is 0.000966. Raises QuantityError."""
    spellings = UNITS[unit]
    form = _FORM.fullmatch(text) if isinstance(text, str) else None
    factor = spellings.get(form[2]) if form else None
    if form is None or factor is None:
        raise QuantityError(f"must be a number, a blank and a unit out of {', '.join(spellings)}")
    # Decimal, because 0.966 * 0.001 is not 0.000966 in binary and the value goes into a digest and a table.
    value = Decimal(form[1]) * factor
    largest, why = LARGEST[unit]
    if value > largest:
        raise QuantityError(f"must be at most {why}")
    if unit == "bytes" and value % 1:
        raise QuantityError("must be a whole number of bytes")
    return float(value)


_PERCENT = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?%")


def percent(text: str) -> float:
    """``percent("2%")`` is 0.02; a blank may stand before the sign. Raises QuantityError."""
    form = _PERCENT.fullmatch(text.strip())
    if form is None:
        raise QuantityError("must be a number and a percent sign, such as 2%")
    return float(Decimal(form[1]) / 100)


def readable(value: float, unit: str) -> str:
    """A quantity as people write it: ``readable(0.000966, "s")`` is ``0.966 ms``. `quantity` reads it back.

    The three spellings that people compare tiers in: Mbit/s from 1 Mbit/s on, ms below 1 s, bytes below 1 MB.
    """
    spelling = {
        "bit/s": "Mbit/s" if value >= 1e6 else "bit/s",
        "s": "ms" if value < 1 else "s",
        "bytes": "GB" if value >= 1e9 else "MB" if value >= 1e6 else "bytes",
    }[unit]
    return f"{value / float(UNITS[unit][spelling]):.6g} {spelling}"
