"""Times how long TCP connections take to be set up, one after the other; or accepts them.

connect.py PORT               accepts and closes, until it is ended
connect.py PORT ADDRESS COUNT  prints a line of JSON for each connection: seconds since the first began, seconds
"""

import json
import socket
import sys
import time

TIMEOUT = 5


def serve(port: int) -> None:
    with socket.create_server(("", port), backlog=1024) as listener:
        while True:
            connection, _ = listener.accept()
            # The client closes first, so that its own side keeps what waits for its end.
            connection.recv(1)
            connection.close()


def connect(port: int, address: str, count: int) -> None:
    first = time.perf_counter()
    for _ in range(count):
        began = time.perf_counter()
        with socket.create_connection((address, port), timeout=TIMEOUT):
            took = time.perf_counter() - began
        print(json.dumps([round(began - first, 6), round(took, 9)]))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(int(sys.argv[1]))
    else:
        try:
            connect(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
        except OSError as wrong:
            sys.exit(f"connect: {wrong}")
