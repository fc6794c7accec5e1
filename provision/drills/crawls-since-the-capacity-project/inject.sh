#!/bin/sh
# A job that holds processes of some names down to a share of a CPU, as cpulimit(1) does.
set -eu
[ "$ROLE" = server ] || exit 0
cat >/etc/default/cpu-share <<'END'
# Processes that get no more than a share of one CPU, in per cent.
names="backup-agent indexer flanneld weaver"
share=3
END
cat >/usr/local/sbin/cpu-share <<'END'
#!/opt/overlaylab/bin/python3
import os, signal, time

PERIOD = 0.2
settings = dict(line.split("=", 1) for line in open("/etc/default/cpu-share") if "=" in line)
names = settings["names"].strip().strip('"').split()
share = min(float(settings["share"]) / 100, 1.0)


def found():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() in names:
                    yield int(pid)
        except OSError:
            pass


def send(pids, what):
    for pid in pids:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            pass


held = []
signal.signal(signal.SIGTERM, lambda *_: (send(held, signal.SIGCONT), os._exit(0)))
turn = 0
while True:
    if turn % 10 == 0:
        held = list(found())
    turn += 1
    if share < 1:
        send(held, signal.SIGSTOP)
        time.sleep(PERIOD * (1 - share))
    send(held, signal.SIGCONT)
    time.sleep(PERIOD * share)
END
chmod 755 /usr/local/sbin/cpu-share
cat >/run/systemd/system/cpu-share.service <<'END'
[Unit]
Description=Share of the CPU for batch processes
[Service]
ExecStart=/usr/local/sbin/cpu-share
END
systemctl daemon-reload
systemctl start cpu-share.service
