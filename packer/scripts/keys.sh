#!/bin/sh
# No key is in the image: a node makes its own host key at its first boot, and who may log in arrives with each
# boot, from the hypervisor or from LXC. Both before sshd starts.
set -eu
# Below /etc, as /usr may be read-only.
install -d /etc/overlaylab
cat >/etc/overlaylab/keys <<'SCRIPT'
#!/bin/sh
# Builtins where they do: under emulation each process costs 10 ms.
set -eu
umask 022
host_key=/etc/ssh/ssh_host_ed25519_key
# Empty: the node was switched off before the disk had it.
if [ ! -s "$host_key" ] || [ ! -s "$host_key.pub" ]; then
    rm -f "$host_key" "$host_key.pub"
    # One kind: RSA and ECDSA keys cost time and tell nothing more.
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$host_key"
fi
# VMs: a string of SMBIOS type 11, which systemd puts there (https://systemd.io/CREDENTIALS). Containers: their
# environment, as handing a credential over would take a mount of its own.
credential=/run/credentials/@system/overlaylab.authorized-keys
if [ -z "${OVERLAYLAB_AUTHORIZED_KEYS-}" ] && [ -r "$credential" ]; then
    read -r OVERLAYLAB_AUTHORIZED_KEYS <"$credential" || :
fi
# In memory, so that nobody's key comes to lie on the disk. Written even where there is none: nobody gets in then.
echo "${OVERLAYLAB_AUTHORIZED_KEYS-}" >/run/overlaylab-authorized-keys
SCRIPT
chmod 755 /etc/overlaylab/keys
cat >/etc/systemd/system/overlaylab-keys.service <<'UNIT'
[Unit]
Description=Host key of this node, and who may log in
Before=ssh.service sshd.service ssh.socket sshd.socket
[Service]
Type=oneshot
RemainAfterExit=yes
PassEnvironment=OVERLAYLAB_AUTHORIZED_KEYS
ExecStart=/etc/overlaylab/keys
UNIT
# A link rather than `systemctl enable`, which takes seconds under emulation.
for unit in ssh.service sshd.service ssh.socket sshd.socket; do
    [ -e "/usr/lib/systemd/system/$unit" ] || [ -e "/lib/systemd/system/$unit" ] || continue
    install -d "/etc/systemd/system/$unit.requires"
    ln -sf ../overlaylab-keys.service "/etc/systemd/system/$unit.requires/"
done
# Of a disk that runs already and whose configuration by now names that file.
if [ -d /run/systemd/system ]; then /etc/overlaylab/keys; fi
