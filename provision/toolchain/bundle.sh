#!/bin/sh
# A bundle beside the checkout (docs/offline.md): checked, and installed from instead of the network.
# ./task sources it; `bundle.sh apt-options` prints what apt-get is told, one option a line, for machine/packages.py.
# Needs root (the checkout), bundle and OVERLAYLAB_CACHE.

bundle_fail() { printf 'overlaylab: %s\n' "$*" >&2; exit 2; }

# The bundle is for this machine: raised before anything of it is used.
bundle_fits() {
    [ -r "$bundle/manifest.json" ] ||
        bundle_fail "$bundle: must lead to a bundle, and its manifest.json cannot be read. Put the medium with the bundle in again, or remove $bundle to use the network"
    # bundle:make writes the manifest with one field a line.
    made_for=$(sed -n 's/^ "system": "\(.*\)",\{0,1\}$/\1/p' "$bundle/manifest.json")-$(sed -n 's/^ "architecture": "\(.*\)",\{0,1\}$/\1/p' "$bundle/manifest.json")
    # shellcheck source=/dev/null
    here=$(. /etc/os-release 2>/dev/null && printf %s "${ID:-unknown}${VERSION_ID:+-$VERSION_ID}")-$(dpkg --print-architecture 2>/dev/null || uname -m)
    [ "$made_for" = "$here" ] ||
        bundle_fail "$bundle: must be for this machine, $here (found: $made_for). Make a bundle with FOR=${here%-*} on a machine with such a processor, or move $bundle away to use the network"
}

# Before the first use of this bundle with this cache folder.
bundle_check_once() {
    bundle_fits
    checked=$OVERLAYLAB_CACHE/bundle-checked/$(sha256sum "$bundle/manifest.json" | cut -c1-16)
    [ ! -e "$checked" ] || return 0
    bundle_check
    if mkdir -p "${checked%/*}"; then : >"$checked"; fi
}

# Every part is what the bundle's sums say.
bundle_check() {
    bundle_fits
    echo "overlaylab: checking the bundle beside this checkout (once; some seconds)" >&2
    # No word of sha256sum's is cut: a damaged file's is its name and FAILED.
    damaged=$(
        cd "$root" || exit
        # On two processors at once.
        bundle_sums 0 2>&1 &
        bundle_sums 1 2>&1 && wait "$!"
    ) || {
        missing=$(bundle_missing)
        [ -z "$missing" ] ||
            bundle_fail "$root: must hold all files of the bundle (found: $(printf '%s\n' "$missing" | wc -l) are missing: $(printf '%s\n' "$missing" | head -n 3 | tr '\n' ' ')). tar did not come to its end: see that the disk has room, compare the bundle's digest with the one that bundle:make printed, and unpack it again"
        bundle_fail "$bundle: must be what its sums say (found: $(printf %s "$damaged" | head -n 3 | tr '\n' ' ')). Unpack the bundle again, after comparing its digest with the one that bundle:make printed"
    }
}

# $1: 0 or 1, for one half of the files.
bundle_sums() {
    sums=$(awk -v half="$1" 'NR % 2 == half' bundle/SHA256SUMS)
    # Of a single file, one half has none.
    [ -n "$sums" ] || [ "$1" = 1 ] || return 0
    printf '%s\n' "$sums" | LC_ALL=C sha256sum --check --quiet --strict
}

# Which files of the bundle are not there, the checkout's first. In the tar the checkout stands before all other parts: one
# that was cut anywhere lacks something that the sums name.
bundle_missing() {
    sed -n 's/^ *"path": "\(.*\)",\{0,1\}$/\1/p' "$bundle/manifest.json" | while IFS= read -r path; do
        case $path in
            bundle/*) ;;
            *) [ ! -e "$root/.git" ] || continue ;; # a repository beside a bundle may be of another commit
        esac
        [ -e "$root/$path" ] || printf '%s\n' "$path"
    done
}

# Where the wheels of the toolchain with that key lie.
bundle_wheels() {
    bundle_fits
    for held in "$bundle"/toolchain/*; do break; done
    [ -d "$bundle/toolchain/$1" ] ||
        bundle_fail "$bundle: must hold the toolchain that this checkout locks, $1 (found: ${held##*/}). The bundle is of another commit: make one of this checkout, go back to the files that came with it, or move $bundle away to use the network"
    printf %s "$bundle/toolchain/$1"
}

# What makes apt-get take packages from the bundle alone, and leaves the machine's own lists and caches as they are.
bundle_apt_options() {
    bundle_fits
    [ -r "$bundle/packages/InRelease" ] || bundle_fail "$bundle/packages: must hold the bundle's packages. Unpack the bundle again"
    apt=$OVERLAYLAB_CACHE/apt
    mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/lists/auxfiles" "$apt/archives/partial" "$apt/none" || exit 2
    {
        echo "Types: deb"
        # A URI has no blanks: RFC 3986, 2.1.
        echo "URIs: file:$(printf %s "$bundle/packages/" | sed 's/%/%25/g; s/ /%20/g')"
        echo "Suites: ./"
        echo "Signed-By:"
        sed 's/^$/./; s/^/ /' "$bundle/packages/key.asc"
    } >"$apt/sources/overlaylab.sources.new"
    mv "$apt/sources/overlaylab.sources.new" "$apt/sources/overlaylab.sources"
    printf '%s\n' "--option=Dir::Etc::sourcelist=/dev/null" "--option=Dir::Etc::sourceparts=$apt/sources" \
        "--option=Dir::Etc::preferences=/dev/null" "--option=Dir::Etc::preferencesparts=$apt/none" \
        "--option=Dir::State::lists=$apt/lists" "--option=Dir::Cache=$apt" "--option=Acquire::Languages=none" \
        "--option=APT::Sandbox::User=root"
}

# ./task calls it with words of apt-get.
bundle_apt_get() {
    bundle_options=$(bundle_apt_options) || exit 2
    oldifs=$IFS
    IFS='
'
    # shellcheck disable=SC2086  # a line is a word
    set -- $bundle_options "$@"
    IFS=$oldifs
    # shellcheck disable=SC2086  # empty or two words
    ${sudo-} apt-get "$@"
}

# A checkout that cannot be written to, as on a DVD or another user's, is copied to the cache folder and works there.
bundle_elsewhere() {
    [ ! -w "$root" ] || return 0
    bundle_check_once # what tar unpacked half would stay half in the copy
    copy=$OVERLAYLAB_CACHE/checkout/$(sha256sum "$bundle/manifest.json" | cut -c1-12)
    mkdir -p "${copy%/*}" || exit 2
    exec 9>"${copy%/*}/.lock"
    flock 9
    if [ ! -e "$copy/.complete" ]; then
        echo "overlaylab: $root cannot be written to: working in a copy of it, $copy" >&2
        # Folders of a medium are read-only, and so are those of a copy that ended half way.
        if [ -e "$copy" ]; then chmod -R u+w "$copy"; fi
        rm -rf "$copy"
        # find(1) tells of what failed with + alone.
        { mkdir "$copy" && find "$root" -mindepth 1 -maxdepth 1 ! -name bundle -exec cp -R -t "$copy" {} + && chmod -R u+w "$copy"; } ||
            bundle_fail "$copy: must be copied from $root. Free some disk, or set OVERLAYLAB_CACHE to a folder on another disk"
        touch "$copy/.complete"
    fi
    exec 9>&-
    ln -sfn "$bundle" "$copy/bundle" # a medium may be mounted elsewhere the next time
    # Not in the copy: ./task lab:destroy removes the cache folder, and results are not its to remove.
    LAB_DB=${LAB_DB:-${XDG_DATA_HOME:-$HOME/.local/share}/overlaylab/lab.sqlite}
    export LAB_DB
    exec "$copy/task" "$@"
}

case ${0##*/}:${1:-} in
    bundle.sh:apt-options)
        set -eu
        root=$OVERLAYLAB_ROOT
        bundle=$root/bundle
        bundle_apt_options
        ;;
esac
