"""Docker Engine on this node, for the overlays that rest on it. For overlay-start and overlay-status.

A daemon of our own, with folders of its own, so that a reset can take away all that it made. It is asked over its
socket: what is secret (a swarm's join token) is in no argument of a command. Only the standard library.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys

FOLDER = "/run/overlaylab/docker"
SOCKET = f"{FOLDER}/docker.sock"
DATA = "/var/lib/overlaylab/docker"
"""On disk: a swarm's manager reserves 128 MB for its log, which /run has not."""
SETTINGS = "/run/overlaylab/overlay/settings"
CONTAINER = f"{FOLDER}/container.json"
"""Who the endpoint's container is, for overlay-reset; the second one's note has a 2 behind its name."""
FORWARD = f"{FOLDER}/forward.before"
"""The policy for forwarded packets as it was: dockerd makes it DROP."""
UNIT = "overlaylab-docker.service"
IMAGE = "overlaylab/endpoint:1"
NAME, SECOND = "endpoint", "endpoint2"
COMMAND = ["/bin/sleep", "infinity"]
API = "v1.41"
"""That of Docker 20.10."""
KIT = "/opt/overlaylab"
RESET = "/opt/overlaylab/overlay/overlay-reset"

SYSCTLS = ("net/ipv4/ip_forward", "net/ipv4/conf/*/forwarding", "net/ipv4/conf/*/accept_redirects",
           "net/ipv4/neigh/default/gc_thresh[123]")  # fmt: skip
"""dockerd switches forwarding on, and with it the kernel changes every device's; its overlay driver makes room for more
neighbours (libnetwork drivers/overlay/ostweaks_linux.go)."""


class Refused(Exception):
    """The daemon's own words on why it did not do what it was asked for."""


class Silent(Exception):
    """The daemon does not answer."""


def fail(problem, *, said=True):
    """End with what went wrong, and with what the daemon said last where that has to do with it."""
    print(f"overlay-start: {problem}", file=sys.stderr)
    sys.stderr.flush()
    if said:
        journal = ("journalctl", "--no-pager", "--quiet", "--unit", UNIT, "--lines", "2", "--output", "cat")
        subprocess.run(journal, stdout=sys.stderr, check=False)
    sys.exit(1)


def settings():
    """{name: value} of the settings, which shells read too: a line NAME="value" each."""
    with open(SETTINGS) as file:
        pairs = (line.rstrip("\n").partition("=") for line in file if line[:1].isalpha())
        return {name: value.strip('"') for name, _, value in pairs}


def call(method, path, body=None, *, kind="application/json", timeout=120):
    """Ask the daemon. body: what becomes JSON, or bytes of another kind. Raises Refused and Silent."""
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    # HTTP/1.0: the answer is whole when the connection ends, and comes in no chunks.
    head = (
        f"{method} /{API}{path} HTTP/1.0\r\nHost: docker\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(SOCKET)
            connection.sendall(head.encode() + content)
            answer = b""
            while part := connection.recv(65536):
                answer += part
    except OSError as wrong:
        raise Silent(f"dockerd does not answer on {SOCKET}: {wrong}") from None
    return read_answer(answer)


def read_answer(answer):
    """What an HTTP answer holds: JSON, else its text, None where it is empty. Raises Refused with Docker's message."""
    head, _, content = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[1].isdigit():
        raise Silent(f"dockerd ended the connection after {len(answer)} bytes")
    text = content.decode(errors="replace").strip()
    if int(words[1]) >= 400:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            text = json.loads(text)["message"]
        raise Refused(text or f"HTTP status {int(words[1])}")
    for part in (text, text[text.rfind("\n") + 1 :]):
        # Progress is told as several documents in a row; only the last counts.
        try:
            return json.loads(part) if part else None
        except ValueError:
            pass
    return text


def note(name):
    return CONTAINER if name == NAME else f"{CONTAINER}2"


def read_container(name=NAME):
    """{"id", "pid", "address"} of an endpoint's container as it was started, None where there is none."""
    try:
        with open(note(name)) as file:
            return json.load(file)
    except (FileNotFoundError, ValueError):
        return None


def runs(container):
    """Whether that very process lives: numbers of processes come again, a container's control group does not."""
    if container is None:
        return False
    try:
        with open(f"/proc/{container['pid']}/cgroup") as file:
            return container["id"] in file.read()
    except OSError:
        return False


def endpoint_runs(name=NAME):
    """Whether daemon, container and endpoint are there, the endpoint being the container's network."""
    container = read_container(name)
    if not runs(container):
        return False
    try:
        same = os.stat(f"/run/netns/{name}").st_ino == os.stat(f"/proc/{container['pid']}/ns/net").st_ino
        call("GET", "/_ping", timeout=10)
    except (OSError, Silent, Refused, ValueError):
        return False
    return same


def start(options):
    """Start the daemon. options: of its configuration file, on top of its own defaults.

    What an earlier one left is taken away first: also on disk, from before the node was booted.
    """
    if os.path.exists(FOLDER) or os.path.exists(DATA):
        subprocess.run([RESET], check=True)
    theirs = [path for path in ("/sys/class/net/docker0", "/run/docker.pid") if os.path.exists(path)]
    if theirs:
        fail(
            f"Docker runs on this node already ({theirs[0]} exists), and two would undo each other's rules: "
            "stop it with `systemctl stop docker.socket docker` and delete docker0",
            said=False,
        )
    record()
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    os.makedirs(DATA, mode=0o710, exist_ok=True)
    own = {
        "hosts": [f"unix://{SOCKET}"],
        "data-root": DATA,
        "exec-root": f"{FOLDER}/exec",
        "pidfile": f"{FOLDER}/dockerd.pid",
        "log-level": "warn",
    }
    with open(f"{FOLDER}/daemon.json", "w") as file:
        json.dump(own | options, file)
    if subprocess.run(["systemctl", "start", UNIT], check=False, stderr=subprocess.DEVNULL).returncode:
        fail("dockerd did not start")
    call(
        "POST",
        f"/images/create?fromSrc=-&repo={IMAGE.split(':')[0]}&tag=1",
        image(),
        kind="application/x-tar",
    )


def record():
    """Note the node's state as it is before the daemon changes it."""
    common = '. /opt/overlaylab/overlay/common.sh && record_before && record_sysctls "$@"'
    subprocess.run(["sh", "-euc", common, "sh", *SYSCTLS], check=True)
    # Asking loads modules where there were none: record_before has seen to that.
    policy = subprocess.run(["iptables", "-S", "FORWARD"], capture_output=True, text=True, check=False).stdout
    os.makedirs(FOLDER, mode=0o755, exist_ok=True)
    with open(FORWARD, "w") as file:
        file.write("DROP" if "-P FORWARD DROP" in policy else "ACCEPT")


def image():
    """A root file system with nothing but the kit's sleep(1) and its libraries, as a tar file: no registry is needed."""
    import io
    import tarfile  # here, because overlay-reset and overlay-status need it never

    loader = f"{KIT}/lib/ld-linux-x86-64.so.2"
    program = os.path.realpath(f"{KIT}/libexec/sleep")
    argv = [loader, "--inhibit-cache", "--library-path", f"{KIT}/lib", "--list", program]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", dereference=True) as tar:
        tar.add(program, "bin/sleep")
        # By the path that the program itself names, and where the loader looks.
        tar.add(loader, f"lib64/{os.path.basename(loader)}")
        for library in re.findall(r"=> (\S+)", told):
            if not library.endswith(os.path.basename(loader)):
                tar.add(library, f"lib/x86_64-linux-gnu/{os.path.basename(library)}")
    return packed.getvalue()


def run_second(host_config):
    """Start a second endpoint's container beside the first; what Docker says of it, None where it runs already."""
    if endpoint_runs(SECOND):
        return None
    if not endpoint_runs():
        fail("the endpoint's container does not run on this node: converge it first")
    # What a start that did not get to its end has left.
    with contextlib.suppress(Refused):
        call("DELETE", f"/containers/{SECOND}?force=true")
    return run(host_config, SECOND)


def run(host_config, name=NAME, **more):
    """Start an endpoint's container; what Docker says of it (GET /containers/…/json)."""
    wanted = {
        "Image": IMAGE,
        "Cmd": COMMAND,
        # As process 1 it would ignore SIGTERM, and stopping would take ten seconds.
        "StopSignal": "SIGKILL",
        "HostConfig": host_config,
        **more,
    }
    call("POST", f"/containers/create?name={name}", wanted)
    call("POST", f"/containers/{name}/start")
    return remember(name, name)


def remember(container, name=NAME):
    """Note which container is an endpoint's; what Docker says of it. container: its name or Id."""
    about = call("GET", f"/containers/{container}/json")
    networks = about["NetworkSettings"]["Networks"].values()
    known = {
        "id": about["Id"],
        "pid": about["State"]["Pid"],
        "address": next((network["IPAddress"] for network in networks if network["IPAddress"]), None),
    }
    with open(note(name), "w") as file:
        json.dump(known, file)
    return about


def attach(pid, renamed, gateway=None, name=NAME):
    """Make the container's network namespace the endpoint, or the second one, by its name.

    renamed: {Docker's name of an interface: ours}: eth0 is the management interface everywhere else, and eth1 the
    underlay. gateway: the default route's, which goes when its interface is renamed.
    """
    subprocess.run(["ip", "netns", "attach", name, str(pid)], check=True)
    # An interface that is up cannot be renamed by kernels before 6.2.
    lines = [
        f"link set {old} down\nlink set {old} name {new}\nlink set {new} up" for old, new in renamed.items()
    ]
    if gateway:
        lines.append(f"route replace default via {gateway}")
    batch = "".join(f"{line}\n" for line in lines)
    subprocess.run(["ip", "-n", name, "-batch", "-"], input=batch, text=True, check=True)
