#!/bin/sh
# A port that is shut times out; one that is open and unused is refused at once (curl's exit code 7).
[ "$ROLE" = client ] || exit 0
[ -e /etc/calico/policies ] || exit 0
code=0
ip netns exec endpoint curl -so /dev/null --max-time 2 "http://$PEER_ENDPOINT:9100/" || code=$?
[ $code != 7 ] && [ $code != 0 ] || { echo 'ports that the rule book does not name can be reached'; exit 1; }
