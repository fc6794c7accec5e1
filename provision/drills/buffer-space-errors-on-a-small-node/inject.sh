#!/bin/sh
# A small table, and a process that speaks to all addresses of the underlay.
set -eu
network=${ADDRESS%.*}
[ "$ROLE" = client ] || exit 0
# The way in does not depend on the table.
ip -4 neigh show | while read -r neighbour _ device _ mac _; do
    [ "$device" = "$UNDERLAY" ] || case $mac in
        *:*) ip neigh replace "$neighbour" lladdr "$mac" dev "$device" nud permanent ;;
    esac
done
sysctl -qw net.ipv4.neigh.default.gc_thresh1=4 net.ipv4.neigh.default.gc_thresh2=8 net.ipv4.neigh.default.gc_thresh3=16
cat >/usr/local/sbin/inventory-agent <<'END'
#!/opt/overlaylab/bin/python3
import socket, sys, time

network = sys.argv[1]
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for host in range(20, 250):
        try:
            probe.sendto(b"inventory", (f"{network}.{host}", 161))
        except OSError:
            pass
        time.sleep(0.004)
END
chmod 755 /usr/local/sbin/inventory-agent
cat >/run/systemd/system/inventory-agent.service <<END
[Unit]
Description=Inventory of the network
[Service]
ExecStart=/usr/local/sbin/inventory-agent $network
END
systemctl daemon-reload
systemctl start inventory-agent.service
