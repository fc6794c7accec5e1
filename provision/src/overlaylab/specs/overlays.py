"""What the roles ``overlay_<name>`` say about themselves (meta/overlay.yml): modes, needs, address range.

No overlay is known by name here: a new one is a new role.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from overlaylab.core.documents import Document, load_document, unknown
from overlaylab.core.errors import UserError
from overlaylab.core.model import JSON, Variant
from overlaylab.core.paths import PROVISION, ROLES
from overlaylab.specs import overlay_checks

PREFIX = "overlay_"
# Where roles are sought, the first folder first.
FOLDERS = [ROLES]


@dataclass(frozen=True)
class Wire:
    """What the underlay shows of this mode."""

    # pcap filter that matches its packets.
    filter: str
    # A payload marker is ``visible`` in them or ``absent``.
    marker: str
    # Endpoints are asked by ``icmp``, or by ``udp`` where a node answers pings in its container's place.
    probe: str = "icmp"
    # Where to look in the endpoint, where nothing of the mode passes the node's own interface.
    device: str | None = None


@dataclass(frozen=True)
class Mode:
    """One way to run an overlay.

    arguments: the role's arguments that select it; header_bytes: what encapsulation adds to an inner packet
    (E in the header arithmetic); family: the key of the mode whose snapshot this one may start from;
    features, commands, modules: what this mode needs of a kernel, and on a node, beyond what all modes need; units: of its
    daemons, where not all of the overlay's run in this mode; encapsulation, default_mtu: for the docs (overlay.schema.json);
    only_by_name: not among those that `all` means.
    """

    key: str
    mode: str | None
    encrypted: bool
    arguments: JSON
    family: str | None
    header_bytes: int
    wire: Wire
    features: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    units: tuple[str, ...] | None = None
    encapsulation: str | None = None
    default_mtu: int | str | None = None
    only_by_name: bool = False
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Needs:
    """What a node must have."""

    # Of whichever kernel it runs on, as ``kind:name`` (``machine.features``).
    features: tuple[str, ...] = ()
    # Those that a node with a kernel of its own loads; one may be built in.
    modules: tuple[str, ...] = ()
    # Programs.
    commands: tuple[str, ...] = ()
    # Modules that it uses where the kernel has them, and does without where not.
    modules_where_there: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overlay:
    """One overlay. ``name`` is spelled as in the table of published numbers.

    range: the addresses its endpoints get by default; range_argument: the role's argument that changes it.
    ports: what a firewall between the nodes must let through, ``6783/tcp``.
    daemons: recipes of provision/daemons/ that it takes; builds_on: overlays whose role it uses, with their recipes.
    units: systemd units of its daemons. mtu_argument_of: ``endpoint`` or ``underlay``. control_plane, policy: for the docs (overlay.schema.json).
    enforces_policy: whether its role installs overlay-policy, which allows and denies traffic to the endpoints.
    """

    name: str
    title: str
    version: str
    default_modes: tuple[str, ...]
    needs: Needs
    range: IPv4Network | None
    range_argument: str | None
    ports: tuple[str, ...]
    modes: Mapping[str, Mode]
    daemons: tuple[str, ...]
    builds_on: tuple[str, ...]
    units: tuple[str, ...]
    mtu_argument_of: str
    control_plane: str | None
    policy: str | None
    enforces_policy: bool
    source: Document = field(repr=False, compare=False)

    def variant(self, key: str) -> Variant:
        """The record of one mode. Raises UserError for an unknown key."""
        mode = self.modes.get(key)
        if mode is None:
            raise unknown("MODES", f"must be modes of {self.name}", key, self.modes)
        return Variant(self.name, mode.mode, mode.encrypted)


def role(name: str) -> Path:
    """The role's folder; spelled with underscores, as Ansible wants it."""
    own = PREFIX + name.replace("-", "_")
    return next((folder / own for folder in FOLDERS if (folder / own).is_dir()), ROLES / own)


def names() -> tuple[str, ...]:
    """Every overlay that has a role, sorted."""
    found = [path for folder in FOLDERS for path in folder.glob(f"{PREFIX}*/meta/overlay.yml")]
    return tuple(sorted({p.parts[-3].removeprefix(PREFIX).replace("_", "-") for p in found}))


def load(name: str) -> Overlay:
    """The overlay of a role. Raises UserError."""
    return _found_in(tuple(FOLDERS), name)


@cache
def _found_in(_: tuple[Path, ...], name: str) -> Overlay:
    if name not in names():
        raise unknown("overlay", "must be an overlay that has a role", name, names())
    overlay = read_overlay(role(name) / "meta" / "overlay.yml")
    if overlay.name != name:
        raise overlay.source.error(
            "name",
            rule="must be the role's own name",
            seen=f'"{overlay.name}"',
            fix=f"The role is {role(name).name}, so write {name}.",
        )
    return overlay


def read_overlay(path: Path) -> Overlay:
    """An overlay from any file, schema and cross-checks applied. Raises UserError."""
    document = load_document(path, ROLES / "overlay.schema.json")
    data = document.data
    network = None
    if data["range"] is not None:
        try:
            network = IPv4Network(data["range"])
        except ValueError as wrong:
            raise document.error(
                "range",
                rule="must be an IPv4 network",
                seen=f'"{data["range"]}": {wrong}',
                fix="Write the network's first address and its length, such as 10.32.0.0/12.",
            ) from None
    modes = {
        key: Mode(
            *(key, value["mode"], value["encrypted"], value["arguments"], value["family"]),
            value["header_bytes"],
            Wire(**value["wire"]),
            tuple(value.get("features", ())),
            tuple(value.get("commands", ())),
            tuple(value["units"]) if "units" in value else None,
            value.get("encapsulation"),
            value.get("default_mtu"),
            value.get("only_by_name", False),
            tuple(value.get("modules", ())),
        )
        for key, value in data["modes"].items()
    }
    _check_modes(document, modes)
    overlay_checks.check_features(document)
    overlay_checks.check_names(document, "daemons", "must be a recipe in provision/daemons/", _recipes())
    overlay_checks.check_names(document, "builds_on", "must be another overlay that has a role", names())
    overlay_checks.check_takes(document, role)
    return Overlay(
        name=data["name"],
        title=data["title"],
        version=str(data["version"]),
        default_modes=tuple(data["default_modes"]),
        needs=Needs(
            *(
                tuple(data["needs"].get(name, ()))
                for name in ("features", "modules", "commands", "modules_where_there")
            )
        ),
        range=network,
        range_argument=data["range_argument"],
        ports=tuple(data["ports"]),
        modes=modes,
        daemons=tuple(data.get("daemons", ())),
        builds_on=tuple(data.get("builds_on", ())),
        units=tuple(data.get("units", ())),
        mtu_argument_of=data.get("mtu_argument_of", "endpoint"),
        control_plane=data.get("control_plane"),
        policy=data.get("policy"),
        enforces_policy=data.get("enforces_policy", False),
        source=document,
    )


def _check_modes(document: Document, modes: Mapping[str, Mode]) -> None:
    name = document.data["name"]
    for key, mode in modes.items():
        right = Variant(name, mode.mode, mode.encrypted).key
        if key != right:
            raise document.error(
                "modes",
                key,
                rule="must be named after its mode, with -encrypted where it encrypts",
                seen=f'"{key}"',
                fix=f"Call it {right}, or correct mode and encrypted.",
            )
        if mode.family is not None and mode.family not in modes:
            wrong = unknown("", "must be another mode of this overlay", mode.family, modes)
            raise document.error("modes", key, "family", rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)
        if mode.encrypted and mode.wire.marker != "absent":
            raise document.error(
                "modes",
                key,
                "wire",
                "marker",
                rule="must be absent where the mode encrypts",
                seen=f'"{mode.wire.marker}"',
                fix="Write absent: a payload that can be read on the underlay is not encrypted.",
            )
    for index, key in enumerate(document.data["default_modes"]):
        if key not in modes:
            wrong = unknown("", "must be a mode of this overlay", key, modes)
            raise document.error("default_modes", index, rule=wrong.rule, seen=wrong.seen, fix=wrong.fix)


def _recipes() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in PROVISION.glob("daemons/*/build.yml")))


def foundations(name: str) -> tuple[Overlay, ...]:
    """The overlay and all that its role builds on, each once, itself first. Raises UserError."""
    found: dict[str, Overlay] = {}
    rest = [name]
    while rest:
        overlay = load(rest.pop(0))
        if overlay.name not in found:
            found[overlay.name] = overlay
            rest += overlay.builds_on
    return tuple(found.values())


def recipes(name: str) -> tuple[str, ...]:
    """The recipes of provision/daemons/ that the overlay's role takes, each once. Raises UserError."""
    return tuple(dict.fromkeys(recipe for overlay in foundations(name) for recipe in overlay.daemons))


def own_units(variant: Variant) -> tuple[str, ...]:
    """The systemd units of a variant's daemons: its mode's own choice, else its overlay's. Raises UserError."""
    overlay = load(variant.overlay)
    chosen = overlay.modes[variant.key].units
    return overlay.units if chosen is None else chosen


def units_of(variant: Variant) -> tuple[str, ...]:
    """A variant's own units and those of what its role builds on, which it need not start; only its own where its
    mode names them, be it none. Raises UserError."""
    if load(variant.overlay).modes[variant.key].units is not None:
        return own_units(variant)
    _, *below = foundations(variant.overlay)
    return tuple(dict.fromkeys([*own_units(variant), *(unit for overlay in below for unit in overlay.units)]))


def modules_of(variant: Variant) -> tuple[str, ...]:
    """Kernel modules that a variant uses: what all modes need, what its mode adds, and what it can do without."""
    overlay = load(variant.overlay)
    needs = overlay.needs
    return (*needs.modules, *overlay.modes[variant.key].modules, *needs.modules_where_there)


def select(name: str, modes: str | None = None) -> list[Variant]:
    """The modes to measure: MODES=fastdp,sleeve-encrypted, or the overlay's defaults. Raises UserError."""
    overlay = load(name)
    if modes is None:
        return [overlay.variant(key) for key in overlay.default_modes]
    keys = [key.strip() for key in modes.split(",")]
    if "" in keys:
        raise UserError(
            "MODES",
            "must be names with single commas between them",
            seen=f'"{modes}"',
            fix=f"Known: {', '.join(overlay.modes)}. Leave MODES out for {', '.join(overlay.default_modes)}.",
        )
    for key in keys:
        if keys.count(key) > 1:
            raise UserError(
                "MODES",
                "must name each mode once",
                seen=f'"{modes}"',
                fix="To measure more often, raise BLOCKS.",
            )
    return [overlay.variant(key) for key in keys]


def role_digest(name: str) -> str:
    """SHA-256 in hex over every file that decides how this overlay is converged.

    That is its role and those that it builds on, what all overlay roles share, the pinned builds of its daemons
    and the playbooks. Raises UserError.
    """
    folders = [role(overlay.name) for overlay in foundations(name)]
    folders += [PROVISION / "daemons" / recipe for recipe in recipes(name)]
    folders += [role("common"), PROVISION / "playbooks"]
    digest = hashlib.sha256()
    for folder in folders:
        base = PROVISION if folder.is_relative_to(PROVISION) else folder.parent
        for path in map(folder.joinpath, overlay_checks.files_below(folder)):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(base)} {content}\n".encode())
    return digest.hexdigest()


def options(name: str) -> dict[str, dict[str, Any]]:
    """The arguments of the overlay's role that its user may set, as meta/argument_specs.yml describes them.

    Those that select a mode are not among them: modes have names. Raises UserError.
    """
    file = role(name) / "meta" / "argument_specs.yml"
    if not file.is_file():
        return {}
    specs = YAML(typ="safe", pure=True).load(file)["argument_specs"]["main"]["options"]
    of_modes = {argument for mode in load(name).modes.values() for argument in mode.arguments}
    own = PREFIX + name.replace("-", "_")
    return {
        option: about for option, about in specs.items() if option.startswith(own) and option not in of_modes
    }


def role_arguments(name: str, written: str | None) -> dict[str, Any]:
    """ARGUMENTS='overlay_weave_mtu=1410 …' as the role takes it: {argument: value}. Raises UserError.

    Known are its `options`.
    """
    if not written:
        return {}
    yaml, known = YAML(typ="safe", pure=True), options(name)
    found: dict[str, Any] = {}
    for word in shlex.split(written):
        option, equals, text = word.partition("=")
        if not equals:
            raise UserError("ARGUMENTS", "must be name=value, with spaces between several", seen=f'"{word}"',
                            fix=f"Known: {', '.join(known)}.")  # fmt: skip
        if option not in known:
            raise unknown("ARGUMENTS", f"must name arguments of the role of {name}", option, known)
        value = yaml.load(text)
        kind = known[option].get("type", "str")
        if not isinstance(value, {"int": int, "bool": bool}.get(kind, str)) or (
            kind == "int" and value is True
        ):
            raise UserError(
                f"ARGUMENTS: {option}",
                f"must be of type {kind}",
                seen=f'"{text}"',
                fix=str(known[option]["description"]),
            )
        found[option] = value
    return found


def with_arguments(overlay: Overlay, arguments: Mapping[str, Any]) -> Overlay:
    """The overlay as these arguments make it: its address range, where they change it. Raises UserError."""
    changed = arguments.get(overlay.range_argument) if overlay.range_argument else None
    if changed is None:
        return overlay
    try:
        return replace(overlay, range=IPv4Network(changed))
    except ValueError as wrong:
        raise UserError(f"ARGUMENTS: {overlay.range_argument}", "must be an IPv4 network", seen=f'"{changed}": {wrong}',
                        fix="Write its first address and length, such as 10.32.0.0/12.") from None  # fmt: skip


def arguments_of(variant: Variant, role_arguments: Mapping[str, JSON]) -> dict[str, Any]:
    """What the variant's role is called with: what selects the mode, and {overlay: arguments} on top."""
    mode = load(variant.overlay).modes[variant.key]
    return {**mode.arguments, **role_arguments.get(variant.overlay, {})}
