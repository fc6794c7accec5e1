#!/bin/sh
set -eu
rm /etc/sysctl.d/60-memory.conf
sysctl -qw net.core.rmem_max=212992 net.core.rmem_default=212992
