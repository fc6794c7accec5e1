"""Takes away what Felix and Calico's CNI plugin leave on a node. For the overlay-reset of those that use them."""

import json
import os
import re
import shutil

import traces

FELIX = "overlaylab-calico-felix.service"
RUN = "/run/overlaylab/calico"

# Felix signs each rule outside its own chains with a hash, and names its sets cali<family>… (felix/rules).
OWN_RULE = re.compile(r'--comment "?cali:')
CHAINS = "cali-"
SETS = "cali"


def stop_felix():
    traces.stop_unit(FELIX)


def remove_endpoint():
    """The endpoint and its device here: the kernel takes a deleted namespace's devices away a little later."""
    traces.remove_endpoint()
    for link in os.listdir("/sys/class/net"):
        if link.startswith("cali"):
            traces.run("ip", "link", "delete", link)


def remove_rules():
    """Felix's rules, then the sets that they name."""
    traces.remove_rules(OWN_RULE.search, CHAINS)
    if traces.loaded("ip_set"):
        for name in own_sets(traces.run("ipset", "list", "-name") or ""):
            traces.run("ipset", "destroy", name)


def own_sets(listed):
    """Names of Felix's sets out of what `ipset list -name` prints; a set of sets goes before its members."""
    return sorted((name for name in listed.split() if name.startswith(SETS)), reverse=True)


def remove_files():
    """What Calico's programs wrote beyond their units' own folders."""
    for folder in (RUN, "/run/calico"):
        shutil.rmtree(folder, ignore_errors=True)
    # The empty folder that the units' own is bound over.
    if os.path.isdir("/var/lib/calico") and not os.listdir("/var/lib/calico"):
        os.rmdir("/var/lib/calico")


def routes():
    return json.loads(traces.run("ip", "-j", "-4", "route", "show") or "[]")
