#!/bin/sh
# The rule book as a policy, and before it one that denies a network which is too wide. Each node has the files.
set -eu
folder=/etc/calico/policies
mkdir -p $folder
cat >$folder/rule-book.yml <<'END'
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
END
cat >$folder/no-guests.yml <<'END'
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
[ "$ROLE" = client ] || exit 0
set -a
# shellcheck source=/dev/null
. /run/overlaylab/overlay/calico.env
set +a
for file in "$folder"/*.yml; do timeout 60 /opt/overlaylab/overlay/calico/calicoctl apply -f "$file"; done
