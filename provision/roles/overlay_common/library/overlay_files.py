#!/usr/bin/python
"""Writes small files and checks large ones, all in one round trip."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: overlay_files
short_description: writes small files and checks large ones, in one round trip
description:
  - On an emulated CPU a task costs seconds whatever it does, so that a copy for each of five files would
    take longer than starting the overlay.
  - A file is replaced in one step, and only where its content or mode differs.
options:
  files:
    description: what to write; content None removes the file.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true}
      content: {type: str}
      mode: {type: str, default: "0644"}
  secrets:
    description: path and content of files that only root may read, content None removes the file. No log has them.
    type: dict
    default: {}
  digests:
    description: path and SHA-256 (in hex) of files that must be there already; the folder of one that is not
      is made, so that it can be copied.
    type: dict
    default: {}
author: overlaylab
"""

RETURN = """
written:
  description: paths that were written or removed.
  type: list
missing:
  description: those of C(digests) that are absent or of other content.
  type: list
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str"},
                    "mode": {"type": "str", "default": "0644"},
                },
            },
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "digests": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    written = []
    secrets = [
        {"path": path, "content": content, "mode": "0600"}
        for path, content in module.params["secrets"].items()
    ]
    for file in [*module.params["files"], *secrets]:
        mode = int(file["mode"], 8)
        content = None if file["content"] is None else file["content"].encode()
        if (content, mode if content is not None else None) != read(file["path"]):
            written.append(file["path"])
            if not module.check_mode:
                write(file["path"], content, mode)
    missing = [path for path, digest in module.params["digests"].items() if sha256(path) != digest]
    if not module.check_mode:
        for path in missing:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    module.exit_json(changed=bool(written), written=written, missing=missing)


def read(path: str) -> tuple[bytes | None, int | None]:
    """Content and mode of a file; both None where it is absent."""
    try:
        with open(path, "rb") as file:
            return file.read(), os.fstat(file.fileno()).st_mode & 0o7777
    except FileNotFoundError:
        return None, None


def write(path: str, content: bytes | None, mode: int) -> None:
    """Replace a file in one step. Its mode is set before its content: it may be a secret."""
    if content is None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=folder)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.remove(temporary)
        raise


def sha256(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


if __name__ == "__main__":
    main()
