"""What remains of a NIC's rate when only headers cost: the arithmetic of one TCP stream in full frames.

Two sums of headers decide it. 52 bytes of every IP packet carry no application byte: IPv4 header 20
(RFC 791), TCP header 20 (RFC 9293) and its timestamp option padded to 12 (RFC 7323, on by default in
Linux). 14 bytes of Ethernet header (IEEE 802.3) are counted by a Linux qdisc beside the packet; preamble,
frame check sequence and gap are not, so a ``tc`` rate is an L2 rate without them.
"""

# Bytes of IPv4, TCP and timestamps in each packet of the endpoints.
INNER_HEADERS = 52
# Bytes that a qdisc counts beyond the IP packet.
ETHERNET_HEADER = 14


def goodput_theory(
    rate_bit_s: float, underlay_mtu: int, encapsulation_bytes: int, overlay_mtu: int | None = None
) -> float:
    """Application bit/s of one TCP stream through a NIC that carries rate_bit_s of L2 frames.

    underlay_mtu: bytes of an IP packet on the underlay.
    encapsulation_bytes: what the overlay adds to an endpoint's IP packet before it is an IP packet of the
    underlay (50 for VXLAN over IPv4: 20 IP, 8 UDP, 8 VXLAN, 14 inner Ethernet); 0 for the host network.
    overlay_mtu: bytes of an endpoint's IP packet; None: as large as fits.

    Raises ValueError where such packets would be fragmented, or carry nothing: the formula is then wrong.
    """
    if rate_bit_s <= 0:
        raise ValueError(f"rate must be positive, not {rate_bit_s}")
    if encapsulation_bytes < 0:
        raise ValueError(f"encapsulation cannot be {encapsulation_bytes} bytes")
    inner = underlay_mtu - encapsulation_bytes if overlay_mtu is None else overlay_mtu
    if inner + encapsulation_bytes > underlay_mtu:
        raise ValueError(
            f"{inner} + {encapsulation_bytes} bytes do not fit an underlay MTU of {underlay_mtu}: fragmented"
        )
    if inner <= INNER_HEADERS:
        raise ValueError(f"an MTU of {inner} leaves no application byte after {INNER_HEADERS} of headers")
    return rate_bit_s * (inner - INNER_HEADERS) / (inner + encapsulation_bytes + ETHERNET_HEADER)


def ratio_theory(underlay_mtu: int, encapsulation_bytes: int, overlay_mtu: int | None = None) -> float:
    """Overlay goodput over the host's where headers alone differ; arguments and errors of goodput_theory."""
    overlay = goodput_theory(1.0, underlay_mtu, encapsulation_bytes, overlay_mtu)
    return overlay / goodput_theory(1.0, underlay_mtu, 0)
