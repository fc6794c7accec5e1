#!/bin/sh
# The rule book as a policy, and before it one that denies a network which is too wide.
set -eu
[ "$ROLE" = client ] || exit 0
set -a
# shellcheck source=/dev/null
. /run/overlaylab/overlay/calico.env
set +a
timeout 60 /usr/local/lib/overlaylab/calico/calicoctl apply -f - <<END
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: rule-book}
spec:
  order: 100
  selector: all()
  types: [Ingress]
  ingress:
  - {action: Allow, protocol: ICMP}
  - {action: Allow, protocol: TCP, destination: {ports: [80]}}
  - {action: Allow, protocol: UDP, destination: {ports: [53]}}
---
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: no-guests}
spec:
  order: 10
  selector: all()
  types: [Ingress]
  ingress:
  - {action: Deny, source: {nets: [172.16.0.0/12]}}
END
