# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of a driver's change: what is remembered, when to load, when to go back. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._nvidia.driver_branches import PINNED_FROM, STREAM_MODULE
from .plan.config_files import GRIDD, IN_INITRAMFS, MODULES, NOUVEAU, OPTIONS, TOKEN, UDEV
from .types import INSTALLS, DriverPlan, branch_of

# The package sets' names.
SET = "nvidia-driver"
PINNING_SET = "nvidia-driver-pinning"
PERSISTENCED_UNIT = "nvidia-persistenced"
GRIDD_UNIT = "nvidia-gridd"
# How the message of an installer that failed begins.
INSTALLER = "The installer of the driver"

# Files of which a part can be taken out; one line of the others makes no sense without the rest.
BY_LINES = (NOUVEAU, OPTIONS, MODULES, UDEV, GRIDD)
_PINNING = "nvidia-driver-pinning-"
# Failures that end by themselves, or by freeing space: what was done so far is kept, and the next
# run goes on.
_PASSING = re.compile(
    r"holds? its lock|could not get lock|is locked by|disk of this node is full"
    r"|no space left|enough free space|quota exceeded|cannot be reached|failed to fetch"
    r"|could not (?:resolve|connect)|connection (?:refused|timed out|reset)",
    re.IGNORECASE,
)

_BUILD = re.compile(
    r"dkms|kernel module|post-?inst|returned an error code|subprocess|own script failed",
    re.IGNORECASE,
)
_NO_DKMS = re.compile(
    r"(?:No package list of this node has|nothing provides|No match for argument:?|No provider of)"
    r"[^\n]*(?<![\w-])dkms(?![\w-])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Memory:
    """What the node's record says of its driver.

    ``managed``: we installed it, or hold and configure it. ``original``: the driver before our
    first change. ``services``: what ``systemctl is-enabled`` said of each unit before us.
    ``pending``: a change that was begun and not finished, with what stood there before it.
    """

    managed: bool = False
    original: Mapping[str, Any] | None = None
    current: Mapping[str, Any] | None = None
    previous: Mapping[str, Any] | None = None
    services: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "managed": self.managed,
            "original": _plain(self.original),
            "current": _plain(self.current),
            "previous": _plain(self.previous),
            "services": dict(self.services),
            "pending": _plain(self.pending),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Memory:
        return cls() if data is None else cls(**data)

    @property
    def installed(self) -> bool:
        """Whether the driver was put there by us, and not only held and configured."""
        return self.current is not None and not same_driver(self.original, self.current)


def _plain(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if value is None else dict(value)


def standing(node: Mapping[str, Any], memory: Memory | None = None) -> dict[str, Any] | None:
    """Return the driver that stands on the node, in the record's words; None where there is none.

    :param memory: has what facts do not say: the runfile that a driver came from.
    """
    driver = node["driver"]
    if not driver["installed"] and not driver["packages"]:
        return None
    found = {
        "version": driver["installed"],
        "branch": branch_of(driver["installed"]),
        "source": driver["source"],
        "kernel_module": driver["kernel_module"],
        # A library of a second architecture follows its main one.
        "packages": {
            name: version for name, version in driver["packages"].items() if ":" not in name
        },
        "held": bool(driver["held"]),
    }
    if driver.get("streams") is not None:
        # Of dnf's modules, as it was enabled: to guess by the version would not do.
        found["streams"] = driver_streams(driver["streams"])
    current = memory.current if memory else None
    if current and current.get("runfile") and same_driver(current, found):
        found["runfile"] = current["runfile"]
    return found


def driver_streams(streams: Mapping[str, str]) -> dict[str, str]:
    """Return those of the enabled streams that can be the driver's."""
    return {module: stream for module, stream in streams.items() if module == STREAM_MODULE}


def same_driver(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(one.get(key) == other.get(key) for key in ("version", "source", "kernel_module"))


def begun(
    memory: Memory,
    plan: DriverPlan,
    node: Mapping[str, Any],
    files: Mapping[str, Mapping[str, Any] | None],
    services: Mapping[str, str],
    initramfs: bool,
    runfile: Mapping[str, Any] | None = None,
    run: str = "",
) -> Memory:
    """Return the record to be kept before the change.

    :param files: what each file that is going to be written was, None where there was none.
    :param services: whether the units of the plan are enabled now.
    :param initramfs: whether the initial RAM disk has to be rebuilt.
    :param runfile: the installer that is going to be run, with ``file``, its place on the node.
    :param run: the run that works on the change from now on.

    A change that died keeps what stood there before it: to that the node goes back.
    """
    earlier = memory.pending or {}
    pending: dict[str, Any] = {
        "action": plan.action if plan.action in INSTALLS else earlier.get("action", plan.action),
        "before": earlier["before"] if earlier else standing(node, memory),
        "files": {**files, **earlier.get("files", {})},
        "managed": earlier.get("managed", memory.managed),
        "initramfs": initramfs or bool(earlier.get("initramfs")),
        "load": plan.load or bool(earlier.get("load")),
        "loaded": earlier.get("loaded", node["driver"]["loaded"]),
        "runfile": None if runfile is None else dict(runfile),
        "run": run,
    }
    if runfile is None and earlier.get("runfile"):
        # It came to its end, or is not wished any more; it is ours all the same.
        pending.update(runfile=earlier["runfile"], runfile_done=True)
    if earlier.get("runfile_begun"):
        pending["runfile_begun"] = True
    return replace(
        memory,
        # From now on it is ours to finish, or to take back.
        managed=True,
        original=memory.original if memory.managed else pending["before"],
        services={**services, **memory.services},
        pending=pending,
    )


def finished(memory: Memory, node: Mapping[str, Any], *, back: bool = False) -> Memory:
    """Return the record after the change: what stood there before another driver is previous.

    :param back: the wish was the previous driver. It stays the previous one, so that the same wish
        has nothing more to do; else two runs would go to and fro.
    """
    pending = memory.pending or {}
    before, now = pending.get("before"), standing(node)
    if now is not None and now["source"] == "runfile":
        runfile = pending.get("runfile") or (memory.current or {}).get("runfile")
        if runfile:
            now["runfile"] = runfile
    return replace(
        memory,
        managed=True,
        current=now,
        previous=(
            memory.previous if back or before is None or same_driver(before, now) else before
        ),
        pending=None,
    )


def with_pending(memory: Memory, **more: Any) -> Memory:
    """Return the record with more known of the change that was begun."""
    return replace(memory, pending={**(memory.pending or {}), **more})


def taken_over(memory: Memory, run: str) -> bool:
    """Return whether another run works on the change, or has ended it, since this one began it."""
    return memory.pending is None or memory.pending.get("run", "") != run


def runfile_to_do(plan: DriverPlan, memory: Memory) -> Mapping[str, Any] | None:
    """Return the runfile that has to be run: the plan's, or one that an earlier run died in."""
    if plan.runfile is not None and plan.source == "runfile" and plan.action in INSTALLS:
        return plan.runfile
    pending = memory.pending or {}
    if plan.source == "runfile" and pending.get("runfile") and not pending.get("runfile_done"):
        return dict(pending["runfile"])
    return None


def cached_files(memory: Memory | None) -> tuple[str, ...]:
    """Return the runfiles that we brought to the node and that can be of use again."""
    if memory is None:
        return ()
    pending = memory.pending or {}
    drivers = (memory.current, memory.previous, memory.original, pending, pending.get("before"))
    runfiles = [driver.get("runfile") or {} for driver in drivers if driver]
    return tuple(
        dict.fromkeys(str(runfile["file"]) for runfile in runfiles if runfile.get("cached"))
    )


def given_back(memory: Memory) -> Memory | None:
    """Return the record after a change was rolled back; None where there was none before it."""
    before = memory.managed if memory.pending is None else bool(memory.pending["managed"])
    return replace(memory, pending=None) if before else None


@dataclass(frozen=True)
class Look:
    """What decides whether a module can be loaded or changed now.

    ``loaded``: the version of the loaded module. ``cannot``: why no module at all can be loaded or
    unloaded here, or nothing. ``users``: programs that use the loaded module, as "name (pid)", but
    for the driver's own daemon, which is stopped for a change.
    ``holders``: other modules that use it. ``nouveau``: None where no driver of the kernel's own is
    loaded, else how many use it; ``kernel_driver`` is its name.
    """

    loaded: str | None = None
    cannot: str = ""
    users: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    nouveau: int | None = None
    kernel_driver: str = "nouveau"


@dataclass(frozen=True)
class Loading:
    """Whether the module is, or would be, loaded now, and if not, what is to be said."""

    now: bool
    reboot: str = ""
    warning: str = ""


def decide_loading(wanted: bool, look: Look, reboot: Mapping[str, Any]) -> Loading:
    """Return whether the module can be loaded without a reboot.

    :param wanted: the plan's word on whether it has to be.
    :param reboot: the plan's ``reboot``, as far as facts tell.
    """
    if not wanted:
        return Loading(False, reboot["reason"] if reboot["required"] else "")
    if look.cannot:
        return Loading(
            False,
            warning=f"The kernel module cannot be loaded from here: {look.cannot}. This says "
            "nothing about the driver. Load it where modules can be loaded: on the host of a "
            "container, or after the next boot.",
        )
    if look.loaded and (look.users or look.holders):
        words = ", ".join([*look.users, *(f"the module {name}" for name in look.holders)])
        return Loading(
            False,
            f"The loaded module {look.loaded} is in use by {words}. Stop what uses it and run "
            "again, or reboot.",
        )
    if look.nouveau:
        return Loading(
            False,
            f"{look.kernel_driver} is loaded and in use ({look.nouveau} users, the console as a "
            "rule): the next boot comes without it.",
        )
    return Loading(True)


def kernel_without_module(node: Mapping[str, Any]) -> str:
    """Return why a reboot is needed where only another kernel has the module; else nothing."""
    running = [kernel for kernel in node["kernels"] if kernel["running"]]
    others = [k["version"] for k in node["kernels"] if not k["running"] and k.get("driver")]
    if any(kernel.get("driver") for kernel in running) or not others:
        return ""
    kernel = node["os"]["kernel"] or "unknown"
    return (
        f"The module is installed for kernel {', '.join(others)}, and {kernel} is running, for "
        "which there is none."
    )


def parted(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return obsolete packages as (pins, others): a pin has to go before what it pins changes."""
    pins = [name for name in names if name.startswith(_PINNING)]
    return pins, [name for name in names if name not in pins]


def package_tasks(plan: DriverPlan) -> list[dict[str, Any]]:
    """Return the arguments of package_set, one call after the other."""
    if plan.action == "refuse":
        return []
    pins, others = parted(plan.obsolete)
    # In check mode the repository that the role adds is not there yet.
    expected = plan.repository is not None
    tasks: list[dict[str, Any]] = []
    if plan.pinning or pins:
        # Before that the names have the branch, and a mirror can be older than the pins.
        needed = plan.branch is None or int(plan.branch) >= PINNED_FROM
        tasks.append(
            {
                "name": PINNING_SET,
                "packages": dict(plan.pinning) if needed else {},
                **({} if needed else {"optional": dict(plan.pinning)}),
                "obsolete": [name for name in pins if name not in plan.pinning],
                "hold": plan.hold,
                "repository_expected": expected,
            }
        )
    if plan.packages or plan.optional_packages or others:
        task: dict[str, Any] = {
            "name": SET,
            "packages": dict(plan.packages),
            "obsolete": others,
            "hold": plan.hold,
            "repository_expected": expected,
            "background": True,
        }
        if plan.streams:
            task["module_streams"] = dict(plan.streams)
        if plan.optional_packages:
            task["optional"] = dict(plan.optional_packages)
        if plan.lock and plan.lock.get("patterns"):
            # The pins are a set of their own, which comes first.
            task["lock"] = {**plan.lock, "patterns": [*plan.lock["patterns"], f"!{_PINNING}*"]}
        tasks.append(task)
    return tasks


def absent_tasks() -> list[dict[str, Any]]:
    """Return the calls of package_set that give back what stood there before us."""
    return [
        {"name": SET, "state": "absent", "background": True},
        {"name": PINNING_SET, "state": "absent"},
    ]


def removal_tasks(plan: DriverPlan) -> list[dict[str, Any]]:
    """Return the call of package_set that removes a driver which is not ours, as asked for."""
    if not plan.obsolete:
        return []
    task = {"name": SET, "packages": {}, "obsolete": list(plan.obsolete), "hold": False}
    return [{**task, "background": True}]


def uninstalls(plan: DriverPlan, memory: Memory, node: Mapping[str, Any]) -> bool:
    """Return whether ``state: absent`` runs the runfile's uninstaller: never for an admin's own.

    What is gone already, by a run that died or by hand, needs no uninstaller.
    """
    if node["driver"]["source"] != "runfile":
        return False
    if not memory.managed:
        return plan.uninstall == "runfile"
    if memory.installed and (memory.current or {}).get("source") == "runfile":
        return True
    # A first change that was begun: the installer may have come to its end, but not the record.
    pending = memory.pending or {}
    before = pending.get("before") or {}
    return bool(pending.get("runfile")) and before.get("source") != "runfile"


def rollback_tasks(
    before: Mapping[str, Any] | None,
    there: Sequence[str],
    *,
    managed: bool = False,
    streams: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """Return the calls of package_set that put back what stood there before this change.

    :param before: the driver before it, as in the record.
    :param there: the driver's packages that are there now, in whatever state.
    :param managed: whether it was ours then: what a runfile's modules are built with stays.
    :param streams: the streams of dnf's modules that its packages are in.
    """
    old = dict(before["packages"]) if before else {}
    if not old and managed and before and before["source"] == "runfile":
        found = zip((PINNING_SET, SET), parted([name for name in there if ":" not in name]))
        return [
            {"name": name, "packages": {}, "obsolete": names, "hold": False, "background": True}
            for name, names in found
            if names
        ]
    if not old:
        return absent_tasks()
    pins = {name: version for name, version in old.items() if name.startswith(_PINNING)}
    others = {name: version for name, version in old.items() if name not in pins}
    new_pins, new = parted([name for name in there if name not in old and ":" not in name])
    hold = bool(before and before["held"])
    tasks: list[dict[str, Any]] = []
    if pins or new_pins:
        tasks.append({"name": PINNING_SET, "packages": pins, "obsolete": new_pins, "hold": hold})
    task: dict[str, Any] = {"name": SET, "packages": others, "obsolete": new, "hold": hold}
    if streams:
        task["module_streams"] = dict(streams)
    tasks.append({**task, "background": True})
    return tasks


def lacks_dkms(words: str) -> bool:
    """Return whether packages failed since no repository has DKMS."""
    return bool(_NO_DKMS.search(words))


def passing(words: str) -> bool:
    """Return whether a failure is one that the next run can simply go on after."""
    return bool(_PASSING.search(words))


def from_installer(words: str) -> bool:
    """Return whether a failure is the installer's own, and not that of what comes before it."""
    return words.startswith(INSTALLER) and "build_timeout" not in words


def about_build(words: str) -> bool:
    """Return whether a package manager's words can come from the build of a kernel module."""
    return bool(_BUILD.search(words))


def needs_initramfs(paths: Sequence[str]) -> bool:
    """Return whether one of the files has a copy in the initial RAM disk."""
    return any(path in IN_INITRAMFS for path in paths)


def without_lines(text: str, ours: str) -> str | None:
    """Return an edited file without our lines; None where nothing of somebody else's is left."""
    mine = set(ours.splitlines())
    left = [line for line in text.splitlines(keepends=True) if line.rstrip("\n") not in mine]
    return "".join(left) if any(line.strip() for line in left) else None


def shown_text(path: str, content: bytes | None) -> str:
    """Return a file for a diff; a licence token is shown by its checksum alone."""
    if content is None:
        return ""
    if path == TOKEN:
        return f"(licence token, sha256 {hashlib.sha256(content).hexdigest()})\n"
    return content.decode("utf-8", "replace")


def shown_driver(state: Mapping[str, str]) -> str:
    """Return what is no file and no package as the lines of a diff."""
    return "".join(f"{name}: {value}\n" for name, value in sorted(state.items()) if value)


def named(version: str | None, branch: str | None, kernel_module: str | None, source: str) -> str:
    """Return a driver in words, for a diff."""
    number = version or (f"{branch} (newest)" if branch else "unknown version")
    return " ".join(word for word in (number, kernel_module, f"from {source}") if word)
