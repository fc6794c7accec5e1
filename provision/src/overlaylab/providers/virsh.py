"""libvirt through its own command line: domains, networks, and snapshots of a whole cluster at once."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from ipaddress import IPv4Network

from overlaylab.core.errors import NodeError

URI = "qemu:///system"

# Options of the dnsmasq that libvirt starts for a network (https://libvirt.org/formatnetwork.html#network-namespaces).
DNSMASQ = "http://libvirt.org/schemas/network/dnsmasq/1.0"
OFFER_AT_ONCE = "<dnsmasq:option value='no-ping'/>"


class VirshError(NodeError):
    """virsh ended with an error; the text is its own."""


async def virsh(*arguments: str, check: bool = True) -> str:
    """Run `virsh -c qemu:///system ARGUMENTS` and return what it printed."""
    process = await asyncio.create_subprocess_exec(
        "virsh", "-q", "-c", URI, *arguments,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    if check and process.returncode:
        raise VirshError(f"virsh {' '.join(arguments)}: {err.decode(errors='replace').strip()}")
    return out.decode(errors="replace")


async def each(domains: Iterable[str], command: str, *arguments: str) -> list[str]:
    """The same virsh command on all domains at once: what each printed, in their order.

    VirshError if one failed, but only once all have ended: none goes on behind the back of what comes next.
    """
    commands = (virsh(command, domain, *arguments) for domain in domains)
    ended = await asyncio.gather(*commands, return_exceptions=True)
    printed = []
    for outcome in ended:
        if isinstance(outcome, BaseException):
            raise outcome
        printed.append(outcome)
    return printed


async def domains() -> dict[str, str]:
    """State (``running``, ``paused``, ``shut off``) of every domain by name."""
    rows = (await virsh("list", "--all", "--name")).split()
    states = await asyncio.gather(*(virsh("domstate", name, check=False) for name in rows))
    return dict(zip(rows, (state.strip() for state in states), strict=True))


async def cpu_seconds(domains: Iterable[str]) -> dict[str, float]:
    """{domain: CPU time of its QEMU process with all threads since it was started}, of those that run.

    Source: virsh(1), domstats --cpu-total: cpu.time in nanoseconds.
    """
    found: dict[str, float] = {}
    domain = ""
    for line in (await virsh("domstats", "--cpu-total", *domains, check=False)).splitlines():
        name, _, value = line.strip().partition(": " if line.startswith("Domain:") else "=")
        if name == "Domain":
            domain = value.strip("'")
        elif name == "cpu.time":
            found[domain] = int(value) / 1e9
    return found


async def address(domain: str) -> str:
    """The IPv4 address that libvirt's DHCP server has leased to the domain. VirshError where there is none."""
    for line in (await virsh("domifaddr", domain)).splitlines():
        # virsh(1): interface, MAC address, protocol, address/prefix.
        if (words := line.split())[2:3] == ["ipv4"]:
            return words[3].partition("/")[0]
    raise VirshError(f"virsh domifaddr {domain}: no address was leased to it")


async def snapshots(domain: str) -> set[str]:
    """Names of the domain's snapshots."""
    return set((await virsh("snapshot-list", domain, "--name", check=False)).split())


async def start_networks(names: Iterable[str]) -> None:
    """Start the networks that are defined but not active: after a host reboot they are not."""
    active = set((await virsh("net-list", "--name")).split())
    for name in names:
        if name not in active:
            await virsh("net-start", name)


async def make_network(
    name: str, network: IPv4Network, *, dhcp: bool = False, mtu: int | None = None
) -> None:
    """Define an isolated network, the host on its first address, unless there is one of that name; start it.

    Without STP: after each revert a bridge that runs it forwards nothing for up to four seconds, the least
    forward delay that the kernel lets STP have (net/bridge/br_private_stp.h), and Vagrant always asks for it. Without
    dnsmasq's ping: it would wait three seconds whether somebody has an address before it offers that (dnsmasq(8)).
    """
    if name not in (await virsh("net-list", "--all", "--name")).split():
        first, *_, last = network.hosts()
        leases = f"<dhcp><range start='{first + 1}' end='{last}'/></dhcp>" if dhcp else ""
        size = f"<mtu size='{mtu}'/>" if mtu else ""
        options = f"<dnsmasq:options>{OFFER_AT_ONCE}</dnsmasq:options>" if dhcp else ""
        xml = (
            f"<network xmlns:dnsmasq='{DNSMASQ}'><name>{name}</name><bridge stp='off' delay='0'/>{size}"
            f"<ip address='{first}' netmask='{network.netmask}'>{leases}</ip>{options}</network>"
        )
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(xml)
            file.flush()
            await virsh("net-define", file.name)
    await start_networks([name])


async def start_pool(name: str, folder: str) -> None:
    """Make and start the storage pool: vagrant-libvirt makes none but that called default."""
    if name not in (await virsh("pool-list", "--all", "--name")).split():
        await virsh("pool-define-as", name, "dir", "--target", folder)
    if name not in (await virsh("pool-list", "--name")).split():
        await virsh("pool-start", name)


async def delete_volume(pool: str, prefix: str) -> None:
    """Delete the volumes of the pool whose name begins so; none is no error."""
    for line in (await virsh("vol-list", pool)).splitlines():
        if line.split()[:1] and line.split()[0].startswith(prefix):
            await virsh("vol-delete", line.split()[0], "--pool", pool)


async def take_snapshot(domains: Iterable[str], name: str) -> None:
    """Snapshot memory and disk of all domains at one moment: none runs while another is saved."""
    names = list(domains)
    # One of the nodes may have it already: of a command that was killed, or failed on another node.
    await delete_snapshot(names, name)
    await each(names, "suspend")
    try:
        await each(names, "snapshot-create-as", name)
    finally:
        await each(names, "resume")


async def revert(domains: Iterable[str], name: str) -> None:
    """Put all domains back to the snapshot and let them run on together."""
    # libvirt starts a new QEMU for it, 0.8 s. The loadvm command of the one that runs would take 0.4 s, but an emulated
    # CPU's time stamp counter then goes on from where it is: minutes pass for the guest at once, and daemons drop
    # their peers.
    names = list(domains)
    await each(names, "snapshot-revert", name, "--paused")
    await each(names, "resume")


async def delete_snapshot(domains: Iterable[str], name: str) -> None:
    """Delete the snapshot from those domains that have it."""
    for domain in domains:
        if name in await snapshots(domain):
            await virsh("snapshot-delete", domain, name)


async def remove_pool(name: str) -> None:
    """Delete the volumes of the storage pool, and the pool; none is no error."""
    if name not in (await virsh("pool-list", "--all", "--name")).split():
        return
    await virsh("pool-start", name, check=False)
    for line in (await virsh("vol-list", name)).splitlines():
        if line.strip():
            await virsh("vol-delete", line.split()[0], "--pool", name)
    await virsh("pool-destroy", name)
    await virsh("pool-undefine", name)
