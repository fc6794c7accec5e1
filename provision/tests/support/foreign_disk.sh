#!/bin/sh
# A disk as somebody else may have made it, of Debian's packages, for tests: nothing of the lab is on it. Usage:
# foreign_disk.sh FOLDER KIND BASE; leaves FOLDER/disk.raw. BASE: the folder packer/base. KIND is one of
#   cloud-init  a cloud's image: cloud-init makes users and network at the first boot
#   ignition    of the CoreOS line's kind: Ignition, called by dracut's initramfs, configures the first boot; /usr is
#               read-only, there is no Python, no package manager and no tool
# Root needs nothing else; an ordinary user works in a user namespace.
set -eu
folder=$1 kind=$2 base=$3
PATH=$PATH:/usr/sbin:/sbin
ROOT_UUID=$(cat /proc/sys/kernel/random/uuid) HASH_SEED=$(cat /proc/sys/kernel/random/uuid)
export PATH ROOT_UUID HASH_SEED
export ROOT_LABEL=root GRUB_MODULES=test
umask 022
if [ "$(id -u)" = 0 ]; then
    mode=root
    inside() { "$@"; }
else
    mode=unshare
    inside() { mmdebstrap --unshare-helper "$@"; }
    chmod 1777 "$folder"
fi
mkdir "$folder/input"
cp "$base"/initramfs.sh "$base"/disk.sh "$folder/input/"
packages=systemd,systemd-sysv,dbus,udev,openssh-server,sudo,kmod,procps,zstd,libnss-myhostname
case $kind in
    cloud-init) packages=$packages,linux-image-cloud-amd64,tiny-initramfs,cloud-init,iproute2 ;;
    ignition) packages=$packages,linux-image-cloud-amd64,ignition,dracut,dracut-network,curl ;;
esac

cat >"$folder/input/cloud-init.sh" <<'SCRIPT'
set -eu
root=$1
printf 'datasource_list: [NoCloud, None]\n' >"$root/etc/cloud/cloud.cfg.d/90-sources.cfg"
initrd=$(basename "$root"/boot/initrd.img-*)
firstboot=
SCRIPT
cat >"$folder/input/ignition.sh" <<'SCRIPT'
set -eu
root=$1
# Not in fstab, of which the initramfs mounts /usr by itself.
cat >"$root/etc/systemd/system/usr-read-only.service" <<'UNIT'
[Unit]
Description=/usr is read-only
DefaultDependencies=no
After=systemd-remount-fs.service
Before=local-fs.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mount --bind /usr /usr
ExecStart=/bin/mount -o remount,bind,ro /usr
[Install]
WantedBy=local-fs.target
UNIT
chroot "$root" systemctl --quiet enable usr-read-only.service
# Where Ignition leaves keys.
printf 'AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition\n' >"$root/etc/ssh/sshd_config.d/keys.conf"
# Groups that the line's systems have.
for group in wheel docker; do chroot "$root" groupadd --force "$group"; done
# Debian's Ignition relabels what it wrote, whether or not the kernel has SELinux: here nothing is to be done.
printf '#!/bin/sh\nexit 0\n' >"$root/usr/sbin/setfiles"
chmod 755 "$root/usr/sbin/setfiles"
mkdir -p "$root/etc/selinux"
printf 'SELINUX=disabled\nSELINUXTYPE=targeted\n' >"$root/etc/selinux/config"
# The arguments are in grub.cfg from the start, as this distribution has no helper that puts them there.
printf '#!/bin/sh\nexit 0\n' >"$root/usr/lib/dracut/modules.d/30ignition/ignition-kargs-helper.sh"
# A first boot is one with this file, as in the CoreOS line.
: >"$root/boot/ignition.firstboot"
cat >"$root/etc/systemd/system/first-boot-done.service" <<'UNIT'
[Unit]
Description=Ignition has configured this machine
ConditionPathExists=/boot/ignition.firstboot
After=local-fs.target
[Service]
Type=oneshot
ExecStart=/bin/rm /boot/ignition.firstboot
[Install]
WantedBy=multi-user.target
UNIT
chroot "$root" systemctl --quiet enable first-boot-done.service
printf '[Match]\nName=e*\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/99-all.network"
kernel=$(basename "$root"/boot/vmlinuz-*)
initrd=initrd.img-${kernel#vmlinuz-}
chroot "$root" dracut --force --no-hostonly --quiet --add 'ignition' \
    --add-drivers 'virtio_pci virtio_blk virtio_net ext4 qemu_fw_cfg' "/boot/$initrd" "${kernel#vmlinuz-}"
# What Ignition says is on the console.
firstboot='ignition.firstboot ignition.platform.id=qemu systemd.journald.forward_to_console=1'
# No package manager, no Python, no tool: as little as there is.
chroot "$root" dpkg --purge --force-all iproute2 isc-dhcp-client curl >/dev/null 2>&1 || :
rm -rf "$root"/usr/bin/apt* "$root"/usr/bin/dpkg* "$root"/usr/lib/apt "$root"/usr/bin/perl*
SCRIPT
cat >"$folder/input/common.sh" <<'SCRIPT'
echo stand-in >"$root/etc/hostname"
chroot "$root" systemctl --quiet enable systemd-networkd.service
: >"$root/etc/machine-id"
kernel=$(basename "$root"/boot/vmlinuz-*)
mkdir -p "$root/boot/grub"
cat >"$root/boot/grub/grub.cfg" <<GRUB
set timeout=0
set first=""
if [ -f /boot/ignition.firstboot ]; then set first="$firstboot"; fi
menuentry "$kernel" {
    linux /boot/$kernel root=UUID=$ROOT_UUID rootfstype=ext4 rw net.ifnames=0 \$first console=tty0 console=ttyS0
    initrd /boot/$initrd
}
GRUB
SCRIPT
cat "$folder/input/common.sh" >>"$folder/input/$kind.sh"
chmod -R a+rX "$folder/input"
cd "$folder"
# shellcheck disable=SC2016  # mmdebstrap hands each hook the root's path as $1
mmdebstrap --mode="$mode" --variant=apt --include="$packages" --aptopt='Acquire::Languages "none"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --essential-hook='sh input/initramfs.sh "$1"' --customize-hook="sh input/$kind.sh \"\$1\"" bookworm root
inside sh input/disk.sh root disk.raw
inside rm -rf root
rm -rf input
