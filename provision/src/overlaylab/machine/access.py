"""Groups of the operator and permissions of the cache folder: who may talk to libvirt, what QEMU may read."""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from overlaylab.core import paths, task_log
from overlaylab.core.errors import UserError
from overlaylab.machine.root import is_root, run_as_root, user_name
from overlaylab.machine.services import boot_id

KVM_DEVICE = Path("/dev/kvm")

_REEXECUTED = "OVERLAYLAB_IN_GROUPS"


def _group(name: str) -> grp.struct_group | None:
    try:
        return grp.getgrnam(name)
    except KeyError:
        return None


def needed_groups() -> list[str]:
    """Groups that the operator needs: libvirt, and the one that owns /dev/kvm where that decides.

    Nodes run as libvirt's user, which is in the group kvm already; Packer runs QEMU as the operator.
    """
    if is_root():
        return []
    wanted = ["libvirt"] if _group("libvirt") else []
    try:
        kvm = KVM_DEVICE.stat()
    except OSError:
        return wanted
    owner = _group("kvm")
    granted = kvm.st_mode & stat.S_IRGRP and kvm.st_mode & stat.S_IWGRP
    if owner and kvm.st_gid == owner.gr_gid and granted and not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        wanted.append("kvm")
    return wanted


def is_member(group: str) -> bool:
    """Whether the user database puts the operator into ``group``, be this process in it or not."""
    entry, user = _group(group), pwd.getpwuid(os.getuid())
    return entry is not None and (user.pw_name in entry.gr_mem or user.pw_gid == entry.gr_gid)


def missing_memberships() -> list[str]:
    """Groups that the operator is still to be added to."""
    return [group for group in needed_groups() if not is_member(group)]


def join_groups() -> None:
    """Add the operator to the groups. Raises UserError when that is refused."""
    for group in missing_memberships():
        done = run_as_root(
            ["usermod", "--append", "--groups", group, user_name()],
            f"adding {user_name()} to the group {group}",
        )
        if done.returncode != 0:
            raise UserError(
                f"group {group}",
                f"must have {user_name()} as a member",
                seen=f"usermod ended with {done.returncode}",
                fix=f"Add yourself (sudo usermod -aG {group} {user_name()}), then type `./task setup` again",
            )


def outside_groups() -> list[str]:
    """Groups that the operator is a member of but this process is not in: joined since the login."""
    held = {*os.getgroups(), os.getegid()}
    return [group for group in needed_groups() if is_member(group) and grp.getgrnam(group).gr_gid not in held]


def _own_group() -> str | None:
    """Name of the operator's primary group in the user database; None where it has none."""
    try:
        return grp.getgrgid(pwd.getpwuid(os.getuid()).pw_gid).gr_name
    except KeyError:
        return None


def in_foreign_group() -> bool:
    """Whether this process's group is not the operator's own, as after newgrp(1): newuidmap(1) refuses it then."""
    return not is_root() and _own_group() is not None and os.getegid() != pwd.getpwuid(os.getuid()).pw_gid


def enter_groups() -> None:
    """Run this very command again inside groups joined since the login, so that nobody has to log in again.

    Does not return where that was needed. sg(1) asks members for no password and keeps the other groups.
    """
    outside = outside_groups()
    if not outside and not in_foreign_group():
        return
    sg = shutil.which("sg")
    if sg is None or os.environ.get(_REEXECUTED):
        raise UserError(
            f"groups {', '.join([*outside, _own_group() or ''])}",
            "must be held by this process, the last as its own",
            seen="no sg(1)" if sg is None else "sg(1) did not give them",
            fix="Log out and in again, then repeat the command",
        )
    os.environ[_REEXECUTED] = "1"
    task_log.hand_over()
    sys.stdout.flush()
    sys.stderr.flush()
    argv = group_command([sys.executable, *sys.orig_argv[1:]], outside, _own_group())
    os.execv(sg, [sg, *argv[1:]])


def group_command(argv: list[str], groups: list[str], own: str | None) -> list[str]:
    """``argv`` wrapped into one sg(1) per group, and innermost one that makes ``own`` the process's group again."""
    for group in [*([own] if own else []), *groups]:
        argv = ["sg", group, "-c", "exec " + shlex.join(argv)]
    return argv


def unsearchable_folder(folder: Path) -> Path | None:
    """The uppermost folder on the way to ``folder`` that others cannot search, with itself; None if all can be.

    What does not exist yet is skipped: it will be made with mode 0755.
    """
    for step in [*reversed(folder.absolute().parents), folder.absolute()]:
        try:
            if not step.stat().st_mode & stat.S_IXOTH:
                return step
        except FileNotFoundError:
            return None
    return None


def prepare_cache() -> Path:
    """Make the cache folder, searchable by QEMU's user. Raises UserError where a folder above is closed."""
    folder = paths.cache()
    if not folder.is_absolute():
        raise UserError(
            "OVERLAYLAB_CACHE", "must be an absolute path", seen=folder, fix="Write it from / on, or unset it"
        )
    closed = unsearchable_folder(folder.parent)
    if closed:
        raise UserError(
            f"OVERLAYLAB_CACHE={folder}",
            "must lie where QEMU's own user may search every folder",
            seen=f"{closed} has mode {stat.S_IMODE(closed.stat().st_mode):04o}",
            fix=f"Unset OVERLAYLAB_CACHE (then /var/tmp/overlaylab-{user_name()} is used), or choose a folder outside "
            f"{closed}",
        )
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise UserError(
            f"cache folder {folder}",
            f"must belong to {user_name()}",
            seen=f"user id {folder.stat().st_uid}",
            fix="Set OVERLAYLAB_CACHE to a folder of your own outside your home",
        )
    if stat.S_IMODE(folder.stat().st_mode) != 0o755:
        folder.chmod(0o755)
    return folder


@contextmanager
def setup_lock() -> Iterator[None]:
    """One setup at a time per cache folder; the kernel drops the lock with its holder."""
    with (paths.cache() / "setup.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def kvm_is_untouched() -> bool:
    """Whether /dev/kvm still is as the kernel made it, for root alone: nobody, udev above all, has looked at it."""
    try:
        device = KVM_DEVICE.stat()
    except OSError:
        return False
    untouched = (device.st_uid, device.st_gid, stat.S_IMODE(device.st_mode)) == (0, 0, 0o600)
    return untouched and _group("kvm") is not None


def open_kvm() -> None:
    """Give /dev/kvm to the group kvm, as systemd's udev rules do (50-udev-default.rules).

    libvirt's QEMU could not use it otherwise; and where it does not work, libvirt, which finds it as root,
    would look for it again at every start of a node (0.7 s each).
    """
    marker = _kvm_marker()
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(boot_id())
    run_as_root(
        ["sh", "-c", f"chgrp kvm {KVM_DEVICE} && chmod 0660 {KVM_DEVICE}"],
        f"giving {KVM_DEVICE} to the group kvm, until the next boot or lab:destroy: no udev has",
    )


def close_kvm() -> bool:
    """Undo `open_kvm`; whether there was anything to undo since this boot."""
    marker = _kvm_marker()
    if not marker.exists():
        return False
    ours = marker.read_text() == boot_id()
    if ours:
        run_as_root(
            ["sh", "-c", f"chgrp root {KVM_DEVICE} && chmod 0600 {KVM_DEVICE}"],
            f"giving {KVM_DEVICE} back to root alone",
        )
    marker.unlink()
    return ours


def _kvm_marker() -> Path:
    """Holds the boot in which `open_kvm` was needed."""
    return paths.cache() / "libvirt" / "kvm-opened"


def qemu_user_without_access() -> str | None:
    """Name of the user that libvirt runs the nodes as, if it may not open /dev/kvm; None where it may.

    From owner, groups and mode; None too where no such user is known, since libvirt then runs QEMU as root.
    """
    for name in ("libvirt-qemu", "qemu"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        device = KVM_DEVICE.stat()
        if device.st_uid == user.pw_uid:
            needed = stat.S_IRUSR | stat.S_IWUSR
        elif device.st_gid in os.getgrouplist(name, user.pw_gid):
            needed = stat.S_IRGRP | stat.S_IWGRP
        else:
            needed = stat.S_IROTH | stat.S_IWOTH
        return None if device.st_mode & needed == needed else name
    return None
