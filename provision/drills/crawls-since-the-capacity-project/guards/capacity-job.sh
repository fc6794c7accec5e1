#!/bin/sh
[ "$ROLE" = server ] || exit 0
[ -e /usr/local/sbin/cpu-share ] || exit 0
systemctl is-active --quiet cpu-share.service || { echo "the capacity project's job does not run"; exit 1; }
grep -q '^names=.*backup-agent' /etc/default/cpu-share || { echo 'the job does not hold the batch processes any more'; exit 1; }
