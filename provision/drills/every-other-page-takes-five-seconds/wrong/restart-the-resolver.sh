#!/bin/sh
set -eu
[ "$ROLE" = server ] || exit 0
systemctl restart resolver.service
