# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRI settings of files that containerd 1.x does not use, because a later file replaces them. Pure.

Measured with containerd 1.6.20 and 1.7.24: an imported file with a table of CRI replaces that table
of all earlier files as a whole. containerd 2.1.9 merges the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import KubegpuError
from .._runtime.config_file import table
from .config import meaning
from .data import RUNC_SHIM, RUNTIMES, Path
from .types import State
from .values import has, leaves, value_at

# Settings of one file that a text names.
_MOST = 8


@dataclass(frozen=True)
class Voided:
    """The file ``by`` replaces settings of other files: paths below the CRI table, by file."""

    by: str
    lost: Mapping[str, tuple[str, ...]]
    version: str

    @property
    def settings(self) -> str:
        return "; ".join(f"{path}: {_listed(names)}" for path, names in self.lost.items())

    @property
    def next_step(self) -> str:
        first = next(iter(self.lost))
        return (
            f"Move the CRI table of {self.by} to {first} and delete it there, or write these "
            f"settings to {self.by}; then run again."
        )

    @property
    def warning(self) -> str:
        return (
            f"{self.by} voids CRI settings of other files. containerd {self.version} replaces the "
            f"whole table by that of the last file and does not merge them. Not in effect: "
            f"{self.settings}. Next step: {self.next_step}"
        )

    def refusal(self, why: str) -> KubegpuError:
        return KubegpuError(
            f"{self.by} voids CRI settings of other files: containerd {self.version} replaces the "
            f"whole table by that of the last file. {why}",
            evidence=self.settings,
            next_step=self.next_step,
        )


def find_voided(state: State) -> Voided | None:
    """Return what the last file with a CRI table replaces; None: nothing that differs."""
    if state.deep_merge:
        return None
    *earlier, last = state.defining(()) or [state.root]
    effective = table(last.data, state.cri)
    lost = {file.path: _lost(table(file.data, state.cri), effective) for file in earlier}
    lost = {path: names for path, names in lost.items() if names}
    dotted = f"{state.version[0]}.{state.version[1]}"
    return Voided(last.path, lost, dotted) if lost else None


def voided_runc(state: State) -> tuple[str, Mapping[str, Any]] | None:
    """Return the runc that ordinary pods had, and its file, if the last file has lost it.

    None: runc is not missing, or no file has it.
    """
    explicit = table(state.explicit, RUNTIMES)
    if state.deep_merge or not explicit or "runc" in explicit or state.default != "runc":
        return None
    for file in reversed(state.defining((*RUNTIMES, "runc"))):
        runc = table(file.data, (*state.cri, *RUNTIMES, "runc"))
        return file.path, {"runtime_type": RUNC_SHIM, **runc}
    return None


def refuse_lost_default(state: State, name: str) -> None:
    """Check that no other default runtime was lost together with its handler.

    A runc that is added for it would run all pods.

    :param name: the requested handler.
    :raises KubegpuError: one was.
    """
    found = find_voided(state)
    explicit = table(state.explicit, RUNTIMES)
    if found is None or state.default != "runc" or not explicit or "runc" in explicit:
        return
    for path in reversed([*found.lost]):
        file = next(file for file in state.files if file.path == path)
        default = table(file.data, (*state.cri, "containerd")).get("default_runtime_name")
        if default and default not in ("runc", name):
            raise found.refusal(
                f"The default runtime {default} of {path} is lost, and no pod can start; with a "
                "runc that is added all pods would run by that."
            )
        if default:
            return


def _lost(settings: Mapping[str, Any], effective: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings that differ, a table that is missing as a whole by its name."""
    return tuple(
        dict.fromkeys(
            ".".join(_missing(path, effective)) for path in _differing(settings, effective)
        )
    )


def _differing(settings: Mapping[str, Any], effective: Mapping[str, Any]) -> Iterator[Path]:
    for path, value in leaves(settings):
        found = value_at(effective, path)
        if found != (value,) and (found or meaning({"": value})):
            yield path


def _missing(path: Path, effective: Mapping[str, Any]) -> Path:
    """Return the outermost table of the path that is missing, of runtimes the runtime."""
    least = len(RUNTIMES) + 1 if path[: len(RUNTIMES)] == RUNTIMES else 1
    for length in range(least, len(path)):
        if not has(effective, path[:length]):
            return path[:length]
    return path


def _listed(names: tuple[str, ...]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
