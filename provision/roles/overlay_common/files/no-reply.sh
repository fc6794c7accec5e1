#!/opt/overlaylab/bin/sh
# Says why a peer's endpoint does not answer although the overlay says that there is a path to it, and fails.
# Arguments: the peer's endpoint, its underlay address, the underlay interface, where to look, and a pcap filter of
# what the mode puts on the underlay (may be empty).
set -u
endpoint=$1 peer=$2 interface=$3 where=$4 filter=$5
said="the endpoint $endpoint does not answer although the overlay says that it is connected"
if [ -n "$filter" ] && command -v tcpdump >/dev/null; then
    # All nodes are here at the same time, and ping each other.
    ip netns exec endpoint ping -n -q -i 0.5 -w 8 "$endpoint" >/dev/null 2>&1 &
    # What carries no header of the underlay's comes from the endpoint itself.
    if timeout 8 tcpdump -i "$interface" -n -p --immediate-mode -c 1 \
        "(src host $peer or src host $endpoint) and ($filter)" >/dev/null 2>&1; then
        said="$said; its packets (\`$filter\`) arrive here"
    else
        said="$said; none of its packets (\`$filter\`) arrives here"
        where="a firewall drops them on the way, or the other node does not send them"
    fi
    wait
fi
echo "$said: $where" >&2
exit 1
