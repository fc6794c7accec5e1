"""What of a node's network an overlay could leave changed: collected, made comparable, compared in words.

Used to prove that a reset, or the profile ``none``, leaves no trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

_HELPERS = r"""
# A JSON array of the lines that a command prints.
lines() {
    printf '['
    "$@" 2>/dev/null | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/\t/\\t/g' -e 's/.*/"&"/' -e '$!s/$/,/'
    printf ']'
}
# What a command prints as JSON, or null where it prints nothing.
json() { answer=$("$@" 2>/dev/null); printf '%s' "${answer:-null}"; }
# Nor where the kernel takes no modules: it has all that it ever will.
present() { [ -d "/sys/module/$1" ] || [ ! -e /proc/modules ]; }
# Many of these tools load modules when they ask: where a module is absent, so is what it would be asked for.
whenever() { module=$1; shift; if present "$module"; then "$@"; else printf null; fi; }
"""

_FIREWALL = r"""
printf ',"nft":'; whenever nf_tables json nft -j list ruleset
printf ',"iptables":'; whenever nf_tables lines iptables-nft-save
printf ',"ip6tables":'; whenever nf_tables lines ip6tables-nft-save
printf ',"iptables_legacy":'; whenever iptable_filter lines iptables-legacy-save
printf ',"ip6tables_legacy":'; whenever ip6table_filter lines ip6tables-legacy-save
"""

# POSIX sh for root on a node: prints one JSON document. Loads nothing and changes nothing.
COLLECT = (
    _HELPERS
    + r"""
printf '{"modules":'; lines sh -c 'while read -r name _; do echo "$name"; done </proc/modules'
printf ',"link":'; json ip -j -d link show
printf ',"addr":'; json ip -j -d addr show
printf ',"route4":'; json ip -j -4 route show table all
printf ',"route6":'; json ip -j -6 route show table all
printf ',"rule4":'; json ip -j -4 rule show
printf ',"rule6":'; json ip -j -6 rule show
"""
    + _FIREWALL
    + r"""
printf ',"ipset":'; whenever ip_set lines ipset save
printf ',"qdisc":'; json tc -j qdisc show
printf ',"class":{'
comma=
for link in /sys/class/net/*; do
    [ -d "$link" ] || continue
    device=${link##*/}
    # As text: iproute2 6.1 has no JSON for HTB's classes.
    printf '%s"%s":' "$comma" "$device"; lines tc class show dev "$device"; comma=,
done
printf '},"filter":{'
comma=
for link in /sys/class/net/*; do
    [ -d "$link" ] || continue
    device=${link##*/}
    printf '%s"%s":' "$comma" "$device"; json tc -j filter show dev "$device"; comma=,
done
printf '},"sysctl":'; lines sysctl --all --ignore --pattern '^net\.'
# Without the keys.
printf ',"xfrm_policy":'; whenever xfrm_user lines ip -o xfrm policy list
printf ',"xfrm_state":'; whenever xfrm_user lines ip -o xfrm state list nokeys
printf ',"netns":'; lines ip netns list
printf '}\n'
"""
)

# The same of its packet filters alone.
FIREWALL = f"""{_HELPERS}
printf '{{"none":null'
{_FIREWALL}
printf '}}\\n'
"""

# Loaded when the first IPsec state asks for random numbers. The kernel keeps the generator that it made then, and
# with it these modules, until it is shut down (crypto/rng.c): no reset could unload them, and they are no network.
_KEPT_MODULES = frozenset({"drbg", "jitterentropy_rng", "sha512_generic", "sha3_generic"})

# {section: {what it is about: its value}}.
State = dict[str, dict[str, Any]]

_DROPPED_ANYWHERE = frozenset(
    {
        # Numbers that the kernel hands out; names and addresses say which thing is meant.
        "ifindex", "link_index", "link_netnsid", "handle", "index", "iflink",
        # Counters and ages: traffic goes on.
        "stats", "stats64", "bytes", "packets", "drops", "overlimits", "requeues", "backlog", "qlen", "used",
        "refcnt", "gc_timer", "hello_timer", "tcn_timer", "topology_change_timer", "topology_change_detected",
        # Leases and router advertisements run down and are renewed.
        "valid_life_time", "preferred_life_time", "expires",
    }
)  # fmt: skip

_VOLATILE_SYSCTL = re.compile(
    # Counts of what is in use now.
    r"nf_conntrack_count$|\.dst_entries$"
    # Secrets and random numbers; each read may differ.
    r"|stable_secret$|fastopen_key$|random"
    # Follows from free memory at the time that a namespace or a module comes up.
    r"|\.tcp_mem$|\.udp_mem$"
)


def normalise(document: Mapping[str, Any]) -> State:
    """COLLECT's document as comparable values: what changes by itself is left out, and order where it means nothing.

    The order of rules within a chain is kept: it decides. MAC addresses are kept: devices that stay keep theirs.
    """
    state: State = {
        "module": {name: True for name in document["modules"] if name not in _KEPT_MODULES},
        "namespace": {line.split()[0]: True for line in document["netns"] if line.strip()},
        "device": {link["ifname"]: _link(link) for link in document["link"] or ()},
        "address": _addresses(document["addr"] or ()),
        "route": _keyed(_routes(document)),
        "policy rule": _keyed(
            (f"{family} {_brief(rule)}", _plain(rule))
            for family in ("4", "6")
            for rule in document[f"rule{family}"] or ()
        ),
        "qdisc": _keyed((f"{q['kind']} on {q['dev']}", _plain(q)) for q in document["qdisc"] or ()),
        "traffic class": _classes(document["class"]),
        "traffic filter": _by_device(document["filter"], "kind"),
        "ipset": dict.fromkeys(_uncommented(document["ipset"]), True),
        "sysctl": _sysctl(document["sysctl"]),
        "IPsec policy": {
            " ".join(line.replace("\\", " ").split()): True for line in document["xfrm_policy"] or ()
        },
        "IPsec state": _security_associations(document["xfrm_state"] or ()),
    }
    return state | firewall(document)


def firewall(document: Mapping[str, Any]) -> State:
    """The packet filters of COLLECT's document, or FIREWALL's."""
    found = {"nftables": _nft(document["nft"])}
    for name in ("iptables", "ip6tables", "iptables_legacy", "ip6tables_legacy"):
        tables = _iptables(document[name])
        if name.endswith("_legacy"):
            # Who looks into such a table makes it, and it goes with its module alone, which is looked at by itself.
            tables = {table: lines for table, lines in tables.items() if not _is_idle(lines)}
        found[name.replace("_", " ")] = tables
    return found


def difference(before: State, after: State) -> list[str]:
    """What differs, a sentence each; empty where nothing does."""
    told = []
    for section in before | after:
        old, new = before.get(section, {}), after.get(section, {})
        for what in old | new:
            if what not in new:
                told.append(f"{section} {what} is gone{_value(old[what])}")
            elif what not in old:
                told.append(f"{section} {what} is new{_value(new[what])}")
            elif old[what] != new[what]:
                told.append(f"{section} {what} {_change(old[what], new[what])}")
    return told


def _value(value: Any) -> str:
    return "" if value is True or isinstance(value, dict | list) else f" ({value})"


def _change(old: Any, new: Any) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        fields = [
            f"{name} was {_shown(old.get(name))}, is {_shown(new.get(name))}"
            for name in old | new
            if old.get(name) != new.get(name)
        ]
        return "has changed: " + "; ".join(fields)
    if isinstance(old, list) and isinstance(new, list):
        gone = [item for item in old if item not in new]
        come = [item for item in new if item not in old]
        told = [f"without {_shown(item)}" for item in gone] + [f"with {_shown(item)}" for item in come]
        return "has changed: " + ("; ".join(told) or "another order")
    return f"was {_shown(old)}, is {_shown(new)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "absent" if value is None else json.dumps(value)


def _plain(value: Any) -> Any:
    """The value without what changes by itself, at any depth."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _DROPPED_ANYWHERE}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _link(link: Mapping[str, Any]) -> Any:
    plain = _plain(link)
    # Flags have no order; the addresses are a section of their own.
    plain["flags"] = sorted(plain.get("flags", ()))
    plain.pop("addr_info", None)
    return plain


def _addresses(devices: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        f"{info['local']}/{info['prefixlen']} on {device['ifname']}": _plain(info)
        for device in devices
        for info in device.get("addr_info", ())
    }


def _routes(document: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for family in ("4", "6"):
        for route in document[f"route{family}"] or ():
            table = route.get("table", "main")
            via = f" via {route['gateway']}" if "gateway" in route else ""
            device = f" dev {route['dev']}" if "dev" in route else ""
            kind = route.get("type", "unicast")
            prefix = "" if kind == "unicast" else f"{kind} "
            yield f"{prefix}{route['dst']}{via}{device} in table {table} (IPv{family})", _plain(route)


def _brief(rule: Mapping[str, Any]) -> str:
    words = [f"{key} {value}" for key, value in rule.items() if key not in ("srclen", "dstlen")]
    return " ".join(words)


def _classes(devices: Mapping[str, Iterable[str] | None]) -> dict[str, str]:
    """tc(8)'s text ``class htb 1:10 parent 1:1 …``; fq_codel's are the flows of the moment."""
    lines = ((device, line.split()) for device, found in devices.items() for line in found or ())
    return {
        f"{kind} {handle} on {device}": " ".join(rest)
        for device, (_, kind, handle, *rest) in lines
        if kind != "fq_codel"
    }


def _by_device(devices: Mapping[str, Any], name: str) -> dict[str, Any]:
    return _keyed(
        (f"{item.get(name) or item.get('kind', '?')} on {device}", _plain(item))
        for device, items in devices.items()
        for item in items or ()
        if item
    )


def _keyed(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of pairs; what has the same name becomes a sorted list, so that none hides another."""
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {
        key: values[0] if len(values) == 1 else sorted(values, key=lambda v: json.dumps(v, sort_keys=True))
        for key, values in found.items()
    }


def _nft(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Tables, chains with their rules in order, and sets. A rule's counters are left out."""
    objects: dict[str, Any] = {}
    rules: dict[str, list[Any]] = {}
    for item in (document or {}).get("nftables", ()):
        for kind, value in item.items():
            if kind == "metainfo":
                continue
            plain = _plain(value)
            if kind == "rule":
                plain["expr"] = ["counter" if "counter" in e else e for e in plain.get("expr", ())]
                rules.setdefault(f"{value['family']} {value['table']} {value['chain']}", []).append(
                    plain["expr"]
                )
            elif kind == "chain":
                objects[f"chain {value['family']} {value['table']} {value['name']}"] = plain
            else:
                name = value.get("name", "")
                where = f"{value.get('family', '')} {value.get('table', '')}".strip()
                objects[f"{kind} {where} {name}".replace("  ", " ")] = plain
    return objects | {f"rules of {chain}": found for chain, found in rules.items()}


def _iptables(text: Iterable[str] | None) -> dict[str, Any]:
    """{table: lines in order}; counters of chains and the comments with the time are left out."""
    tables: dict[str, list[str]] = {}
    table = ""
    for line in _uncommented(text):
        if line.startswith("*"):
            table = line[1:]
            tables[table] = []
        elif line != "COMMIT":
            tables[table].append(re.sub(r" \[\d+:\d+\]", "", line))
    return tables


def _is_idle(lines: Iterable[str]) -> bool:
    """Whether a table has no chain of its own, no rule, and lets everything pass."""
    return all(re.fullmatch(r":[A-Z]+ ACCEPT", line) for line in lines)


def _uncommented(text: Iterable[str] | None) -> list[str]:
    return [line for line in text or () if line.strip() and not line.startswith("#")]


def _sysctl(text: Iterable[str] | None) -> dict[str, Any]:
    values = {}
    for line in text or ():
        name, _, value = line.partition(" = ")
        if not _VOLATILE_SYSCTL.search(name):
            values[name] = " ".join(value.split())
    return values


def _security_associations(text: Iterable[str]) -> dict[str, Any]:
    """Addresses, protocol and index of each; replay windows and lifetimes run on."""
    pattern = r"src (\S+) dst (\S+)\s+proto (\S+) spi (\S+) .*?mode (\S+)"
    found = (re.match(pattern, line.replace("\\", " ")) for line in text)
    return {f"{m[3]} {m[1]} to {m[2]} spi {m[4]} mode {m[5]}": True for m in found if m}
