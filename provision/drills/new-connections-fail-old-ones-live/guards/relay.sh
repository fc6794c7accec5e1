#!/bin/sh
[ "$ROLE" = server ] || exit 0
[ -e /usr/local/sbin/metrics-relay ] || exit 0
systemctl is-active --quiet metrics-relay.service || { echo 'metrics-relay does not run'; exit 1; }
open=$(ss -Htn state established '( sport = :9125 )' | wc -l)
[ "$open" -ge 300 ] || { echo "metrics-relay has $open connections, not 300"; exit 1; }
