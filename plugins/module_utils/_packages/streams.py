# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Streams of dnf's modules as a part of a package set: from wish, node and record to a plan. Pure.

A module has one stream at most, and only the packages of that stream are offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .._core.errors import InputError, KubegpuError
from .failures import cause_of

# No stream is enabled, and dnf may take the default one.
NONE = ""
# No stream may be enabled. The name of no stream begins so.
DISABLED = "!disabled"

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\Z")


@dataclass(frozen=True)
class Streams:
    """The streams of modules as they are and as they shall be, by module."""

    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> dict[str, str]:
        return {
            module: stream
            for module, stream in sorted(self.after.items())
            if self.before.get(module, NONE) != stream
        }

    def reasons(self, *, present: bool) -> tuple[str, ...]:
        return tuple(
            f"The stream of the module {module} is {_words(self.before.get(module, NONE))}, "
            f"{'asked for is' if present else 'before it was'} {_words(stream)}."
            for module, stream in self.changes.items()
        )


@dataclass(frozen=True)
class Kept:
    """What the record remembers: each stream before our first change, and what we made of it."""

    before: Mapping[str, str] = field(default_factory=dict)
    ours: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before)


def check(streams: Mapping[str, str]) -> None:
    """Refuse names that could mean anything else to dnf."""
    for module, stream in streams.items():
        for word in (module, stream):
            if not _WORD.match(word):
                raise InputError(
                    f"module_streams: {word!r} is no name of a module or a stream.",
                    next_step="Give a stream for each module, such as nvidia-driver: 580-open.",
                )


def given_back(kept: Kept, now: Mapping[str, str]) -> Streams:
    """Return the way back to the streams from before us.

    What somebody has switched since stays. A module without a stream is what a switch that was
    killed has left.
    """
    after = {
        module: earlier if now.get(module, NONE) in (kept.ours.get(module), NONE) else now[module]
        for module, earlier in kept.before.items()
    }
    return Streams(now, after)


def begun(kept: Kept, streams: Streams) -> Kept:
    """Return the record to be kept before the switch; what was first seen stays."""
    return Kept({**streams.before, **kept.before}, {**kept.ours, **streams.after})


def shown(streams: Mapping[str, str]) -> str:
    """Return the streams as the lines of a diff."""
    return "".join(
        f"module {module}:{stream if stream != DISABLED else 'disabled'}\n"
        for module, stream in sorted(streams.items())
        if stream != NONE
    )


def unknown(streams: Streams, offered: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the streams to be enabled that no repository has."""
    return tuple(
        f"{module}:{stream}"
        for module, stream in streams.changes.items()
        if stream not in (NONE, DISABLED) and stream not in offered.get(module, ())
    )


def without_unknown(streams: Streams, offered: Mapping[str, Sequence[str]]) -> Streams:
    """Return the streams with none in place of those that no repository has."""
    lacking = unknown(streams, offered)
    after = {
        module: NONE if f"{module}:{stream}" in lacking else stream
        for module, stream in streams.after.items()
    }
    return Streams(streams.before, after)


def not_offered(
    names: Sequence[str], offered: Mapping[str, Sequence[str]], refresh: str
) -> KubegpuError:
    """Return the failure for streams that no repository has."""
    seen = "; ".join(
        f"{module}: {', '.join(offered.get(module, ())) or 'no such module'}"
        for module in dict.fromkeys(name.partition(":")[0] for name in names)
    )
    cause, next_step = cause_of(refresh) or (
        "",
        "Ask for a stream that is there, or correct the repository.",
    )
    return KubegpuError(
        f"No repository of this node has the module stream {', '.join(names)}; nothing was "
        f"changed. {cause}".rstrip(),
        evidence=f"streams that are there: {seen}" + (f"\n{refresh}" if refresh else ""),
        next_step=next_step,
    )


def _words(stream: str) -> str:
    return {NONE: "not enabled", DISABLED: "disabled"}.get(stream, stream)
