# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the probes of all container runtimes share: test containers and their root file system."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.finding import Finding
from .._host.command import TIMED_OUT, Result, Runner
from .._known_faults.explain import explain_one
from .types import ContainerRun

if TYPE_CHECKING:
    from .._host.reader import NodeReader
    from .options import ProbeOptions
    from .rootfs import TemporaryRoot

# Prefix of the names of all containers, and containerd's namespace and Docker's image name.
NAME = "kubegpu-verify"
RUNC_SHIM = "io.containerd.runc.v2"
# Seconds for a command that only reads.
QUICK = 20
SMI = ("nvidia-smi", "-L")
ALL_GPUS = "NVIDIA_VISIBLE_DEVICES=all"
# The loader's search path in a root file system that has no ld.so.cache.
_LIBRARIES = "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib"
_LOADER_FILES = ("/etc/debian_version", "/etc/ld.so.conf")
_LDD = re.compile(r"(?:=>\s*)?(/\S+) \(0x[0-9a-f]+\)")
# Exit statuses of timeout(1) after SIGKILL.
_KILLED = (137, -9)


@dataclass(frozen=True)
class Dependencies:
    """Access to the node, passed in.

    :param token: identifies this run in the names of what it creates.
    :param image_names: returns the names of the images in an archive.
    :param interpreter: returns the interpreter of a script, None for other files.
    :param restarted_since: whether the daemon of a unit started after a file was last changed;
        None if unknown.
    :param docker_pending: why dockerd waits for a reload or a restart, from the fact
        ``runtimes.docker`` and the name of the handler; None if it does not.
    :param lock: keeps other runs out.
    :param before_cleanup: called before the final clean-up, which no signal may interrupt.
    """

    run: Runner
    reader: NodeReader
    root: TemporaryRoot
    token: str
    image_names: Callable[[str], list[str]]
    interpreter: Callable[[str], str | None]
    restarted_since: Callable[[str, str], bool | None]
    docker_pending: Callable[[Mapping[str, Any], str], Finding | None]
    lock: Callable[[], AbstractContextManager[None]]
    before_cleanup: Callable[[], None]


@dataclass(frozen=True)
class Image:
    """Image or root file system of a test container.

    :param arguments: the command-line arguments that select it.
    :param namespace: containerd's namespace that holds it.
    :param fault: why it cannot be used.
    """

    subject: str
    arguments: tuple[str, ...] = ()
    namespace: str = NAME
    fault: Finding | None = None


class ContainerTests:
    """Prepares and runs test containers, whichever runtime starts them."""

    def __init__(self, dependencies: Dependencies, options: ProbeOptions, check: bool) -> None:
        self.dependencies = dependencies
        self.options = options
        self.check = check
        self._count = 0

    def command(self, node: Mapping[str, Any]) -> tuple[tuple[str, ...], bool]:
        """Return the command, and whether the lines of its output are counted as GPUs."""
        options = self.options
        if options.command:
            return options.command, False
        if not self._bare:
            # With ``expect`` the image runs its own command.
            return ((), False) if options.expect else (SMI, True)
        if node["nvml"] and self.dependencies.reader.exists("/usr/bin/nvidia-smi"):
            return SMI, True
        return ("/bin/true",), False

    def own_root(
        self, command: Sequence[str], arguments: Callable[[str], tuple[str, ...]]
    ) -> Image:
        """Create a root file system with what the command needs, without any driver file.

        :param arguments: returns the arguments that select the root file system at a path.
        """
        subject = "a bare root file system (no image was given)"
        if self.check:
            return Image(subject)
        root, reader = self.dependencies.root, self.dependencies.reader
        root.make()
        program = command[0] if command[0].startswith("/") else f"/usr/bin/{command[0]}"
        programs = ["/bin/true", program]
        script = self.dependencies.interpreter(program)
        if script:
            programs.append(script)
        needed: list[str] = []
        for one in programs:
            answer = self.dependencies.run(["ldd", one], timeout=QUICK)
            needed += [path for path in _LDD.findall(answer.stdout) if "nvidia" not in path]
        # NVIDIA's files must come from the toolkit: copied ones would hide that it adds none.
        own = [one for one in programs if "nvidia" not in one]
        loader = [f"/etc/ld.so.conf.d/{name}" for name in reader.list_dir("/etc/ld.so.conf.d")]
        root.copy([*own, *dict.fromkeys(needed), *_LOADER_FILES, *loader])
        return Image(subject, arguments(root.path))

    def environment(self, devices: str, visible: bool = True) -> list[str]:
        """Return the environment variables of a container, each as NAME=VALUE."""
        found = [f"NVIDIA_VISIBLE_DEVICES={devices}"] if visible else []
        if self._bare:
            found += [
                "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                f"LD_LIBRARY_PATH={_LIBRARIES}",
            ]
        return found

    def run(self, argv: Sequence[str]) -> Result:
        """Run a container; one that had to be killed at its time limit counts as timed out."""
        started = time.monotonic()
        timeout = self.options.timeout
        result = self.dependencies.run(argv, timeout=timeout)
        if result.rc in _KILLED and time.monotonic() - started >= timeout:
            return Result(TIMED_OUT, result.stdout, result.stderr)
        return result

    def new_name(self) -> str:
        self._count += 1
        return f"{NAME}-{self.dependencies.token}-{self._count}"

    def not_started(
        self, method: str, image: Image, command: tuple[str, ...], devices: str
    ) -> ContainerRun | None:
        """Return why a container is not started, None if it is."""
        skipped = image.fault
        if skipped is None and self.check:
            text = " ".join(command) or "its own command"
            skipped = Finding(
                "check_mode",
                f"Check mode: would run {text} in {image.subject} by {method}, and remove it.",
            )
        if skipped is None:
            return None
        return ContainerRun(method, image.subject, command, devices, skipped=skipped)

    def finished(
        self,
        method: str,
        image: Image,
        command: tuple[str, ...],
        devices: str,
        counts_gpus: bool,
        result: Result,
    ) -> ContainerRun:
        return ContainerRun(
            method,
            image.subject,
            command,
            devices,
            counts_gpus,
            self._bare,
            self.options.expect,
            result,
        )

    def not_running(self, name: str, facts: Mapping[str, Any]) -> Finding | None:
        """Return that the daemon of a runtime does not run, with the end of its journal."""
        if facts["active"] is not False:
            return None
        unit = facts["unit"]
        journal = self.dependencies.run(
            ["journalctl", "--unit", unit, "--no-pager", "--output=cat", "--lines=5"],
            timeout=QUICK,
        ).stdout.strip()
        return Finding(
            f"{name}_not_running",
            f"{name} does not run.",
            journal or f"systemctl is-active {unit} says no",
            f"systemctl restart {unit}; if it does not start: journalctl --unit {unit}.",
        )

    def wrong_program(self, name: str, handler: Mapping[str, Any] | None) -> Finding | None:
        """Return that a handler runs another program, which gives containers no GPU."""
        path = (handler or {}).get("path")
        kind = (handler or {}).get("type") or RUNC_SHIM
        if path and is_nvidia(path, self.options.runtime_path):
            return None
        if kind != RUNC_SHIM and not path:
            # Another shim needs no such program.
            return None
        return Finding(
            "wrong_program",
            f"{name}'s handler {self.options.handler} runs {path or 'runc'}, not NVIDIA's runtime.",
            f"its program is {path or 'not set, which is runc'}; two spellings of BinaryName in "
            "one file do that too",
            f"Set it to {self.options.runtime_path}; role nvidia_container_toolkit does it.",
        )

    def no_image(self, answer: Result | None, names: Sequence[str]) -> Finding:
        """Return why the requested image cannot be used.

        :param answer: result of importing or pulling it; None if that was not tried.
        :param names: names of the images in the archive.
        """
        what = self.options.image or self.options.archive
        if answer is None:
            return Finding(
                "image_missing",
                f"The image {what} is not on this node, and was not pulled.",
                "pull is false",
                "Copy it there (image_archive: a file on the node), set pull: true, or omit image: "
                "then a bare root file system is used.",
            )
        otherwise = Finding(
            "image_missing",
            f"The image {what} could not be imported or pulled on this node.",
            answer.last_output() or f"the archive has {', '.join(names) or 'no name'}",
            "Check the name, the path and the registry.",
        )
        return explain_one(answer.last_output(), otherwise)

    @property
    def _bare(self) -> bool:
        return not (self.options.image or self.options.archive)


def is_nvidia(path: str, expected: str) -> bool:
    """Return whether a program is NVIDIA's runtime: the expected one, or one of that name."""
    return path == expected or "nvidia-container-runtime" in path.rpartition("/")[2]
