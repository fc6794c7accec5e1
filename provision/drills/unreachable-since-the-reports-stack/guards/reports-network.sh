#!/bin/sh
[ "$ROLE" = client ] || exit 0
[ -e /srv/reports/compose.yml ] || exit 0
case $(ip -4 -o address show dev br-5be1f0a7c3d2 up 2>/dev/null) in
    *' inet '*) ;;
    *) echo 'the reports stack has no network any more'; exit 1 ;;
esac
