#!/usr/bin/python
"""Writes files, unpacks large ones and runs a command, all in one round trip."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import tempfile
import zlib

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: overlay_files
short_description: writes files, unpacks large ones and runs a command, in one round trip
description:
  - On an emulated CPU a task costs seconds whatever it does, so that a copy for each of five files would
    take longer than starting the overlay.
  - A file is replaced in one step, and only where its content or mode differs.
  - What the command prints is in C(stdout) and C(stderr), its exit code in C(rc); where it fails, so does the task.
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
  archives:
    description: path and SHA-256 (in hex) of programs that lie there as gzip, under the same name with .gz.
    type: dict
    default: {}
  command:
    description: what is run when the files are there, as a list of words; a line C(changed) in what it prints counts.
    type: list
    elements: str
    default: []
author: overlaylab
"""

RETURN = """
written:
  description: paths that were written or removed.
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
            "archives": {"type": "dict", "default": {}},
            "command": {"type": "list", "elements": "str", "default": []},
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
    if module.check_mode:
        module.exit_json(changed=bool(written), written=written)
    for path, digest in module.params["archives"].items():
        if not unpack(path, digest):
            module.fail_json(
                msg=f"{path}.gz did not arrive whole: its content has another SHA-256 than {digest}"
            )
        written.append(path)
    if not module.params["command"]:
        module.exit_json(changed=bool(written), written=written)
    code, stdout, stderr = module.run_command(module.params["command"])
    result = {"written": written, "rc": code, "stdout": stdout, "stderr": stderr}
    if code:
        module.fail_json(msg=f"{module.params['command'][0]} ended with {code}", **result)
    module.exit_json(changed=bool(written) or "changed" in stdout.splitlines(), **result)


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


def unpack(path: str, digest: str) -> bool:
    """Make a program of path.gz, which goes; False where it is another than was meant."""
    found = hashlib.sha256()
    with (
        # What is cut or damaged has another digest, wherever gzip stumbles.
        contextlib.suppress(EOFError, gzip.BadGzipFile, zlib.error),
        gzip.open(f"{path}.gz") as packed,
        open(f"{path}.new", "wb") as file,
    ):
        while chunk := packed.read(1 << 20):
            found.update(chunk)
            file.write(chunk)
    if found.hexdigest() != digest:
        os.remove(f"{path}.new")
        return False
    os.chmod(f"{path}.new", 0o755)
    os.replace(f"{path}.new", path)
    os.remove(f"{path}.gz")
    return True


if __name__ == "__main__":
    main()
