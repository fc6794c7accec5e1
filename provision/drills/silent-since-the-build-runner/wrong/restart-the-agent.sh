#!/bin/sh
set -eu
systemctl restart overlaylab-romana-agent.service
