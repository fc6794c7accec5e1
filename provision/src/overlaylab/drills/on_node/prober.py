"""Uses the service of the other end as its users do, again and again, and says what they felt.

``python3 -u - PEER SERVER LIMIT EVERY``, in the namespace of an endpoint: the address of the other end's endpoint, the
address that the service's name stands for, seconds that a whole fetch may take, seconds from one cycle to the next.
Prints a line of JSON for each cycle: {"t": seconds since its start, "values": {measure: value, null where nothing could
be measured}, "reasons": {measure: why it failed}}; core/measures.py says what the measures are.
Ends when nobody reads that any more; with 75 where the namespace or its resolv.conf was replaced, which this process
would not see.
"""

from __future__ import annotations

import json
import os
import select
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable

# EX_TEMPFAIL of sysexits(3): start me again.
ANEW = 75
NAME = "web.service.internal"
NAMESPACE = "/run/netns/endpoint"
# What ip-netns(8) has mounted over /etc/resolv.conf when this was started.
RESOLV_CONF = "/etc/netns/endpoint/resolv.conf"

PINGS = 4
BETWEEN_PINGS = 0.05
PING_PATIENCE = 1.0
PATIENCE = 3.0
RESOLVE_PATIENCE = 6.0
# Seconds that what comes next waits: while all is well one thing is done at a time, and nothing is slowed by another.
HEAD_START = 0.25
PORT = 80
PAGE, FILE, FILE_BYTES = "/", "/1m", 1_000_000
SLOW = "timed out"

Values = dict[str, float | None]
# Values of some measures, and why those failed that did.
Found = tuple[Values, dict[str, str]]


def why(error: OSError) -> str:
    """In a few words: ``timed out``, ``connection refused``."""
    return (error.strerror or str(error) or type(error).__name__).lower()


def echo_request(identifier: int, sequence: int) -> bytes:
    """An ICMP echo request with ping's usual 56 bytes (RFC 792)."""
    body = struct.pack("!HH", identifier, sequence) + bytes(range(56))
    words = struct.unpack(f"!{(len(body) + 4) // 2}H", b"\x08\x00\x00\x00" + body)
    total = sum(words)
    total = (total >> 16) + (total & 0xFFFF)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    return b"\x08\x00" + struct.pack("!H", checksum) + body


def echo_reply(packet: bytes, source: str, peer: str, identifier: int) -> int | None:
    """The sequence number, where this IPv4 packet is the peer's reply to a request of ours."""
    header = 4 * (packet[0] & 0x0F) if packet else 0
    if source != peer or len(packet) < header + 8 or packet[header] != 0:
        return None
    theirs, sequence = struct.unpack_from("!HH", packet, header + 4)
    return sequence if theirs == identifier else None


def ping(peer: str) -> Found:
    sent: dict[int, float] = {}
    found: dict[int, float] = {}
    reason = "no answer"
    identifier = int.from_bytes(os.urandom(2), "big")
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
        for sequence in range(PINGS):
            sent[sequence] = time.monotonic()
            try:
                raw.sendto(echo_request(identifier, sequence), (peer, 0))
            except OSError as error:  # no route, say
                reason = why(error)
            last = sequence == PINGS - 1
            until = sent[sequence] + (PING_PATIENCE if last else BETWEEN_PINGS)
            while (left := until - time.monotonic()) > 0 and not (last and len(found) == PINGS):
                if not select.select([raw], [], [], left)[0]:
                    break
                packet, (source, _) = raw.recvfrom(2048)
                answered = echo_reply(packet, source, peer, identifier)
                if answered in sent and answered not in found:
                    found[answered] = time.monotonic() - sent[answered]
    times = list(found.values())
    reasons = {} if len(times) == PINGS else {"answered": reason}
    if not times:
        reasons["rtt"] = reason
    return {"answered": len(times) / PINGS, "rtt": statistics.median(times) if times else None}, reasons


def connect(peer: str) -> Found:
    began = time.monotonic()
    try:
        with socket.create_connection((peer, PORT), PATIENCE):
            return {"connected": 1, "connect": time.monotonic() - began}, {}
    except OSError as error:
        return missed("connected", "connect", why(error))


def missed(measure: str, time_of_it: str | None, reason: str) -> Found:
    """It failed, and so there is no time that it took."""
    if time_of_it is None:
        return {measure: 0}, {measure: reason}
    return {measure: 0, time_of_it: None}, {measure: reason, time_of_it: reason}


def get(peer: str, path: str, limit: float) -> tuple[str | None, int, float]:
    """Why not the whole of it came (None: it did), the bytes that came, the seconds. limit: in s, for all of it."""
    began = time.monotonic()
    head, body, wanted = b"", 0, None

    def left() -> float:
        return max(began + limit - time.monotonic(), 0.001)

    reason = None
    try:
        with socket.create_connection((peer, PORT), left()) as connection:
            connection.settimeout(left())
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {NAME}\r\n\r\n".encode())
            while time.monotonic() < began + limit and (wanted is None or body < wanted):
                connection.settimeout(left())
                part = connection.recv(65536)
                if not part:
                    break
                if wanted is not None:
                    body += len(part)
                    continue
                head += part
                if b"\r\n\r\n" in head:
                    head, _, rest = head.partition(b"\r\n\r\n")
                    wanted, body = length(head), len(rest)
    except TimeoutError:
        reason = SLOW
    except OSError as error:
        reason = why(error)
    except ValueError as error:
        reason = str(error)
    took = time.monotonic() - began
    if wanted is not None and body >= wanted:
        return None, body, took
    if reason is None:
        reason = SLOW if took >= limit else "closed before its end"
    return f"{reason} after {body} bytes" if body else reason, body, took


def length(head: bytes) -> int:
    """Bytes of the body that this head of an answer promises. ValueError unless it answers with 200."""
    status, *lines = head.decode("latin-1").split("\r\n")
    if status.split()[1:2] != ["200"]:
        raise ValueError(status)
    fields = {name.strip().lower(): value for name, _, value in (line.partition(":") for line in lines)}
    return int(fields["content-length"])


def page(peer: str) -> Found:
    reason, _, _ = get(peer, PAGE, PATIENCE)
    return ({"page": 1}, {}) if reason is None else missed("page", None, reason)


def fetch(peer: str, limit: float) -> Found:
    reason, came, took = get(peer, FILE, limit)
    if reason is None and came != FILE_BYTES:
        reason = f"it has {came} bytes"
    if reason is None:
        return {"fetched": 1, "goodput": came * 8 / took}, {}
    # Where it was cut off or refused, the user had waited for the limit.
    return {"fetched": 0, "goodput": came * 8 / max(took, limit)}, {"fetched": reason, "goodput": reason}


def resolve(server: str) -> Found:
    began = time.monotonic()
    try:
        found = socket.getaddrinfo(NAME, PORT, type=socket.SOCK_STREAM)
    except OSError as error:
        return missed("resolved", "resolve", why(error))
    took = time.monotonic() - began
    addresses = {str(address[0]) for *_, address in found}
    if took > RESOLVE_PATIENCE:
        return missed("resolved", "resolve", SLOW)
    if server not in addresses:
        return missed("resolved", "resolve", f"it has the address {', '.join(sorted(addresses))}")
    return {"resolved": 1, "resolve": took}, {}


class Task(threading.Thread):
    """One look in the background; what it has not found when its time is over is what `missed` says."""

    def __init__(self, look: Callable[[], Found], missed: Found, patience: float) -> None:
        super().__init__(daemon=True)
        self.look, self.missed = look, missed
        self.until = time.monotonic() + patience
        self.found: Found | None = None
        self.start()
        self.join(HEAD_START)

    def run(self) -> None:
        self.found = self.look()

    def result(self) -> Found:
        self.join(max(0.0, self.until - time.monotonic()))
        return self.missed if self.found is None else self.found


def cycle(peer: str, server: str, limit: float) -> Found:
    pinged = ping(peer)
    # getaddrinfo(3) has no limit of its own.
    name = Task(lambda: resolve(server), missed("resolved", "resolve", SLOW), RESOLVE_PATIENCE)
    connected = Task(lambda: connect(peer), missed("connected", "connect", SLOW), PATIENCE + 1)
    first = Task(lambda: page(peer), missed("page", None, SLOW), PATIENCE + 1)
    values: Values = {}
    reasons: dict[str, str] = {}
    for found, failed in (pinged, connected.result(), first.result(), fetch(peer, limit), name.result()):
        values |= found
        reasons |= failed
    return values, reasons


def seen() -> object:
    """What tells that the namespace is this process's own, and its resolv.conf the one that it sees."""
    try:
        conf = os.stat(RESOLV_CONF)
        what = (conf.st_ino, conf.st_mtime_ns)
    except OSError:
        what = None
    try:
        return what, os.stat(NAMESPACE).st_ino
    except OSError:
        return what, None


def main(peer: str, server: str, limit: float, every: float) -> int:
    began_with, start = seen(), time.monotonic()
    while True:
        began = time.monotonic()
        values, reasons = cycle(peer, server, limit)
        if seen() != began_with:
            return ANEW
        try:
            print(
                json.dumps({"t": time.monotonic() - start, "values": values, "reasons": reasons}), flush=True
            )
        except BrokenPipeError:
            # Else Python complains when it closes the pipe at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        time.sleep(max(0.0, began + every - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
