#!/bin/sh
set -eu
[ "$ROLE" = client ] || exit 0
set -a
# shellcheck source=/dev/null
. /run/overlaylab/overlay/calico.env
set +a
timeout 60 /opt/overlaylab/overlay/calico/calicoctl apply -f - <<END
apiVersion: projectcalico.org/v3
kind: GlobalNetworkPolicy
metadata: {name: endpoints-first}
spec:
  order: 1
  selector: all()
  types: [Ingress]
  ingress:
  - {action: Allow, source: {nets: [172.16.0.0/16]}}
END
sleep 5
