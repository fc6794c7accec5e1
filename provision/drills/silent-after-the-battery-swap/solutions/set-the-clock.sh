#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
hwclock --hctosys --utc 2>/dev/null || date -s "@$(cat /sys/class/rtc/rtc0/since_epoch)"
# A handshake is tried again every five seconds.
ip netns exec endpoint ping -n -q -c 12 "$PEER_ENDPOINT" >/dev/null || :
