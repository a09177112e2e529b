# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Make values of nodes fit for a report: plain types, printable, without secrets. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.redact import redact

from .types import HIDDEN, Object, Source

_MARK = "(hidden)"
#: A function of a GPU, in the forms of the kernel, of nvidia-smi and of Xids.
ADDRESS = re.compile(
    r"\b(?:[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?"
    r"|[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\b"
)
_UUID = re.compile(r"\b(?:GPU|MIG)-[0-9A-Fa-f-]{8,}")
# Shorter texts can be parts of words.
_MIN_LENGTH = 6


def text(value: Any) -> str:
    """Return a value of a node as one printable text without secrets; empty for None."""
    if value is None:
        return ""
    # Ansible's strings are of types of its own.
    return _clean(str.__str__(value) if isinstance(value, str) else str(value))


@functools.lru_cache(maxsize=8192)
def _clean(value: str) -> str:
    """Many nodes say the same."""
    return redact(printable(value)).strip()


def number(value: Any) -> int | None:
    """Return a number of a node; None for anything else."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Return the texts that are not empty, each once."""
    return tuple(dict.fromkeys(found for found in map(text, values) if found))


def sequence(value: Any) -> Sequence[Any]:
    """Return a list of a node; empty for anything else."""
    return value if isinstance(value, (list, tuple)) else ()


def mapping(value: Any) -> Object:
    """Return a mapping of a node; empty for anything else."""
    return value if isinstance(value, Mapping) else {}


class Hider:
    """Leaves values of machines out of all texts of a report."""

    def __init__(self, hide: Sequence[str], sources: Iterable[Source]) -> None:
        self._hide = frozenset(hide)
        known = sorted(self._known(sources), key=len, reverse=True)
        patterns = [re.escape(one) for one in known]
        if "uuid" in self._hide:
            patterns.append(_UUID.pattern)
        if "address" in self._hide:
            patterns.append(ADDRESS.pattern)
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def _known(self, sources: Iterable[Source]) -> set[str]:
        found: set[str] = set()
        for source in sources:
            facts = source.facts or {}
            values = [("machine_id", mapping(facts.get("os")).get("machine_id"))]
            devices = [
                *sequence(mapping(facts.get("nvml")).get("devices")),
                *sequence(mapping(source.health).get("gpus")),
            ]
            values += [(key, device.get(key)) for device in devices for key in HIDDEN]
            found |= {str(value) for key, value in values if key in self._hide and value}
        return {one for one in found if len(one) >= _MIN_LENGTH}

    def __call__(self, value: Any, name: str = "") -> Any:
        """Return JSON data without the values that are hidden.

        :param name: the name of the value in what it is part of.
        """
        if name in self._hide:
            return "" if isinstance(value, str) else None
        if isinstance(value, str):
            return self._pattern.sub(_MARK, value) if self._pattern else value
        if isinstance(value, dict):
            return {key: self(one, key) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self(one) for one in value]
        return value
