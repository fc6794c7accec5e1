"""Takes Docker off this node: containers, daemon, devices, rules, IPsec, settings, files. For overlay-reset.

What dockerd would clean up itself may be left where it was killed; so everything is done here, and asked of nobody.
"""

import glob
import os
import re
import shutil
import signal

import docker_engine
import traces

BRIDGES = ("docker0", "docker_gwbridge")
IPSEC_MARK = "0xd0c4e3"
"""Mark of its policies, and in decimal the reqid of its associations (libnetwork drivers/overlay/encryption.go)."""

OWN_RULE = re.compile(
    r" -[io] docker(0|_gwbridge)( |$)| -j DOCKER(-\S+)?$"
    # An encrypted network's: vxlan that is to be encrypted is marked, and vxlan that was not is dropped.
    r"|--dport 4789 .*--u32 .* -j (MARK --set-x?mark 0xd0c4e3\S*|ACCEPT|DROP)$"
)


def own_rule(address):
    """Decides on a line of iptables-save(8). address: the container's, in rules for its own published ports."""
    to_itself = f"-s {address}/32 -d {address}/32 "
    return lambda line: bool(OWN_RULE.search(line)) or (address is not None and to_itself in line)


def remove(*units):
    """Everything, at any time, any number of times. units: daemons of the overlay besides dockerd."""
    containers = [docker_engine.read_container(name) for name in (docker_engine.NAME, docker_engine.SECOND)]
    container = containers[0]
    for unit in (*units, docker_engine.UNIT):
        # systemd keeps a unit that failed in mind, also without its file.
        if os.path.exists(f"/run/systemd/system/{unit}"):
            traces.stop_unit(unit)
            traces.run("systemctl", "reset-failed", unit)
    for left in filter(docker_engine.runs, containers):
        # dockerd was killed. Only a container's first process, not whatever is in its network: that may be the node's.
        os.kill(left["pid"], signal.SIGKILL)
    traces.remove_endpoint()
    if os.path.exists(docker_engine.FOLDER):
        # Else another Docker of this node may have made them.
        tunnels()
        unmount()
        links()
        security_associations()
    if os.path.exists(docker_engine.FORWARD):
        with open(docker_engine.FORWARD) as file:
            policy = file.read()
        if traces.loaded("nf_tables"):
            traces.run("iptables", "-P", "FORWARD", policy)
        traces.remove_rules(own_rule(container and container["address"]), "DOCKER")
    traces.restore_sysctls()
    traces.remove_empty_tables()
    for folder in (docker_engine.DATA, docker_engine.FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
    if traces.unload_modules():
        traces.forget()


def tunnels():
    """Delete the VXLAN devices, which a namespace gives up only some time after its end: the next one's number is
    the same, and would be refused."""
    for path in glob.glob(f"{docker_engine.FOLDER}/exec/netns/1-*"):
        traces.run("nsenter", f"--net={path}", "ip", "link", "delete", "vxlan0")
    for path in glob.glob("/sys/class/net/vx-*"):
        traces.run("ip", "link", "delete", os.path.basename(path))


def unmount():
    """Namespaces and root file systems that the daemon has mounted, the last first."""
    with open("/proc/self/mounts") as file:
        points = [line.split()[1].replace("\\040", " ") for line in file]
    for point in reversed(points):
        if point.startswith((f"{docker_engine.FOLDER}/", f"{docker_engine.DATA}/")):
            traces.run("umount", "--lazy", point)


def links():
    for bridge in BRIDGES:
        # Their other ends are in namespaces that end when they like.
        for port in glob.glob(f"/sys/class/net/{bridge}/brif/*"):
            traces.run("ip", "link", "delete", os.path.basename(port))
        if traces.link_exists(bridge):
            traces.run("ip", "link", "delete", bridge)


def security_associations():
    """Delete IPsec policies with Docker's mark and associations with its reqid."""
    if not traces.loaded("xfrm_user"):
        return
    for selector in policy_selectors(traces.run("ip", "-o", "xfrm", "policy", "list") or ""):
        traces.run("ip", "xfrm", "policy", "delete", *selector)
    reqid = str(int(IPSEC_MARK, 16))
    traces.run("ip", "xfrm", "state", "deleteall", "reqid", reqid)


def policy_selectors(text):
    """What ip-xfrm(8) needs to delete each of Docker's policies out of what it listed, a line a policy."""
    found = []
    for line in text.splitlines():
        mark = re.search(rf"\smark ({IPSEC_MARK})/(0x[0-9a-f]+)", line)
        ends = re.match(r"src (\S+) dst (\S+) proto udp dport 4789", line)
        if mark and ends:
            found.append(
                ["src", ends[1], "dst", ends[2], "proto", "udp", "dport", "4789", "dir", "out",
                 "mark", mark[1], "mask", mark[2]]
            )  # fmt: skip
    return found
