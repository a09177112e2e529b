# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CUDA toolkits' part of a node that is no file and no package: link, installer, compiler.

Everything is done by a runner and seen by a reader that are passed in. Paths are the node's; with
another root than ``/`` they are below it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._core.errors import KubegpuError
from .._host.command import Result, Runner
from .._host.files import FileState, write_file
from .._nvidia.runfile import CUDA_LOG, uninstall_arguments
from .compiler import PROGRAM, Proof, check_release, explain_compile, other_host_compilers
from .config_files import LINK, PREFIX
from .installer import explain_runfile
from .link import (
    GROUP,
    OTHER,
    Link,
    LinkChange,
    parse_alternatives,
    restore_link,
)
from .link import LINK as PLAIN_LINK

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_ALTERNATIVE = "/etc/alternatives/cuda"
_FOLDER = re.compile(re.escape(PREFIX) + r"\d+\.\d+\Z")
_UNINSTALL_TIMEOUT = 1800
_COMPILE_TIMEOUT = 300


@dataclass(frozen=True)
class CudaNode:
    """One node."""

    run: Runner
    reader: NodeReader

    def place(self, path: str) -> str:
        """Return where a path of the node is for commands."""
        return path if self.reader.root == "/" else f"{self.reader.root}{path}"

    # The link.

    def read_link(self) -> Link:
        target = self._target()
        if target is None and self.reader.exists(LINK):
            return Link(OTHER)
        found = self._alternatives()
        if found is not None:
            # Whoever makes the link by hand, as a runfile does, passes the alternatives by.
            through = target is not None and target.endswith(_ALTERNATIVE)
            return found if through else replace(found, target=target or "")
        return Link() if target is None else Link(PLAIN_LINK, target)

    def _target(self) -> str | None:
        if not self.reader.is_link(LINK):
            return None
        return self.run(["readlink", self.place(LINK)]).stdout.strip()

    def change_link(self, change: LinkChange) -> None:
        """Run the commands of the change, and see that the link is as promised."""
        for argv in change.commands:
            words = list(argv)
            if words[0] == "update-alternatives":
                words[1:1] = self._alternatives_root()
            elif words[0] == "ln":
                # The target stays as the node sees it.
                words[-1] = self.place(words[-1])
            else:
                words = [self.place(word) if word.startswith("/") else word for word in words]
            answer = self.run(words)
            if not answer.ok:
                raise KubegpuError(
                    f"{LINK} cannot be changed.",
                    evidence=f"{' '.join(argv)}: {answer.words()}",
                    next_step="Run with become, and look at what stands there.",
                )

    def _alternatives(self) -> Link | None:
        argv = ["update-alternatives", *self._alternatives_root(), "--query", GROUP]
        answer = self.run(argv)
        return parse_alternatives(answer.stdout) if answer.ok else None

    def _alternatives_root(self) -> list[str]:
        return [] if self.reader.root == "/" else ["--root", self.reader.root]

    # Installer and uninstaller.

    def install(
        self, version: str, file: str, path: str, arguments: Sequence[str], limit: int
    ) -> None:
        """Run CUDA's installer; what it left half done is taken away again.

        It makes the link to the default its own, which is put back: that is a later step.
        """
        self._check_folder(path)
        before = self._target()
        answer = self.run(
            ["sh", file, *(self._below(argument, path) for argument in arguments)], timeout=limit
        )
        if self._target() != before:
            self.change_link(restore_link(LINK, before))
        if answer.ok and self.reader.exists(f"{path}/bin/nvcc"):
            return
        log = (self.reader.read_text(CUDA_LOG) or "").splitlines()[-30:]
        words = (
            answer.words() if not answer.ok else f"it ended well, but {path}/bin/nvcc is not there"
        )
        self.remove(path)
        raise explain_runfile(version, path, words, "\n".join(log))

    def uninstall(self, path: str) -> str:
        """Run a toolkit's own uninstaller; return what is left of it, or nothing."""
        self._check_folder(path)
        uninstaller = f"{path}/bin/cuda-uninstaller"
        if self.reader.exists(uninstaller):
            answer = self.run(
                uninstall_arguments(self.place(uninstaller)), timeout=_UNINSTALL_TIMEOUT
            )
            if not answer.ok:
                raise KubegpuError(
                    f"The uninstaller of {path} failed; what it left is still there.",
                    evidence=answer.words(),
                    next_step=f"Run {uninstaller} by hand.",
                )
        if not self.reader.exists(path):
            return ""
        self.run(["find", self.place(path), "-depth", "-type", "d", "-empty", "-delete"])
        return path if self.reader.exists(path) else ""

    def remove(self, path: str) -> None:
        """Remove a folder that our own installer left half done."""
        self._check_folder(path)
        self.run(["rm", "-rf", self.place(path)], timeout=_UNINSTALL_TIMEOUT)

    @staticmethod
    def _check_folder(path: str) -> None:
        if not _FOLDER.match(path):
            raise KubegpuError(f"{path} is no folder of a CUDA toolkit; nothing was changed.")

    def _below(self, argument: str, path: str) -> str:
        return argument.replace(path, self.place(path)) if path in argument else argument

    # Loader and compiler.

    def refresh_loader(self) -> Result:
        root = [] if self.reader.root == "/" else ["-r", self.reader.root]
        return self.run(["ldconfig", *root], timeout=120)

    def prove(self, proof: Proof, scratch: str) -> tuple[str, str]:
        """Have the compiler say its version and compile.

        :returns: the version, and the host compiler that had to be named, or nothing.
        """
        answer = self.run([proof.nvcc, "--version"], environment=proof.environment)
        version = check_release(proof, f"{answer.stdout}\n{answer.stderr}", found=answer.rc != 127)
        words = self._compile(proof, scratch)
        if not words:
            return version, ""
        if not proof.host_compiler:
            # Debian's package brings g++-11 and no gcc, which nvcc asks for.
            for name in other_host_compilers(words):
                if self.reader.exists(name):
                    other = replace(proof, host_compiler=self.place(name))
                    if not self._compile(other, scratch):
                        return version, name
        raise explain_compile(proof, words)

    def _compile(self, proof: Proof, scratch: str) -> str:
        """Compile the program; return what was said where that failed."""
        source, result = f"{scratch}/kubegpu-proof.cu", f"{scratch}/kubegpu-proof.o"
        write_file(FileState(source, PROGRAM.encode(), 0o600))
        answer = self.run(
            proof.arguments(source, result),
            timeout=_COMPILE_TIMEOUT,
            environment=proof.environment,
        )
        for path in (source, result):
            write_file(FileState(path))
        if answer.ok:
            return ""
        return f"{answer.stdout}\n{answer.stderr}".strip() or f"it ended with {answer.rc}"

    def has_compiler(self, name: str) -> bool:
        return self.run([name, "--version"]).rc != 127
