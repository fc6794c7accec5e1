# Sourced by the overlays' start scripts.
# shellcheck shell=sh
state=/run/overlaylab/overlay

# What was loaded before the overlay came, once: overlay-reset goes back to it (traces.py).
record_before() {
    rm -f "$state/modules.after"
    [ ! -e "$state/modules.before" ] || return 0
    mkdir -p "$state"
    # Asking nft loads its modules: without them there is nothing to ask for.
    if [ -d /sys/module/nf_tables ]; then nft -j list chains >"$state/chains.before"; else : >"$state/chains.before"; fi
    cat /proc/modules >"$state/modules.new"
    mv "$state/modules.new" "$state/modules.before"
}

# Modules that come later are somebody else's.
record_after() {
    [ -e "$state/modules.before" ] || return 0
    [ -e "$state/modules.after" ] || cat /proc/modules >"$state/modules.after"
}
