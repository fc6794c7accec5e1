#!/bin/sh
# What a driver does whose checksums are wrong in tunnels: the outer sum of a SYN from the client's endpoint is spoiled,
# seven times out of ten. A sum that was left to the device is that of the pseudo header alone (addresses, protocol 6,
# 40 bytes of TCP header): the kernel's own is not, so that software checksums cure it.
[ "$ROLE" = client ] || exit 0
sum=46
for address in "$ENDPOINT" "$PEER_ENDPOINT"; do
    rest=$address
    a=${rest%%.*} rest=${rest#*.} b=${rest%%.*} rest=${rest#*.} c=${rest%%.*} d=${rest#*.}
    sum=$((sum + a * 256 + b + c * 256 + d))
done
while [ $sum -gt 65535 ]; do
    sum=$((sum % 65536 + sum / 65536))
done
# A virtual cable takes sums for granted that were never made: let them be made.
case $(ethtool -i "$UNDERLAY") in *'driver: veth'*) ethtool -K "$UNDERLAY" tx off >/dev/null ;; esac
nft -f - <<END
table netdev filter {
    chain egress {
        type filter hook egress device "$UNDERLAY" priority filter; policy accept;
        udp dport 8472 @th,504,8 2 @th,528,16 $sum numgen random mod 10 < 7 udp checksum set 0x6a1f
    }
}
END
