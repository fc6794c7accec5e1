"""Keeps the token bucket of a node whose tier has two rates.

``python3 bucket.py DEVICE FOLDER CAPACITY RATE SUSTAINED``: bytes, and bit/s of what HTB counts. While the bucket
holds bytes, the node may send at RATE; while it is empty, at SUSTAINED, at which it also fills again. The kernel's
own buckets end at 4 GB and 274 s of their rate (tc-tbf(8): 32 bits of 64 ns); a tier's hold minutes of its rate.
FOLDER holds `full` and `empty`, the tc batches of the two rates, and gets `bucket` (what `state` gives, as JSON)
and `bucket.pid`. SIGUSR1 fills the bucket.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

# Seconds between two looks at least: what is sent in that time beyond the bucket is taken off the next bytes.
SHORTEST = 0.02
LONGEST = 5.0
# Seconds at the rate that must have come together before an empty bucket lets traffic burst again.
AGAIN = 0.1


class Bucket:
    """capacity, level: bytes; rate, sustained: bytes/s. The level falls below zero by what a late look cost.

    lead: seconds that a look took last, and that changing the rate will take: it begins so much earlier.
    """

    def __init__(self, capacity: float, rate: float, sustained: float, lead: float = 0.0) -> None:
        self.capacity, self.rate, self.sustained = capacity, rate, sustained
        self.again = min(rate * AGAIN, capacity / 10)
        self.lead = lead
        self.level = capacity
        self.empty = False

    def account(self, seconds: float, sent: float) -> None:
        """Let `seconds` pass in which `sent` bytes left the node."""
        self.level = min(self.capacity, self.level + self.sustained * seconds - sent)
        # What will still go out, at the rate of the moment, before the change is in force.
        still = self.lead * max(0.0, sent / seconds - self.sustained) if seconds else 0.0
        self.empty = self.level < self.again if self.empty else self.level <= still

    def pause(self) -> float:
        """Seconds until the next look: the bucket cannot be empty, or fill enough, any sooner."""
        if self.empty:
            soonest = (self.again - self.level) / self.sustained
        else:
            soonest = self.level / (self.rate - self.sustained) - 2 * self.lead
        return min(max(soonest, SHORTEST), LONGEST)


def counted(device: str) -> int:
    """Bytes that the device's root qdisc has sent."""
    printed = subprocess.run(
        ["tc", "-s", "qdisc", "show", "dev", device],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    found = re.search(r"^qdisc htb 1: .*?\n Sent (\d+) bytes", printed, re.MULTILINE | re.DOTALL)
    if found is None:
        raise LookupError(f"{device} has no HTB any more")
    return int(found.group(1))


def state(bucket: Bucket, since: float, sent: int, resets: int) -> dict[str, object]:
    """`at`: seconds of the clock of /proc/uptime; `bytes`: the qdisc's counter then."""
    return {
        "level": bucket.level,
        "capacity": bucket.capacity,
        "sustained": bucket.sustained * 8,
        "empty": bucket.empty,
        "at": since,
        "bytes": sent,
        "resets": resets,
    }


def main(device: str, folder: str, capacity: str, rate: str, sustained: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    # It is needed most when the CPU is full of the traffic that it looks at.
    with contextlib.suppress(PermissionError):  # of root in a container, say
        os.nice(-20)
    bucket = Bucket(float(capacity), float(rate) / 8, float(sustained) / 8)
    now, sent, resets = time.clock_gettime(time.CLOCK_BOOTTIME), counted(device), 0

    def write(name: str, text: str) -> None:
        with open(os.path.join(folder, name + ".new"), "w") as file:
            file.write(text)
        os.replace(os.path.join(folder, name + ".new"), os.path.join(folder, name))

    write("bucket.pid", f"{os.getpid()}\n")
    while True:
        write("bucket", json.dumps(state(bucket, now, sent, resets)) + "\n")
        asked = signal.sigtimedwait({signal.SIGUSR1}, bucket.pause())
        before, last, was_empty = now, sent, bucket.empty
        now, sent = time.clock_gettime(time.CLOCK_BOOTTIME), counted(device)
        bucket.lead = time.clock_gettime(time.CLOCK_BOOTTIME) - now
        bucket.account(now - before, sent - last)
        if asked:
            resets += 1
            bucket = Bucket(bucket.capacity, bucket.rate, bucket.sustained, bucket.lead)
        if bucket.empty != was_empty:
            batch = os.path.join(folder, "empty" if bucket.empty else "full")
            subprocess.run(["tc", "-batch", batch], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
