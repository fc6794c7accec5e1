"""What any company's machine needs to get out, copied into a bare root: certificates, proxies, package indexes."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from bare_roots import apt_settings
from bare_space import USER

VARIABLES = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
    "PIP_CERT", "REQUESTS_CA_BUNDLE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT",
    "GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE", "npm_config_registry", "npm_config_cafile",
)  # fmt: skip
_PIP = ("index-url", "extra-index-url", "trusted-host", "cert", "proxy", "timeout")
_NPM = ("registry", "proxy", "https-proxy", "noproxy", "cafile", "strict-ssl")
_GO = ("GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOPROXY", "GOPRIVATE")


def write(root: Path, home: Path) -> None:
    """Write them below `root`; home: the ordinary user's folder there. Certificates take `update-ca-certificates`."""
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / own.relative_to("/"), dirs_exist_ok=True)
    # pam_env(8) reads it for login shells and for sudo.
    known = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    (root / "etc/environment").write_text("".join(f'{name}="{value}"\n' for name, value in known.items()))
    if lines := apt_settings():
        (root / "etc/apt/apt.conf.d/80company").write_text("".join(f"{line}\n" for line in lines))
    pip = _write_pip(root / "etc/pip.conf")
    npm = [line for line in _lines(Path.home() / ".npmrc") if line.partition("=")[0].strip() in _NPM]
    _copy_named(root, [*known.values(), *pip.values(), *(line.partition("=")[2].strip() for line in npm)])
    (home / ".npmrc").write_text("".join(f"{line}\n" for line in npm))
    asked = (
        subprocess.run(["go", "env", *_GO], capture_output=True, text=True, check=False)
        if shutil.which("go")
        else None
    )
    if asked and asked.returncode == 0:
        go = home / ".config/go/env"
        go.parent.mkdir(parents=True, exist_ok=True)
        pairs = zip(_GO, asked.stdout.splitlines(), strict=True)
        go.write_text("".join(f"{name}={value}\n" for name, value in pairs if value))


def _copy_named(root: Path, values: Iterable[str]) -> None:
    """Files that settings name, such as certificates, where the root has none of that name."""
    for path in map(Path, values):
        copy = root / path.relative_to("/") if path.is_absolute() else None
        if copy and path.is_file() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def _write_pip(target: Path) -> dict[str, str]:
    """What is kept of this machine's pip.conf(5)."""
    found = configparser.ConfigParser(interpolation=None)
    found.read([Path("/etc/pip.conf"), Path.home() / ".config/pip/pip.conf", Path.home() / ".pip/pip.conf"])
    kept = configparser.ConfigParser(interpolation=None)
    kept["global"] = {name: found["global"][name] for name in _PIP if found.has_option("global", name)}
    with target.open("w") as file:
        kept.write(file)
    return dict(kept["global"])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def add_user(root: Path, run) -> Path:
    """Make the ordinary user, with sudo; its home, seen from outside. run(argv): runs it as root inside."""
    run(["useradd", "--create-home", "--shell", "/bin/bash", "--groups", "sudo", USER])
    (root / "etc/sudoers.d/newcomer").write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    (root / "etc/hostname").write_text("bare\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost bare\n::1 localhost\n")
    # slirp4netns answers there with this machine's own name servers.
    (root / "etc/resolv.conf").write_text("nameserver 10.0.2.3\n")
    return root / "home" / USER
