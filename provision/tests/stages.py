"""All tests, one stage after the other, and how long each took: what ./task test runs."""

from __future__ import annotations

import subprocess
import sys
import time

# Tasks; what is quick and finds most stands first.
STAGES = ("test:lint", "test:unit", "test:viewer", "test:lab")


def main() -> int:
    """Run them until one fails; its exit code, else 0."""
    took: dict[str, float] = {}
    code = 0
    for stage in STAGES:
        started = time.monotonic()
        code = subprocess.run(["task", "--exit-code", stage], check=False).returncode
        took[stage] = time.monotonic() - started
        if code:
            break
    print(table(took, code), flush=True)
    return code


def table(took: dict[str, float], code: int) -> str:
    """A line a stage, with its time in minutes and seconds."""
    lines = [
        f"{stage:<12} {seconds // 60:3.0f} min {seconds % 60:02.0f} s" for stage, seconds in took.items()
    ]
    if code:
        lines[-1] += f"  failed, exit code {code}"
    lines += [f"{stage:<12} not run" for stage in STAGES if stage not in took]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
