#!/bin/sh
# The runner and what it closed stay.
[ "$ROLE" = server ] || exit 0
[ -e /sys/class/net/docker0 ] || exit 0
iptables -S FORWARD | grep -q '^-P FORWARD DROP' || { echo 'what no rule names is forwarded again'; exit 1; }
iptables -S FORWARD | grep -q -- '-j DOCKER-ISOLATION-STAGE-1' || { echo "the build runner's rules are gone"; exit 1; }
