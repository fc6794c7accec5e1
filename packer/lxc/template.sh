#!/bin/sh
# The box's lxc-template: makes a node's folder. lxc-create calls it as root with
#   --path FOLDER --name NAME --rootfs FOLDER --tarball FILE --image NAME [--config FILE]
#
# All nodes of an image share one unpacked root file system, which nobody writes to: it lies beside the nodes'
# folders in overlaylab-image-NAME. A node adds two layers: `provisioned`, what `vagrant up` changed, and
# `upper`, what was changed since; the hook below empties the latter at each start.
set -eu
umask 022
PATH=$PATH:/usr/sbin:/sbin

path='' tarball='' image='' config=''
while [ $# -gt 0 ]; do
    case $1 in
        --*=*) key=${1%%=*} value=${1#*=} ;;
        --*) key=$1 value=${2-}; shift ;;
        *) echo "lxc-template: unexpected argument $1" >&2; exit 2 ;;
    esac
    shift
    case $key in
        --path) path=$value ;;
        --tarball) tarball=$value ;;
        --image) image=$value ;;
        --config) config=$value ;;
    esac
done
[ -n "$path" ] && [ -n "$tarball" ] && [ -n "$image" ] || { echo 'lxc-template: --path, --tarball, --image' >&2; exit 2; }

lxcpath=$(dirname "$path")
shared=$lxcpath/overlaylab-image-$image
# One unpacks, the others wait; until the end, as an image that no configuration names is taken for unused
# (lxc_host.sh, remove). The folder itself is locked: a lock file would have to be removed.
exec 9<"$lxcpath"
flock 9
if [ ! -d "$shared" ]; then
    rm -rf "$shared.new"
    # Its programs with the set-user-ID bit are not for the users of this machine.
    mkdir -m 700 "$shared.new"
    tar --extract --gzip --file "$tarball" --directory "$shared.new" \
        --numeric-owner --xattrs --xattrs-include='*'
    mv "$shared.new" "$shared"
fi

mkdir -p "$path/provisioned" "$path/upper"
cat >"$path/fresh" <<'HOOK'
#!/bin/sh
# Before the node's mounts are made (lxc.container.conf(5), lxc.hook.pre-start): where it has been provisioned,
# each start is a clean one, and so is each reboot from within.
set -eu
cd "${LXC_CONFIG_FILE%/*}"
[ -e frozen ] || exit 0
rm -rf upper work
mkdir upper
HOOK
chmod 755 "$path/fresh"
# In place of the copy of /etc/lxc/default.conf: its networks are for other containers.
{
    # Whose it is: another user's lab may have a cluster of that name (lxc_host.sh, survey).
    echo "# made of $tarball"
    if [ -n "$config" ]; then cat "$config"; fi
    echo "lxc.rootfs.path = overlay:$path/provisioned:$shared/rootfs:$path/upper"
    echo "lxc.hook.pre-start = $path/fresh"
} >"$path/config"
