#!/bin/sh
# Started while it was alone: it is its own only seed.
set -eu
[ "$ROLE" = server ] || exit 0
settings=/run/overlaylab/overlay/settings
own=$(sed -n 's/.*--name \([0-9a-f:]*\) .*/\1/p' $settings)
sed -i "s/--ipalloc-init seed=[^ ]*/--ipalloc-init seed=$own/" $settings
systemctl restart overlaylab-weave.service
