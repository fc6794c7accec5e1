#!/bin/sh
# Runs in the finished node: loads every module, asks every tool for its version, looks at the
# settings that design and boot time rest on. Writes /run/report.json; fails if anything is missing.
# Takes RELEASE, KERNEL_MODULES (words) and TOOLS (JSON: tool to command).
export PATH=/opt/overlaylab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec python3 - <<'PYTHON'
import json
import os
import subprocess
import sys

failures = []


def run(command: str) -> tuple[int, str]:
    done = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.strip()


def expect(name: str, command: str, wanted: str) -> None:
    _, seen = run(command)
    if seen != wanted:
        failures.append(f"{name}: `{command}` gave {seen!r}, wanted {wanted!r}")


# Before anything is loaded or started: a booted node is pristine.
expect("pristine", "iptables-save | grep -c '^-A'; nft list ruleset; ip -o link | grep -cvE ' (lo|eth[01]):'", "0\n0")
expect("pristine", "sysctl -n net.ipv4.ip_forward", "0")
expect("services", "systemctl is-active docker containerd etcd bird openvswitch-switch nginx | sort -u", "inactive")
# Drills run both programs under units of their own.
expect("services", "systemctl list-unit-files --plain --no-legend --state=enabled 'nginx*' 'dnsmasq*'", "")
expect("services", "systemctl --failed --plain --no-legend", "")
expect("timers", "systemctl list-timers --plain --no-legend", "")
# The host key is gone, and without any sshd tells nothing.
expect("access", "ssh-keygen -q -t ed25519 -N '' -f /run/tested; sshd -T -h /run/tested 2>/dev/null |"
       " grep -E '^(passwordauthentication|permitrootlogin|kbdinteractiveauthentication|authorizedkeysfile|setenv) ' | sort;"
       " rm /run/tested /run/tested.pub",
       "authorizedkeysfile /run/overlaylab-authorized-keys\nkbdinteractiveauthentication no\n"
       "passwordauthentication no\npermitrootlogin no\n"
       "setenv PATH=/opt/overlaylab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
expect("path", "su - lab -c 'command -v tc bridge'", "/opt/overlaylab/bin/tc\n/opt/overlaylab/bin/bridge")
expect("path", "sudo -u lab sudo sh -c 'command -v tc'", "/opt/overlaylab/bin/tc")
expect("access", "awk -F: '$2 !~ /^[!*]/ {print $1}' /etc/shadow", "")
expect("capabilities", "sudo -u nobody /opt/overlaylab/bin/ping -c 1 -W 2 127.0.0.1 >/dev/null && echo ok", "ok")

# Nobody's key: the one that let us in is in memory, and the words of it in no file. This boot's own host key is on a copy of
# the disk, or goes (clean.sh).
expect("keys", "test -s /run/overlaylab-authorized-keys && echo there", "there")
expect("keys", "cut -d' ' -f2 /run/overlaylab-authorized-keys |"
       " grep -rlF -f - /etc /root /srv /opt /tmp /etc/overlaylab /usr/local /var", "")

modules = {}
for module in os.environ["KERNEL_MODULES"].split():
    modules[module] = run(f"modprobe {module}")[0] == 0

tools = {}
for tool, command in json.loads(os.environ["TOOLS"]).items():
    code, text = run(command)
    lines = [line.strip() for line in text.splitlines() if any(c.isdigit() for c in line)]
    # A system may come without Docker.
    if (not lines or code == 127) and tool != "docker":
        failures.append(f"tool {tool}: `{command}` exited {code} and printed {text!r}")
    tools[tool] = lines[0] if lines and code != 127 else None

with open("/etc/os-release") as file:
    release = dict(line.rstrip().replace('"', "").split("=", 1) for line in file if "=" in line)
if os.environ["RELEASE"] and release.get("VERSION_ID") != os.environ["RELEASE"]:
    failures.append(f"release: {release.get('VERSION_ID')!r}, wanted {os.environ['RELEASE']!r}")

code, listing = run("dpkg-query -W -f '${Package}\t${Version}\n'")
if code:
    code, listing = run("rpm -qa --queryformat '%{NAME}\t%{VERSION}-%{RELEASE}\n'")
report = {
    "kernel": os.uname().release,
    "os": release.get("PRETTY_NAME"),
    "modules": sorted(name for name, loaded in modules.items() if loaded),
    "modules_missing": sorted(name for name, loaded in modules.items() if not loaded),
    "tools": {tool: version for tool, version in tools.items() if version},
    "packages": {} if code else dict(line.split("\t") for line in listing.splitlines()),
}
with open("/run/report.json", "w") as file:
    json.dump(report, file)
for failure in failures:
    print("image test failed:", failure, file=sys.stderr)
sys.exit(bool(failures))
PYTHON
