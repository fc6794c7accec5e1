#!/bin/sh
# The service that users of an endpoint have: pages, and the name under which they are found. Variables: ENDPOINT, the
# endpoint's own address; SERVER, the address that the name stands for; ADDRESS, of the node's underlay.
set -eu
for program in nginx dnsmasq; do
    command -v $program >/dev/null || { echo "$program is not installed" >&2; exit 69; }
done
# What the packages start by themselves would hold the ports of endpoints that are the node's own network.
systemctl stop nginx.service dnsmasq.service 2>/dev/null || :

mkdir -p /run/web /etc/web /etc/resolver /srv/web /etc/netns/endpoint /run/systemd/system
echo "<!doctype html><title>$NODE</title><p>$NODE answers.</p>" >/srv/web/index.html
[ -e /srv/web/1m ] || head -c 1000000 /dev/urandom >/srv/web/1m
cat >/etc/web/nginx.conf <<END
daemon off;
# Not every system has another.
user root;
worker_processes 1;
pid /run/web.pid;
error_log stderr;
events { worker_connections 256; }
http {
    # The journal has /dev/stderr as a socket, which cannot be opened.
    access_log syslog:server=unix:/dev/log,nohostname,tag=web;
    default_type text/html;
    sendfile on;
    client_body_temp_path /run/web/body;
    proxy_temp_path /run/web/proxy;
    fastcgi_temp_path /run/web/fastcgi;
    uwsgi_temp_path /run/web/uwsgi;
    scgi_temp_path /run/web/scgi;
    server {
        listen $ENDPOINT:80;
        root /srv/web;
        location = /1m { default_type application/octet-stream; }
    }
}
END
cat >/etc/resolver/dnsmasq.conf <<END
port=53
listen-address=$ENDPOINT
bind-interfaces
no-resolv
no-hosts
# An address of version 4 alone; whoever asks for one of version 6 is told that there is none.
host-record=web.service.internal,$SERVER
local=/service.internal/
user=root
log-queries
log-facility=-
pid-file=/run/resolver.pid
END
# Written whole, and only where it differs: a reader takes a new file for a change.
conf="# The endpoint's own: ip netns exec mounts it over /etc/resolv.conf.
nameserver $SERVER"
[ "$(cat /etc/netns/endpoint/resolv.conf 2>/dev/null)" = "$conf" ] ||
    printf '%s\n' "$conf" >/etc/netns/endpoint/resolv.conf

unit() {
    cat >"/run/systemd/system/$1.service" <<END
[Unit]
Description=$2
StartLimitIntervalSec=0

[Service]
ExecStart=$3
NetworkNamespacePath=/run/netns/endpoint
SyslogIdentifier=$1
Restart=always
RestartSec=1
END
}
unit web "Web server of the endpoint (/etc/web)" "/opt/overlaylab/bin/nginx -e stderr -c /etc/web/nginx.conf"
unit resolver "Resolver of the endpoint (/etc/resolver)" "/opt/overlaylab/bin/dnsmasq --keep-in-foreground --conf-file=/etc/resolver/dnsmasq.conf"
systemctl daemon-reload
systemctl restart web resolver

# Both listen, or it is said what they said.
tries=0
until { ip netns exec endpoint ss -Hltn "src $ENDPOINT:80" && ip netns exec endpoint ss -Hlun "src $ENDPOINT:53"; } |
    awk '{ print $1 }' | sort -u | wc -l | grep -qx 2; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { journalctl --no-pager -q -n 6 -o cat -u web -u resolver >&2; exit 1; }
    sleep 0.1
done
