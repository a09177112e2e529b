# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Link, installer and compilers of the CUDA toolkits on a node.

A runner and a reader are passed in. Paths are absolute paths of the node; with another root than
``/`` they are resolved below it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._core.errors import KubegpuError
from .._host.command import Result, Runner
from .._host.files import FileState, write_file
from .._host.temporary import unpacking
from .._nvidia.runfile import CUDA_LOG, uninstall_arguments, unpacked_in
from .compiler import PROGRAM, CompileTest, check_release, explain_compile, other_host_compilers
from .config_files import LINK, PREFIX
from .installer import explain_installer
from .link import (
    GROUP,
    OTHER,
    SYMLINK,
    Link,
    LinkChange,
    parse_alternatives,
    restore_link,
)

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_ALTERNATIVE = "/etc/alternatives/cuda"
_FOLDER = re.compile(re.escape(PREFIX) + r"\d+\.\d+\Z")
_UNINSTALL_TIMEOUT = 1800
_COMPILE_TIMEOUT = 300


@dataclass(frozen=True)
class CudaNode:
    """The node that the module runs on."""

    run: Runner
    reader: NodeReader

    def place(self, path: str) -> str:
        """Return the path that commands use for ``path`` of the node."""
        return path if self.reader.root == "/" else f"{self.reader.root}{path}"

    # The link.

    def read_link(self) -> Link:
        target = self._target()
        if target is None and self.reader.exists(LINK):
            return Link(OTHER)
        found = self._alternatives()
        if found is not None:
            # A link made manually or by a runfile bypasses the alternatives.
            through = target is not None and target.endswith(_ALTERNATIVE)
            return found if through else replace(found, target=target or "")
        return Link() if target is None else Link(SYMLINK, target)

    def _target(self) -> str | None:
        if not self.reader.is_link(LINK):
            return None
        return self.run(["readlink", self.place(LINK)]).stdout.strip()

    def change_link(self, change: LinkChange) -> None:
        """Run the commands of the change.

        :raises KubegpuError: a command failed.
        """
        for argv in change.commands:
            command = list(argv)
            if command[0] == "update-alternatives":
                command[1:1] = self._alternatives_root()
            elif command[0] == "ln":
                # The target is a path of the node, not of this machine.
                command[-1] = self.place(command[-1])
            else:
                command = [self.place(word) if word.startswith("/") else word for word in command]
            result = self.run(command)
            if not result.ok:
                raise KubegpuError(
                    f"{LINK} cannot be changed.",
                    evidence=f"{' '.join(argv)}: {result.last_output()}",
                    next_step=f"Run with become, and check {LINK}.",
                )

    def _alternatives(self) -> Link | None:
        argv = ["update-alternatives", *self._alternatives_root(), "--query", GROUP]
        result = self.run(argv)
        return parse_alternatives(result.stdout) if result.ok else None

    def _alternatives_root(self) -> list[str]:
        return [] if self.reader.root == "/" else ["--root", self.reader.root]

    # Installer and uninstaller.

    def install(
        self,
        version: str,
        file: str,
        path: str,
        arguments: Sequence[str],
        limit: int,
        temporary: str = "",
    ) -> None:
        """Run CUDA's installer; remove its folder if it fails.

        The installer changes the link, which is restored: a later phase sets it.

        :param limit: seconds after which the installer is stopped.
        :param temporary: where it unpacks itself; empty: next to the cached file.
        :raises KubegpuError: it failed.
        """
        self._check_folder(path)
        before = self._target()
        with contextlib.ExitStack() as stack:
            root = self.reader.root
            more, environment = unpacked_in(
                temporary or stack.enter_context(unpacking(root, f"cuda-{version}"))
            )
            result = self.run(
                ["sh", file, *(self._below(argument, path) for argument in arguments), *more],
                timeout=limit,
                environment=environment,
            )
        if self._target() != before:
            self.change_link(restore_link(LINK, before))
        if result.ok and self.reader.exists(f"{path}/bin/nvcc"):
            return
        log = (self.reader.read_text(CUDA_LOG) or "").splitlines()[-30:]
        output = (
            result.last_output()
            if not result.ok
            else f"it succeeded, but {path}/bin/nvcc is missing"
        )
        self.remove(path)
        raise explain_installer(version, path, output, "\n".join(log))

    def uninstall(self, path: str) -> str:
        """Run a toolkit's uninstaller; return the folder if it is not empty afterwards, else "".

        :raises KubegpuError: the uninstaller failed.
        """
        self._check_folder(path)
        uninstaller = f"{path}/bin/cuda-uninstaller"
        if self.reader.exists(uninstaller):
            result = self.run(
                uninstall_arguments(self.place(uninstaller)), timeout=_UNINSTALL_TIMEOUT
            )
            if not result.ok:
                raise KubegpuError(
                    f"The uninstaller of {path} failed; the rest of it is still installed.",
                    evidence=result.last_output(),
                    next_step=f"Run {uninstaller} manually.",
                )
        if not self.reader.exists(path):
            return ""
        self.run(["find", self.place(path), "-depth", "-type", "d", "-empty", "-delete"])
        return path if self.reader.exists(path) else ""

    def remove(self, path: str) -> None:
        """Remove the folder of an installer that did not finish."""
        self._check_folder(path)
        self.run(["rm", "-rf", self.place(path)], timeout=_UNINSTALL_TIMEOUT)

    @staticmethod
    def _check_folder(path: str) -> None:
        if not _FOLDER.match(path):
            raise KubegpuError(f"{path} is not the folder of a CUDA toolkit; nothing was changed.")

    def _below(self, argument: str, path: str) -> str:
        return argument.replace(path, self.place(path)) if path in argument else argument

    # Loader and compiler.

    def refresh_loader(self) -> Result:
        root = [] if self.reader.root == "/" else ["-r", self.reader.root]
        return self.run(["ldconfig", *root], timeout=120)

    def test_compiler(self, test: CompileTest, scratch: str) -> tuple[str, str]:
        """Check the compiler's version and compile a program.

        :param scratch: a folder for the program.
        :returns: the version, and the host compiler that had to be named, or "".
        :raises KubegpuError: the compiler is missing, of another release, or cannot compile.
        """
        result = self.run([test.nvcc, "--version"], environment=test.environment)
        version = check_release(test, f"{result.stdout}\n{result.stderr}", found=result.rc != 127)
        output = self._compile(test, scratch)
        if not output:
            return version, ""
        if not test.host_compiler:
            # Debian's package installs g++-11 and no gcc, which nvcc calls.
            for name in other_host_compilers(output):
                if self.reader.exists(name):
                    other = replace(test, host_compiler=self.place(name))
                    if not self._compile(other, scratch):
                        return version, name
        raise explain_compile(test, output)

    def _compile(self, test: CompileTest, scratch: str) -> str:
        """Compile the program; return the output of nvcc if that failed, else ""."""
        source, target = f"{scratch}/kubegpu-proof.cu", f"{scratch}/kubegpu-proof.o"
        write_file(FileState(source, PROGRAM.encode(), 0o600))
        result = self.run(
            test.arguments(source, target),
            timeout=_COMPILE_TIMEOUT,
            environment=test.environment,
        )
        for path in (source, target):
            write_file(FileState(path))
        if result.ok:
            return ""
        return f"{result.stdout}\n{result.stderr}".strip() or f"it ended with {result.rc}"

    def has_compiler(self, name: str) -> bool:
        return self.run([name, "--version"]).rc != 127
