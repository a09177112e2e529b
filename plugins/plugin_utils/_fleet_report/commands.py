# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One command and one next step for several hosts, of those that name one host each. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.fixes import (
    HOST,
    NODE,
    POD,
    POD_NAME,
)

GPU = "GPU"
_WORDS = re.compile(rf"\b({HOST}|{NODE}|{POD})\b")
_LIMIT = re.compile(rf"(?<=--limit ){HOST}(?!\S)")
# A host may be called like one of these words of a text.
_PLAIN = frozenset({"cluster", "driver", "host", "kernel", "node", "plugin", "runtime", "toolkit"})
_SHORT = 4


def fix_of_hosts(fixes: Sequence[tuple[str, str]], general: str) -> str:
    """Return what fixes a cause on several hosts.

    :param fixes: the hosts, each with its command.
    :param general: the command in which words stand for names.
    """
    if len({one for _host, one in fixes}) == 1:
        return fixes[0][1]
    hosts = dict.fromkeys(name for name, _fix in fixes if name)
    if hosts and not _WORDS.search(_LIMIT.sub("", general)):
        limit = shlex.quote(",".join(hosts))
        return _LIMIT.sub(lambda _found: limit, general)
    names = list(dict.fromkeys(_WORDS.findall(general)))
    # What reboots a node or ends a pod is not for all of them at once.
    return f"for each {' and '.join(names)}, one after the other: {general}"


def general_step(step: str, cause: str, names: Mapping[str, str]) -> str:
    """Return a next step without names; those that may be words of it stay.

    :param cause: the text of its cause, which may name a pod.
    :param names: the word for each name, such as that of the host.
    """
    words = dict(names)
    pod = POD_NAME.search(f"{cause} {step}")
    if pod:
        own = pod["name"].rstrip(".")
        words |= {f"{pod['namespace']}/{own}": POD, own: POD}
    words = {
        name: word
        for name, word in words.items()
        if name and name in step and not _may_be_a_word(name)
    }
    if not words:
        return step
    known = "|".join(re.escape(name) for name in sorted(words, key=len, reverse=True))
    pattern = rf"(?<![\w./-])(?:{known})(?![\w-]|\.\w)"
    return re.sub(pattern, lambda found: words[found[0]], step)


def _may_be_a_word(name: str) -> bool:
    return name in _PLAIN or (name.isalpha() and len(name) < _SHORT)
