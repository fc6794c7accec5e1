"""Takes away what an overlay left in the kernel: rules, emptied tables, modules. For overlay-reset.

Only the standard library, and no import of what needs long to load: this runs on emulated CPUs too.
"""

import json
import os
import subprocess
import sys
import time

STATE = "/run/overlaylab/overlay"
LEASES = "/run/overlaylab/cni"
"""Of the CNI plugin host-local (common.sh)."""
SYSCTLS = "/proc/sys"
os.environ["PATH"] = "/opt/overlaylab/bin:" + os.environ.get("PATH", os.defpath)
ENDPOINTS = ("endpoint", "endpoint2")
NETFILTER_TABLES = ("filter", "nat", "mangle", "raw", "security")
CAP_SYS_MODULE = 16
"""Number of the capability (linux/capability.h)."""


def run(*command, timeout=30, stdin=None):
    """Run a command to its end; its output, or None where it failed. What is already gone may fail."""
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, errors="replace", timeout=timeout
        )
    except (OSError, subprocess.TimeoutExpired) as wrong:
        print(f"overlay-reset: {command[0]}: {wrong}", file=sys.stderr)
        return None
    if done.returncode:
        print(f"overlay-reset: {' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return done.stdout


def loaded(module):
    """Whether the kernel has the module in it. One that takes no modules is asked for the thing itself."""
    return os.path.isdir(f"/sys/module/{module}") or not os.path.exists("/proc/modules")


def legacy_tables():
    """Tables of legacy iptables that this network namespace may have rules in."""
    in_use = _read("/proc/net/ip_tables_names").split()
    return [
        name for name in NETFILTER_TABLES if name in in_use or os.path.isdir(f"/sys/module/iptable_{name}")
    ]


def may_unload():
    """Whether modules are this node's to unload: in a container they are the machine's, and other nodes use them."""
    bounding = next(line for line in _read("/proc/self/status").splitlines() if line.startswith("CapBnd:"))
    return bool(int(bounding.split()[1], 16) >> CAP_SYS_MODULE & 1)


def link_exists(name):
    return os.path.isdir(f"/sys/class/net/{name}")


def stop_unit(unit):
    """Stop a daemon and wait for it; systemd kills what does not stop. That it had failed is forgotten, too."""
    run("systemctl", "stop", unit, timeout=60)
    if run("systemctl", "show", "--property", "ActiveState", "--value", unit) == "failed\n":
        run("systemctl", "reset-failed", unit)


def stop_etcd():
    """Stop the node's member of the shared etcd, if it is one. Its data goes with it (overlaylab-etcd.service)."""
    if os.path.exists("/run/systemd/system/overlaylab-etcd.service"):
        stop_unit("overlaylab-etcd.service")


def remove_endpoint():
    """Delete the endpoint's namespace, and the second one's, with whatever still runs in them.

    The root namespace only loses the names.
    """
    for name in ENDPOINTS:
        remove_namespace(name)


def remove_namespace(name):
    path = f"/run/netns/{name}"
    if not os.path.exists(path):
        return
    if os.stat(path).st_ino != os.stat("/proc/1/ns/net").st_ino:
        # A process in it would keep the namespace, and with it its devices, alive.
        pids = (run("ip", "netns", "pids", name) or "").split()
        if pids:
            run("kill", "-KILL", *pids)
    run("ip", "netns", "delete", name)


def iptables_rules(table=None):
    """{variant: lines of iptables-save(8)} of the variants in use: asking the other would load its modules."""
    found = {}
    only = ("-t", table) if table else ()
    if loaded("nf_tables"):
        found["nft"] = (run("iptables-nft-save", *only) or "").splitlines()
    if set(legacy_tables()) & {table or name for name in NETFILTER_TABLES}:
        found["legacy"] = (run("iptables-legacy-save", *only) or "").splitlines()
    return found


def remove_rules(is_own, chain_prefix):
    """Delete iptables rules and chains.

    is_own: decides on a line of iptables-save(8); chain_prefix: what the names of own chains begin with.
    """
    for variant, lines in iptables_rules().items():
        batch = removal(lines, is_own, chain_prefix)
        if batch:
            run(f"iptables-{variant}-restore", "--noflush", stdin="\n".join(batch) + "\n")


def removal(lines, is_own, chain_prefix):
    """Input for iptables-restore(8) that deletes the own rules and chains out of what iptables-save printed."""
    batch, table, rules, chains = [], "", [], []
    for line in lines:
        if line.startswith("*"):
            table, rules, chains = line[1:], [], []
        elif line.startswith(f":{chain_prefix}"):
            chains.append(line[1:].split()[0])
        elif line.startswith("-A ") and not line.startswith(f"-A {chain_prefix}") and is_own(line):
            rules.append("-D" + line[2:])
        elif line == "COMMIT" and (rules or chains):
            flush = [f"-F {chain}" for chain in chains]
            batch += [f"*{table}", *rules, *flush, *(f"-X {chain}" for chain in chains), "COMMIT"]
    return batch


def remove_empty_tables():
    """Delete the chains and tables that iptables-nft made on the way, where nobody else has put a rule in.

    Without a record of what was there before, an empty chain may be anybody's.
    """
    if not loaded("nf_tables") or not os.path.exists(f"{STATE}/chains.before"):
        return
    before_chains, before_tables = set(), set()
    for item in _nft_objects(_read(f"{STATE}/chains.before")):
        if "chain" in item:
            chain = item["chain"]
            before_chains.add((chain["family"], chain["table"], chain["name"]))
            before_tables.add((chain["family"], chain["table"]))
    objects = _nft_objects(run("nft", "-j", "list", "ruleset"))
    used = {(i["rule"]["family"], i["rule"]["table"], i["rule"]["chain"]) for i in objects if "rule" in i}
    kept, commands = set(), []
    for item in objects:
        chain = item.get("chain")
        if not chain or chain["table"] not in NETFILTER_TABLES or chain["family"] not in ("ip", "ip6"):
            continue
        key = (chain["family"], chain["table"], chain["name"])
        if key in before_chains or key in used or chain.get("policy", "accept") != "accept":
            kept.add(key[:2])
        else:
            commands.append(("chain", key))
    for item in objects:
        table = item.get("table")
        if table and table["name"] in NETFILTER_TABLES and table["family"] in ("ip", "ip6"):
            key = (table["family"], table["name"])
            if key not in before_tables and key not in kept:
                commands = [(kind, other) for kind, other in commands if other[:2] != key]
                commands.append(("table", key))
    if commands:
        script = "".join(f"delete {kind} {' '.join(key)}\n" for kind, key in commands)
        run("nft", "-f", "-", stdin=script)


def restore_sysctls():
    """Write back the kernel settings that record_sysctls (common.sh) noted, in its order, where they differ.

    Order counts: writing net.ipv4.ip_forward sets every device's forwarding.
    """
    for line in _read(f"{STATE}/sysctls.before").splitlines():
        name, value = line.split(" ", 1)
        path = f"{SYSCTLS}/{name}"
        # A device may be gone.
        if _read(path).split() not in ([], value.split()):
            try:
                with open(path, "w") as file:
                    file.write(value)
            except OSError as wrong:
                print(f"overlay-reset: {name}: {wrong}", file=sys.stderr)


def unload_modules(patience=20.0):
    """Unload what was loaded between record_before and record_after (common.sh) and is not in use.

    patience: seconds without progress, while a reference is one that the kernel gives up a little later.
    True where nothing is left.
    """
    before = _names(_read(f"{STATE}/modules.before"))
    if not before or not may_unload():
        return True
    added = (_names(_read(f"{STATE}/modules.after")) or _names(_read("/proc/modules"))) - before
    added -= KEPT_BY_THE_KERNEL
    last = time.monotonic()
    while True:
        rows = [line.split() for line in _read("/proc/modules").splitlines()]
        here = [row for row in rows if row[0] in added]
        if not here:
            return True
        idle = [row[0] for row in here if row[2] == "0" and row[3] == "-" and not _carries_rules(row[0])]
        if idle and run("rmmod", *idle) is not None:
            last = time.monotonic()
        elif time.monotonic() - last > patience or not any(_waits(row, added) for row in here):
            return False
        else:
            time.sleep(0.1)


def forget():
    """The state before the overlay is the state again: the next overlay records its own."""
    for name in ("modules.before", "modules.after", "chains.before", "sysctls.before"):
        if os.path.exists(f"{STATE}/{name}"):
            os.remove(f"{STATE}/{name}")


# The kernel's own random generator, made when something first asks for random numbers (an IPsec state does):
# it is kept from then on (crypto/rng.c, crypto_put_default_rng), and so are these modules.
KEPT_BY_THE_KERNEL = frozenset({"drbg", "jitterentropy_rng", "sha512_generic", "sha3_generic"})


def _waits(row, added):
    """Whether a module may become idle without us: nothing says what uses it, or all that does is going, too."""
    users = set(row[3].strip("-,").split(",")) - {""}
    return users <= added


def _carries_rules(module):
    """Legacy iptables drops a table's rules with its module: one that got rules from elsewhere stays."""
    if not module.startswith(("iptable_", "ip6table_")):
        return False
    save = "iptables-legacy-save" if module.startswith("iptable_") else "ip6tables-legacy-save"
    table = module.split("_", 1)[1]
    return any(line.startswith("-A") for line in (run(save, "-t", table) or "-A").splitlines())


def _nft_objects(text):
    return json.loads(text)["nftables"] if text and text.strip() else []


def _names(text):
    return {line.split()[0] for line in text.splitlines() if line.strip()}


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""
