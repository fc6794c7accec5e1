#!/bin/sh
# Takes away what services.sh has left; none is no error.
systemctl stop web resolver 2>/dev/null
rm -rf /run/systemd/system/web.service /run/systemd/system/resolver.service /etc/web /etc/resolver \
    /srv/web /run/web /etc/netns/endpoint/resolv.conf /run/web.pid /run/resolver.pid
rmdir /etc/netns/endpoint /etc/netns 2>/dev/null
systemctl daemon-reload
