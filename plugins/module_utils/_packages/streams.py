# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Streams of dnf's modules in a package set, and the commands of dnf 4 for them.

A module has one stream at most, and only the packages of that stream are offered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .._core.errors import InputError, KubegpuError
from .failures import NOTHING_SEEN, Circumstances, cause_of
from .module_files import DISABLED, NONE, module_file
from .types import StreamRecord, Streams

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\Z")


def check(streams: Mapping[str, str]) -> None:
    """Check names of modules and streams.

    :raises InputError: a name could mean something else to dnf.
    """
    for module, stream in streams.items():
        for word in (module, stream):
            if not _WORD.match(word):
                raise InputError(
                    f"module_streams: {word!r} is not a name of a module or a stream.",
                    next_step="Give a stream for each module, such as nvidia-driver: 580-open.",
                )


def restored_streams(record: StreamRecord, now: Mapping[str, str]) -> Streams:
    """Return the streams to restore for state absent.

    What was switched since remains. A module without a stream is what a switch that was
    killed has left.
    """
    after = {
        module: earlier if now.get(module, NONE) in (record.ours.get(module), NONE) else now[module]
        for module, earlier in record.before.items()
    }
    return Streams(now, after)


def record_streams(record: StreamRecord, streams: Streams) -> StreamRecord:
    """Return the record to store before the switch; it keeps the first streams."""
    return StreamRecord({**streams.before, **record.before}, {**record.ours, **streams.after})


def shown(streams: Mapping[str, str]) -> str:
    """Return the streams as the lines of a diff."""
    return "".join(
        f"module {module}:{stream if stream != DISABLED else 'disabled'}\n"
        for module, stream in sorted(streams.items())
        if stream != NONE
    )


def unavailable_streams(streams: Streams, offered: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the streams to enable that no repository has."""
    return tuple(
        f"{module}:{stream}"
        for module, stream in streams.changes.items()
        if stream not in (NONE, DISABLED) and stream not in offered.get(module, ())
    )


def without_unavailable(streams: Streams, offered: Mapping[str, Sequence[str]]) -> Streams:
    """Return the streams, with no stream in place of those that no repository has."""
    lacking = unavailable_streams(streams, offered)
    after = {
        module: NONE if f"{module}:{stream}" in lacking else stream
        for module, stream in streams.after.items()
    }
    return Streams(streams.before, after)


def not_offered(
    names: Sequence[str],
    offered: Mapping[str, Sequence[str]],
    refresh: str,
    circumstances: Circumstances = NOTHING_SEEN,
) -> KubegpuError:
    """Return the error for streams that no repository has.

    :param refresh: errors of the last refresh of the package lists.
    :param circumstances: what the node shows of these errors.
    """
    seen = "; ".join(
        f"{module}: {', '.join(offered.get(module, ())) or 'no such module'}"
        for module in dict.fromkeys(name.partition(":")[0] for name in names)
    )
    cause, next_step, code = cause_of(refresh, circumstances) or (
        "",
        "Ask for a stream that is there, or correct the repository.",
        "package_missing",
    )
    return KubegpuError(
        f"No repository of this node has the module stream {', '.join(names)}; nothing was "
        f"changed. {cause}".rstrip(),
        evidence=f"streams that are there: {seen}" + (f"\n{refresh}" if refresh else ""),
        next_step=next_step,
        code=code,
    )


# For a command that has to see other streams than the enabled ones: it runs in a mount namespace of
# its own, where dnf's configuration is a copy in memory. The arguments are pairs of module and text
# of its file, then "--" and the command.
_ASSUMING = (
    *("unshare", "--mount", "sh", "-c"),
    'cd "$0" && mount -t tmpfs -o mode=0755 tmpfs "$0" && cp -a . "$0"/ && mkdir -p "$0/modules.d" '
    '&& while [ "$1" != -- ]; do printf %s "$2" >"$0/modules.d/$1.module" && shift 2; done '
    '&& shift && cd / && exec "$@"',
    "/etc/dnf",
)


def with_streams_prefix(streams: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments that make a command see these streams enabled."""
    files = (word for name, stream in streams.items() for word in (name, module_file(name, stream)))
    return (*_ASSUMING, *files, "--") if streams else ()


def parse_module_list(text: str) -> dict[str, tuple[str, ...]]:
    """Return the streams of each module from the output of ``dnf module list``."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and not line.startswith((" ", "Hint:", "Name ")):
            found.setdefault(words[0], []).append(words[1])
    return {module: tuple(dict.fromkeys(streams)) for module, streams in found.items()}


def switch_commands(
    program: Sequence[str], now: Mapping[str, str], wanted: Mapping[str, str]
) -> tuple[list[str], ...]:
    """Return the commands that switch to the streams.

    Ansible's module is not used: it enables a stream only by installing one of its profiles, which
    is more than the set requests, and dnf does not enable a stream while another one is enabled.
    """
    found: list[list[str]] = []
    for module, stream in wanted.items():
        if now.get(module, NONE) != NONE:
            found.append([*program, "module", "reset", module])
        if stream == DISABLED:
            found.append([*program, "module", "disable", module])
        elif stream != NONE:
            found.append([*program, "module", "enable", f"{module}:{stream}"])
    return tuple(found)
