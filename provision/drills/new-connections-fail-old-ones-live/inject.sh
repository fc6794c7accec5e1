#!/bin/sh
# A process that holds 300 connections within the node, and a limit that leaves room for a few more.
set -eu
[ "$ROLE" = server ] || exit 0
# The way in does not depend on the table.
nft -f - <<'END'
table inet jumphost {
    chain prerouting { type filter hook prerouting priority raw; tcp dport 22 notrack; }
    chain output { type filter hook output priority raw; tcp sport 22 notrack; }
}
END
cat >/usr/local/sbin/metrics-relay <<'END'
#!/opt/overlaylab/bin/python3
import socket, time

listener = socket.create_server(("127.0.0.1", 9125), backlog=512)
pairs = []
for _ in range(300):
    near = socket.create_connection(("127.0.0.1", 9125))
    pairs.append((near, listener.accept()[0]))
while True:
    for near, far in pairs:
        near.send(b".")
        far.recv(16)
    time.sleep(0.5)
END
chmod 755 /usr/local/sbin/metrics-relay
cat >/run/systemd/system/metrics-relay.service <<'END'
[Unit]
Description=Metrics relay
[Service]
ExecStart=/usr/local/sbin/metrics-relay
LimitNOFILE=4096
END
systemctl daemon-reload
systemctl start metrics-relay.service
sleep 3
count=$(cat /proc/sys/net/netfilter/nf_conntrack_count)
[ "$count" -ge 300 ]
# Less than there is: what is flushed or runs out makes room for a moment, and no longer.
echo 306 >/proc/sys/net/netfilter/nf_conntrack_max
