"""What an overlay's role brings to a node: by its files' names and by meta/overlay.yml, so that no role lists it."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping

from ansible.errors import AnsibleFilterError
from ansible.module_utils.common.yaml import yaml_load

SCRIPTS = "/opt/overlaylab/overlay"
UNITS = "/run/systemd/system"
"""After a reboot nothing of the overlay is left there, and nothing starts it."""
STATE = "/run/overlaylab/overlay"
ETCD = {
    "files": ("etcd.sh", "overlaylab-etcd.service"),
    "template": "etcd.j2",
    "folder": "/run/overlaylab/etcd",
}


@functools.cache
def overlay_meta(role: str) -> dict:
    """What the role in this folder says about itself. Variables ask some twenty times for it in each task."""
    return yaml_load(_read(os.path.join(role, "meta", "overlay.yml")))


def overlay_role(overlay: str, roles: str) -> str:
    """The folder of an overlay's role. roles: folders of roles, with colons, the first one first."""
    paths = [os.path.join(folder, f"overlay_{_underscored(overlay)}") for folder in roles.split(":")]
    return next((path for path in paths if os.path.isdir(path)), paths[-1])


def overlay_mode(meta: Mapping, arguments: Mapping) -> Mapping:
    """The mode that these arguments select: of those that fit, the one that names most of them."""
    fitting = [
        mode
        for mode in meta["modes"].values()
        if all(arguments[name] == value for name, value in mode["arguments"].items())
    ]
    if not fitting:
        given = {name: arguments[name] for mode in meta["modes"].values() for name in mode["arguments"]}
        raise AnsibleFilterError(f"no mode of {meta['name']} has these arguments: {given}")
    return max(fitting, key=lambda mode: len(mode["arguments"]))


def overlay_scripts(meta: Mapping, roles: str, mode: Mapping, first: bool) -> list[dict[str, str]]:
    """path on the node, content and mode of each script and unit. roles: see overlay_role."""
    absent = () if first else _converge(meta).get("first_node", ())
    return [
        {"path": path, "content": _read(source), "mode": "0644" if "." in os.path.basename(path) else "0755"}
        for source, path in _sources(meta, roles, [mode]).items()
        if os.path.basename(path) not in absent
    ]


def overlay_templates(meta: Mapping, roles: str) -> list[str]:
    """Paths of the templates that the settings are made of."""
    templates = {_folder(roles, meta["name"], "templates"): None} | {
        _folder(roles, other, "templates"): taken.get("templates", ())
        for other, taken in meta.get("takes", {}).items()
    }
    found = [
        os.path.join(folder, name)
        for folder, names in templates.items()
        for name in (_names(folder) if names is None else names)
    ]
    etcd = [os.path.join(_folder(roles, "common", "templates"), ETCD["template"])]
    return found + (etcd if "etcd" in _converge(meta) else [])


def overlay_setting_paths(templates: Iterable[str]) -> list[str]:
    """Where on the node is what becomes of each template."""
    names = [os.path.basename(path) for path in templates]
    return [
        f"{ETCD['folder']}/settings" if name == ETCD["template"] else f"{STATE}/{name.removesuffix('.j2')}"
        for name in names
    ]


def overlay_stale(found: Mapping[str, str | None], wanted: Mapping[str, str | None]) -> bool:
    """Whether the overlay was started with other settings. found: {path: SHA-256}, wanted: {path: content}, or None."""
    digests = {
        path: None if content is None else hashlib.sha256(content.encode()).hexdigest()
        for path, content in wanted.items()
    }
    return any(found.values()) and dict(found) != digests


def overlay_daemons(meta: Mapping, built: Mapping[str, Mapping]) -> dict[str, str]:
    """{path on the node: SHA-256} of the daemons, each in the folder of the overlay that has its recipe."""
    if "daemons" in meta:
        wanted = {meta["name"]: list(built)}
    else:
        wanted = {other: taken.get("daemons", ()) for other, taken in meta.get("takes", {}).items()}
    return {
        f"{SCRIPTS}/{_underscored(name)}/{binary}": built[binary]["sha256"]
        for name, binaries in wanted.items()
        for binary in binaries
    }


def overlay_paths(meta: Mapping, roles: str) -> list[str]:
    """What the reset removes, in whichever mode and on whichever node it is there. Daemons stay."""
    etcd = [ETCD["folder"]] if "etcd" in _converge(meta) else []
    made = _converge(meta).get("makes", [])
    return sorted({*_sources(meta, roles, meta["modes"].values()).values(), STATE, *etcd, *made})


def _sources(meta: Mapping, roles: str, modes: Iterable[Mapping]) -> dict[str, str]:
    """{file of a role: its path on the node}."""
    common = _folder(roles, "common")
    etcd = "etcd" in _converge(meta)
    files = {
        os.path.join(common, name): _target("common", name)
        for name in _names(common)
        if etcd or name not in ETCD["files"]
    }
    own = _folder(roles, meta["name"])
    files |= {os.path.join(own, name): _target(meta["name"], name) for name in _names(own)}
    for taken in (meta.get("takes", {}), *(mode.get("takes", {}) for mode in modes)):
        for other, parts in taken.items():
            files |= {
                os.path.join(_folder(roles, other), name): _target(other, name)
                for name in parts.get("files", ())
            }
    return files


def _target(overlay: str, name: str) -> str:
    """A unit is systemd's; what lies in a folder below ``files`` is put below the overlay's own folder."""
    if name.endswith(".service"):
        return f"{UNITS}/{name}"
    return f"{SCRIPTS}/{_underscored(overlay)}/{name}" if "/" in name else f"{SCRIPTS}/{name}"


def _converge(meta: Mapping) -> Mapping:
    return meta.get("converge", {})


def _underscored(overlay: str) -> str:
    return overlay.replace("-", "_")


def _folder(roles: str, overlay: str, kind: str = "files") -> str:
    return os.path.join(overlay_role(overlay, roles), kind)


def _names(folder: str) -> list[str]:
    """Every file below a folder but what an editor or an interpreter left."""
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [
            os.path.relpath(os.path.join(where, name), folder)
            for name in names
            if not name.endswith(("~", ".swp", ".pyc"))
        ]
    return sorted(found)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class FilterModule:
    def filters(self):
        return {
            "overlay_meta": overlay_meta,
            "overlay_role": overlay_role,
            "overlay_mode": overlay_mode,
            "overlay_scripts": overlay_scripts,
            "overlay_templates": overlay_templates,
            "overlay_setting_paths": overlay_setting_paths,
            "overlay_stale": overlay_stale,
            "overlay_daemons": overlay_daemons,
            "overlay_paths": overlay_paths,
        }
