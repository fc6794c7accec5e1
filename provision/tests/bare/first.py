"""The first process of a bare root: adopts and reaps what others leave, until it is killed, and all with it."""

import contextlib
import fcntl
import os
import signal
import socket
import struct

# The loopback link is down in a new network namespace, and a minimal root has no ip(8). netdevice(7): ifreq.
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1))  # SIOCSIFFLAGS, IFF_UP

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
print("ready", flush=True)
while True:
    signal.sigwait({signal.SIGCHLD})
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
