"""What a probe captures on the underlay, built packet by packet."""

from __future__ import annotations

import base64
import io

import dpkt

from overlaylab.run.evidence import _CUT, MARKER

# Of a marked ping: its time of sending, then the pattern.
PAYLOAD = bytes(16) + MARKER * 10


NODES = (b"\xc0\xa8\x4d\x0b", b"\xc0\xa8\x4d\x0c")


def ip(protocol: int, data: bytes, ends: tuple[bytes, bytes] = NODES) -> bytes:
    packet = dpkt.ip.IP(p=protocol, src=ends[0], dst=ends[1], data=data)
    packet.len = len(packet)
    return bytes(dpkt.ethernet.Ethernet(data=packet))


def echo(payload: bytes = PAYLOAD, ends: tuple[bytes, bytes] = NODES) -> bytes:
    return ip(1, bytes(dpkt.icmp.ICMP(type=8, data=dpkt.icmp.ICMP.Echo(id=1, seq=1, data=payload))), ends)


def udp(payload: bytes) -> bytes:
    return ip(17, bytes(dpkt.udp.UDP(sport=6784, dport=6784, ulen=8 + len(payload), data=payload)))


def pcap(*frames: bytes) -> str:
    file = io.BytesIO()
    writer = dpkt.pcap.Writer(file, snaplen=256)
    for frame in frames:
        writer.writepkt(frame[:256], ts=1.0)
    return base64.encodebytes(file.getvalue()).decode()


def printed(
    *frames: bytes,
    received: int = 3,
    over: str = "1 packets transmitted, 0 received, 100% packet loss",
    path: str = "10.32.0.2 via 192.168.77.12",
    status="{}",
) -> str:
    return _CUT.join([pinged_back(received, over), pcap(*frames), f"{path}\n", status])


def pinged_back(received: int = 3, over: str = "1 packets transmitted, 0 received, 100% packet loss") -> str:
    """What pings of the MTU print, and one of a byte more."""
    pings = f"3 packets transmitted, {received} received, 0% packet loss, time 100ms"
    return f"{pings}\n{_CUT}{over}\n"
