"""The prober: against a server of this process, and in a namespace of its own as it runs on nodes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab_builders import Namespace, namespace

from overlaylab.core.measures import OF_CYCLE
from overlaylab.drills.judge import Cycle
from overlaylab.drills.on_node import prober

PROBER = Path(prober.__file__)
LOCAL = "127.0.0.1"
Answer = Callable[[socket.socket], None]


@pytest.fixture
def server(monkeypatch) -> Iterator[list[Answer]]:
    """A server on loopback that answers with the last of the list; the prober's port is its own."""
    answers: list[Answer] = []
    with socket.create_server((LOCAL, 0)) as listener:
        monkeypatch.setattr(prober, "PORT", listener.getsockname()[1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    answers[-1](connection)

        threading.Thread(target=serve, daemon=True).start()
        yield answers
        listener.shutdown(socket.SHUT_RDWR)


def says(status: str, length: int, body: bytes, silent: float = 0) -> Answer:
    def answer(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n".encode() + body)
        time.sleep(silent)

    return answer


def test_a_page_that_came_whole(server) -> None:
    server.append(says("200 OK", 5, b"hello"))
    assert prober.page(LOCAL) == ({"page": 1}, {})
    assert prober.connect(LOCAL)[0]["connected"] == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (says("404 Not Found", 5, b"hello"), "HTTP/1.1 404 Not Found"),
        (says("200 OK", 9, b"hello"), "closed before its end after 5 bytes"),
        (lambda connection: None, "closed before its end"),
    ],
)
def test_why_a_page_did_not(server, answer, reason) -> None:
    server.append(answer)
    assert prober.page(LOCAL) == ({"page": 0}, {"page": reason})


def test_a_fetch_is_bytes_over_the_time_it_took(server) -> None:
    server.append(says("200 OK", prober.FILE_BYTES, bytes(prober.FILE_BYTES)))
    values, reasons = prober.fetch(LOCAL, 5)
    assert (values["fetched"], reasons) == (1, {})
    assert values["goodput"] > 8e6 / 5


def test_a_fetch_that_hangs_is_what_came_over_the_limit(server) -> None:
    server.append(says("200 OK", prober.FILE_BYTES, bytes(1000), silent=2))
    values, reasons = prober.fetch(LOCAL, 0.3)
    assert values["fetched"] == 0
    assert values["goodput"] == pytest.approx(1000 * 8 / 0.3, rel=0.2)
    assert reasons == dict.fromkeys(("fetched", "goodput"), "timed out after 1000 bytes")


def test_another_file_is_not_the_one(server) -> None:
    server.append(says("200 OK", 3, b"abc"))
    assert prober.fetch(LOCAL, 1)[1]["fetched"] == "it has 3 bytes"


def test_nobody_listens(monkeypatch) -> None:
    with socket.create_server((LOCAL, 0)) as listener:
        monkeypatch.setattr(prober, "PORT", listener.getsockname()[1])
    assert prober.connect(LOCAL) == (
        {"connected": 0, "connect": None},
        dict.fromkeys(("connected", "connect"), "connection refused"),
    )
    assert prober.fetch(LOCAL, 3)[0] == {"fetched": 0, "goodput": 0.0}


def test_a_name_with_another_address_is_not_resolved(monkeypatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.9", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert prober.resolve("10.0.0.9")[0]["resolved"] == 1
    values, reasons = prober.resolve("10.0.0.2")
    assert (values["resolved"], values["resolve"]) == (0, None)
    assert reasons["resolved"] == "it has the address 10.0.0.9"


def test_what_takes_too_long_is_given_up() -> None:
    missed = prober.missed("resolved", "resolve", "timed out")
    task = prober.Task(lambda: time.sleep(5) or ({}, {}), missed, 0.3)
    assert task.result() == missed


# -- ICMP -------------------------------------------------------------------------------------------


def test_a_request_has_the_checksum_of_the_rfc() -> None:
    request = prober.echo_request(0x1234, 3)
    assert len(request) == 64 and request[:2] == b"\x08\x00"
    words = (int.from_bytes(request[at : at + 2], "big") for at in range(0, 64, 2))
    total = sum(words)
    assert (total & 0xFFFF) + (total >> 16) == 0xFFFF  # RFC 1071


@pytest.mark.parametrize(
    ("source", "identifier", "sequence"),
    [("10.0.0.2", 7, 2), ("10.0.0.3", 7, None), ("10.0.0.2", 8, None)],
)
def test_only_the_peers_reply_to_us_counts(source, identifier, sequence) -> None:
    reply = b"\x45" + bytes(19) + b"\x00\x00\x00\x00" + b"\x00\x07\x00\x02" + bytes(56)
    assert prober.echo_reply(reply, source, "10.0.0.2", identifier) == sequence
    assert prober.echo_reply(b"\x45" + bytes(19) + b"\x08" + reply[21:], source, source, 7) is None
    assert prober.echo_reply(b"", source, source, 7) is None


# -- cycle after cycle ------------------------------------------------------------------------------


def test_it_starts_anew_where_its_resolv_conf_was_replaced(monkeypatch, tmp_path, capsys) -> None:
    conf = tmp_path / "resolv.conf"
    conf.write_text("nameserver 10.0.0.2\n")
    monkeypatch.setattr(prober, "RESOLV_CONF", str(conf))
    looks = []

    def cycle(*_: object) -> prober.Found:
        looks.append(1)
        if len(looks) == 3:
            conf.unlink()
        return dict.fromkeys(OF_CYCLE, 1), {}

    monkeypatch.setattr(prober, "cycle", cycle)
    assert prober.main("a", "b", 3, 0) == prober.ANEW
    lines = capsys.readouterr().out.splitlines()
    assert [Cycle.parse(line).values["page"] for line in lines] == [1, 1]


SERVE = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = bytes(1000000 if self.path == "/1m" else 10)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 80), Handler).serve_forever()
"""


@pytest.fixture
def node(tmp_path) -> Iterator[Namespace]:
    """A namespace with a server and a name for it; `lab_builders.namespace` has it skipped without root."""
    (tmp_path / "hosts").write_text("127.0.0.1 web.service.internal\n")
    (tmp_path / "serve.py").write_text(SERVE)
    for made in namespace():
        made.sh(
            f"mount --bind {tmp_path}/hosts /etc/hosts; {sys.executable} {tmp_path}/serve.py >/dev/null 2>&1 &"
        )
        made.sh("until ss -Hltn 'sport = :80' | grep -q .; do sleep 0.1; done")
        yield made


def start(node: Namespace, peer: str) -> subprocess.Popen[str]:
    """The prober as it is started on nodes."""
    return node.start([sys.executable, "-u", "-", peer, LOCAL, "3", "0.1"], stdin=PROBER.read_text())


def test_all_is_felt_in_a_namespace_until_nobody_reads_it(node) -> None:
    started = start(node, LOCAL)
    first, second = (Cycle.parse(started.stdout.readline()) for _ in range(2))
    started.stdout.close()
    assert started.wait(timeout=20) == 0
    assert second.t > first.t
    assert second.reasons == {}
    assert {name for name, value in second.values.items() if value == 1} == {
        "answered", "connected", "page", "fetched", "resolved",
    }  # fmt: skip
    assert all(second.values[name] > 0 for name in ("rtt", "connect", "goodput", "resolve"))


def test_what_is_gone_is_felt_and_nothing_of_it_is_a_number(node) -> None:
    node.sh("ip route add unreachable 203.0.113.1")
    started = start(node, "203.0.113.1")
    gone = Cycle.parse(started.stdout.readline())
    started.kill()
    started.wait()
    assert (gone.values["answered"], gone.values["rtt"], gone.values["connect"]) == (0, None, None)
    assert (gone.values["connected"], gone.values["fetched"], gone.values["goodput"]) == (0, 0, 0)
    assert gone.reasons["answered"] == gone.reasons["connect"] == "no route to host"
    assert gone.values["resolved"] == 1
