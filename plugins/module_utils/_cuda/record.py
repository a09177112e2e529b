# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the node remembers of its CUDA toolkits, what the compiler's words mean. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .._core.errors import KubegpuError
from .._nvidia.compatibility import minor

# The value of the node's record, the beginning of the keys of its files, the set of packages.
RECORD = "cuda_toolkit"
FILES = "cuda_toolkit::"
SET = "cuda-toolkit"
GROUP = "cuda"

ABSENT = "absent"
LINK = "link"
ALTERNATIVES = "alternatives"
OTHER = "other"

PROGRAM = """\
__global__ void kubegpu(int *value) { *value = 1; }
int main() { kubegpu<<<1, 1>>>(0); return 0; }
"""
_FOLDERS = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_RELEASE = re.compile(r"release (\d+\.\d+), V([\d.]+)")
_TOO_NEW = re.compile(r"unsupported (GNU|clang) version! (.*?) are not supported")
_NO_COMPILER = (
    "No supported gcc/g++ host compiler",
    "Failed to preprocess host compiler properties",
)
_NO_ARCHITECTURE = re.compile(
    r"Unsupported gpu architecture '(\w+)'|Value '(\w+)' is not defined for option 'gpu-arch"
)
_MISSING = re.compile(r"\S*(?:gcc|g\+\+|clang|cc1plus)\S*:? (?:No such file|not found)")
# Of the packages g++-N of Debian and Ubuntu.
_OLDEST_KNOWN, _NEWEST_KNOWN = 7, 15
_NEWEST_GCC = re.compile(r"gcc versions later than (\d+)")


@dataclass(frozen=True)
class Link:
    """What stands at ``/usr/local/cuda``.

    ``target`` is what a plain link says, or the value of the alternatives; ``manual`` and
    ``choices`` are those of the alternatives.
    """

    kind: str = ABSENT
    target: str = ""
    manual: bool = False
    choices: tuple[str, ...] = ()

    def shown(self) -> str:
        if self.kind == ABSENT:
            return "absent\n"
        if self.kind == OTHER:
            return "a file or directory\n"
        return f"{self.target}\n"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "target": self.target,
            "manual": self.manual,
            "choices": list(self.choices),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Link:
        return cls(data["kind"], data["target"], data["manual"], tuple(data["choices"]))


@dataclass(frozen=True)
class Memory:
    """What the node's record says of its CUDA toolkits.

    ``link``: what stood there before our first change of it, ``target``: what we set it to.
    ``choices``: what we added to the alternatives. ``runfiles``: the folders that we installed by
    runfile. ``pending``: folders whose installer was begun and did not come to its end.
    """

    link: Link | None = None
    target: str = ""
    choices: tuple[str, ...] = ()
    runfiles: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "link": None if self.link is None else self.link.to_json(),
            "target": self.target,
            "choices": list(self.choices),
            "runfiles": list(self.runfiles),
            "pending": list(self.pending),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Memory | None:
        if data is None:
            return None
        return cls(
            None if data["link"] is None else Link.from_json(data["link"]),
            data["target"],
            tuple(data["choices"]),
            tuple(data["runfiles"]),
            tuple(data["pending"]),
        )

    def begun(self, path: str) -> Memory:
        """Return the record before an installer runs for the folder ``path``."""
        return replace(self, pending=tuple(dict.fromkeys((*self.pending, path))))

    def ended(self, path: str, *, installed: bool) -> Memory:
        """Return the record after it."""
        mine = (*self.runfiles, path) if installed else self.runfiles
        return replace(
            self,
            pending=tuple(one for one in self.pending if one != path),
            runfiles=tuple(dict.fromkeys(mine)),
        )


@dataclass(frozen=True)
class LinkChange:
    """What is done with the link. ``commands`` are run in this order."""

    before: Link
    after: Link
    commands: tuple[tuple[str, ...], ...] = ()
    warning: str = ""

    @property
    def changed(self) -> bool:
        return (self.before.kind == ABSENT, self.before.target) != (
            self.after.kind == ABSENT,
            self.after.target,
        )


def parse_alternatives(text: str) -> Link | None:
    """Return what ``update-alternatives --query`` printed, or None."""
    values: dict[str, str] = {}
    choices = []
    for line in text.splitlines():
        name, _colon, value = line.partition(": ")
        if name == "Alternative":
            choices.append(value.strip())
        else:
            values.setdefault(name, value.strip())
    if "Link" not in values or "Value" not in values:
        return None
    return Link(ALTERNATIVES, values["Value"], values.get("Status") == "manual", tuple(choices))


def set_link(path: str, now: Link, target: str) -> LinkChange:
    """Return how ``path`` is made to lead to ``target``."""
    if now.kind == OTHER:
        raise KubegpuError(
            f"{path} is no link; nothing was changed.",
            next_step="Move it away, or leave the link alone: default: none.",
        )
    if now.target == target and now.kind != ABSENT:
        return LinkChange(now, now)
    if now.kind == ALTERNATIVES:
        commands: list[tuple[str, ...]] = []
        if target not in now.choices:
            # The lowest priority: what a package brings later is better by itself.
            commands.append(
                ("update-alternatives", "--install", path, GROUP, target, "1"),
            )
        commands.append(("update-alternatives", "--set", GROUP, target))
        return LinkChange(now, replace(now, target=target, manual=True), tuple(commands))
    return LinkChange(now, Link(LINK, target), _make(path, target))


def restore_link(path: str, target: str | None) -> LinkChange:
    """Return how the link is made again as it was; None: there was none."""
    if target is None:
        return LinkChange(Link(), Link(), (("rm", "-f", path),))
    after = Link(LINK, target)
    return LinkChange(after, after, _make(path, target))


def give_link_back(path: str, now: Link, memory: Memory) -> LinkChange:
    """Return how the link is made as it was before us."""
    before = memory.link
    if before is None or not memory.target:
        return LinkChange(now, now)
    commands: list[tuple[str, ...]] = []
    if now.kind == ALTERNATIVES:
        left = tuple(choice for choice in now.choices if choice not in memory.choices)
        commands = [
            ("update-alternatives", "--remove", GROUP, choice)
            for choice in memory.choices
            if choice in now.choices
        ]
        if now.manual and now.target not in (memory.target, before.target):
            note = f"{path} was set to {now.target} since, and stays so."
            return LinkChange(now, now, tuple(commands), note)
        if before.kind == ALTERNATIVES and before.manual and before.target in left:
            commands.append(("update-alternatives", "--set", GROUP, before.target))
            return LinkChange(now, before, tuple(commands))
        if left:
            commands.append(("update-alternatives", "--auto", GROUP))
            after = before if before.target in left else replace(now, target=left[0])
            return LinkChange(now, after, tuple(commands))
        if before.kind == LINK:
            return LinkChange(now, before, (*commands, *_make(path, before.target)))
        return LinkChange(now, Link(), tuple(commands))
    if now.kind == LINK and now.target != memory.target:
        return LinkChange(now, now, (), f"{path} was set to {now.target} since, and stays so.")
    if before.kind == LINK:
        return LinkChange(now, before, _make(path, before.target))
    if now.kind == LINK and before.kind in (ABSENT, ALTERNATIVES):
        return LinkChange(now, Link(), (("rm", "-f", path),))
    return LinkChange(now, now)


def _make(path: str, target: str) -> tuple[tuple[str, ...], ...]:
    # Beside it and renamed: at no time does nothing stand there.
    beside = f"{path}.kubegpu"
    return (
        ("ln", "-sfnT", target, beside),
        ("mv", "-fT", beside, path),
    )


# The proof.


@dataclass(frozen=True)
class Proof:
    """One compiler's proof: what it is called with."""

    version: str
    path: str
    architecture: str | None
    host_compiler: str = ""

    @property
    def nvcc(self) -> str:
        return f"{self.path}/bin/nvcc"

    @property
    def environment(self) -> dict[str, str]:
        """The search path: nvcc calls ptxas by name, and must not find another version's."""
        return {"PATH": f"{self.path}/bin:{_FOLDERS}"}

    def arguments(self, source: str, result: str) -> list[str]:
        architecture = [f"-arch={self.architecture}"] if self.architecture else []
        host = ["-ccbin", self.host_compiler] if self.host_compiler else []
        return [self.nvcc, "-c", *architecture, *host, "-o", result, source]


def nvcc_release(text: str) -> tuple[str, str] | None:
    """Return release and version of ``nvcc --version``: ``12.4`` and ``12.4.131``."""
    match = _RELEASE.search(text)
    return (match.group(1), match.group(2)) if match else None


def check_release(proof: Proof, text: str, *, found: bool) -> str:
    """Return the compiler's version; refuse one that is not there or of another release.

    :param text: what ``nvcc --version`` said.
    """
    release = nvcc_release(text)
    if not found or release is None:
        raise KubegpuError(
            f"The compiler {proof.nvcc} of CUDA {proof.version} "
            + ("is not there." if not found else "does not say its version."),
            evidence=text.strip()[-500:],
            next_step="Look whether the toolkit is complete (cuda-toolkit, or the runfile with "
            "--toolkit); remove the folder and run again.",
        )
    if release[0] != minor(proof.version):
        raise KubegpuError(
            f"{proof.nvcc} is of CUDA {release[0]}, not {minor(proof.version)}.",
            evidence=text.strip().splitlines()[-1],
            next_step="Look what put it there; remove the folder and run again.",
        )
    return release[1]


def other_host_compilers(words: str) -> tuple[str, ...]:
    """Return the host compilers to try where nvcc does not take the default one, newest first."""
    newest = _NEWEST_GCC.search(words)
    if not newest and not _no_compiler(words):
        return ()
    last = int(newest.group(1)) if newest else _NEWEST_KNOWN
    return tuple(f"/usr/bin/g++-{number}" for number in range(last, _OLDEST_KNOWN - 1, -1))


def _no_compiler(words: str) -> bool:
    return bool(_MISSING.search(words)) or any(text in words for text in _NO_COMPILER)


def explain_compile(proof: Proof, words: str) -> KubegpuError:
    """Return why the proof did not compile."""
    what = f"nvcc of CUDA {proof.version} is installed, but cannot compile"
    host = proof.host_compiler or "g++"
    too_new = _TOO_NEW.search(words)
    if too_new:
        newest = _NEWEST_GCC.search(words)
        name = f"g++-{newest.group(1)}" if newest else "an older compiler"
        return KubegpuError(
            f"{what}: the host compiler {host} is too new for it.",
            evidence=too_new.group(0),
            next_step=f"Install {name} or older, and give it: host_compiler: /usr/bin/{name}; or "
            "ask for a newer CUDA, or leave the proof out (verify: false)."
            if newest
            else "Give an older one with host_compiler, or leave the proof out (verify: false).",
        )
    if _no_compiler(words):
        return KubegpuError(
            f"{what}: no host compiler that it takes is there.",
            evidence=words.strip().splitlines()[0],
            next_step="Install g++ (on Debian and Ubuntu: build-essential), in a version that "
            f"CUDA {proof.version} takes; give it by host_compiler where it is not the default "
            "one; or leave the proof out (verify: false).",
        )
    architecture = _NO_ARCHITECTURE.search(words)
    if architecture:
        return KubegpuError(
            f"{what} for {architecture.group(1) or architecture.group(2)}, which a GPU of this "
            "node is.",
            evidence=words.strip().splitlines()[-1],
            next_step="Ask for a CUDA version that knows the GPU (driver_required_by says which "
            "it has dropped).",
        )
    return KubegpuError(
        f"{what}.",
        evidence="\n".join(words.strip().splitlines()[-15:]),
        next_step=f"Run it by hand: {proof.nvcc} -c file.cu; or leave the proof out "
        "(verify: false).",
    )


def explain_runfile(version: str, path: str, words: str, log: str) -> KubegpuError:
    """Return why CUDA's installer failed.

    :param log: the end of the installer's own log.
    """
    said = f"{words}\n{log}"
    lines = [line for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"error|fail|no space|not enough", line, re.I)]
    if re.search(r"no space left|not enough space|insufficient", said, re.IGNORECASE):
        return KubegpuError(
            f"The installer of CUDA {version} found too little space.",
            evidence="\n".join(telling[-5:]),
            next_step=f"Free about 10 GB on the file systems of {path} and of /tmp, or name "
            "another folder to unpack in: temporary.",
        )
    return KubegpuError(
        f"The installer of CUDA {version} failed; {path} is as it was.",
        evidence="\n".join((telling or lines)[-8:]),
        next_step="See /var/log/cuda-installer.log on the node.",
    )
