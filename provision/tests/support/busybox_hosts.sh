#!/bin/sh
# Two hosts as somebody else may have made them, for tests: BusyBox and dropbear and nothing else, /usr read-only, /tmp
# noexec, no systemd, no Python, no bash. As root: busybox_hosts.sh up FOLDER PUBLIC_KEY, busybox_hosts.sh down FOLDER.
# FOLDER has busybox, dropbear, dropbearkey and their libraries below packages/. Namespaces olab-bb1 and olab-bb2; the
# machine reaches them as 10.98.76.2 and .6, they each other as 192.168.98.11 and .12.
set -eu
folder=$2
key=${3:-}
if [ "$1" = down ]; then
    for number in 1 2; do
        ip netns pids olab-bb$number | xargs -r kill
        ip netns delete olab-bb$number 2>/dev/null || :
        ip link delete olab-bbm$number 2>/dev/null || :
        # The user's test removes the rest, which is root's.
        rm -rf "$folder/node$number"
    done
    exit
fi
libraries=packages/usr/lib/x86_64-linux-gnu:packages/lib/x86_64-linux-gnu

cd "$folder"
for number in 1 2; do
    root=node$number
    mkdir -p $root/bin $root/usr/sbin $root/lib/x86_64-linux-gnu $root/lib64 $root/etc/dropbear $root/proc $root/sys \
        $root/dev $root/run $root/tmp $root/root/.ssh $root/var $root/opt $root/old
    cp packages/bin/busybox $root/bin/
    packages/bin/busybox --list | while read -r name; do [ -e $root/bin/"$name" ] || ln -s busybox $root/bin/"$name"; done
    cp packages/usr/sbin/dropbear packages/usr/bin/dropbearkey $root/usr/sbin/
    loader=packages/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
    cp $loader $root/lib64/
    $loader --inhibit-cache --library-path $libraries --list packages/usr/sbin/dropbear | sed -n 's/.*=> \(\S*\) .*/\1/p' |
        while read -r library; do [ -e $root/lib/x86_64-linux-gnu/"${library##*/}" ] || cp -L "$library" $root/lib/x86_64-linux-gnu/; done
    echo 'root:x:0:0:root:/root:/bin/sh' >$root/etc/passwd
    echo 'root:x:0:' >$root/etc/group
    echo /bin/sh >$root/etc/shells
    printf 'ID=busybox\nVERSION_ID=1\n' >$root/etc/os-release
    echo "$key" >$root/root/.ssh/authorized_keys
    chmod 700 $root/root $root/root/.ssh
    chroot $root /usr/sbin/dropbearkey -t ed25519 -f /etc/dropbear/key 2>/dev/null | grep '^ssh-ed25519' >host_key$number
    ip netns add olab-bb$number
    ip link add olab-bbm$number type veth peer name eth0 netns olab-bb$number
    ip address add 10.98.76.$((4 * number - 3))/30 dev olab-bbm$number
    ip link set olab-bbm$number up
    ip -n olab-bb$number address add 10.98.76.$((4 * number - 2))/30 dev eth0
    ip -n olab-bb$number link set eth0 up
    ip -n olab-bb$number link set lo up
done
ip -n olab-bb1 link add eth1 type veth peer name eth1 netns olab-bb2
for number in 1 2; do
    ip -n olab-bb$number address add 192.168.98.1$number/24 dev eth1
    ip -n olab-bb$number link set eth1 up
    # shellcheck disable=SC2016  # $1 is the inner shell's
    ip netns exec olab-bb$number unshare --mount --pid --uts --fork --kill-child sh -c '
        set -eu
        mount --make-rprivate /
        mount --bind "$1" "$1"
        cd "$1"
        mount --bind usr usr && mount -o remount,bind,ro usr
        mount -t proc proc proc
        mount -t sysfs sysfs sys
        mount --rbind /dev dev
        mount -t tmpfs tmpfs run
        mount -t tmpfs -o noexec tmpfs tmp
        pivot_root . old
        exec /bin/busybox sh -c "umount -l /old; hostname $1; exec env -i PATH=/bin /usr/sbin/dropbear -F -s -R -r /etc/dropbear/key"
    ' sh node$number </dev/null >dropbear$number.log 2>&1 &
    tries=0
    until packages/bin/busybox nc -w 1 10.98.76.$((4 * number - 2)) 22 </dev/null 2>/dev/null | grep -q SSH; do
        tries=$((tries + 1))
        [ $tries -lt 50 ] || { cat dropbear$number.log >&2; exit 1; }
        sleep 0.1
    done
done
