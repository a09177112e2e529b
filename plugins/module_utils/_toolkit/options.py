# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the toolkit's filter, as the decision wants them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .._core.options import truth
from .types import ToolkitWish

_THREE = ("auto", "true", "false")
_CHOICES = {
    "containerd": _THREE,
    "docker": _THREE,
    "crio": _THREE,
    "docker_restart": ("never", "if_idle", "always"),
}


def read_wish(given: Mapping[str, Any]) -> ToolkitWish:
    """Return the wish; what is missing or None has its default.

    :raises InputError: an option is not as it has to be; it is named.
    """
    unknown = sorted(set(given) - set(ToolkitWish.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} is not known.",
            next_step=f"Known are {', '.join(sorted(ToolkitWish.__dataclass_fields__))}.",
        )
    wishes: dict[str, Any] = {}
    for name, known in ToolkitWish.__dataclass_fields__.items():
        value = given.get(name)
        if value is None:
            continue
        if isinstance(known.default, bool):
            wishes[name] = _boolean(name, value)
        elif name == "key_fingerprints":
            wishes[name] = tuple(str(text) for text in _list(name, value))
        elif name in ("settings", "containerd_options"):
            if not isinstance(value, Mapping):
                raise _wrong(name, value, "a mapping")
            wishes[name] = dict(value)
        elif name in _CHOICES:
            # YAML makes a boolean of true, which is a word here.
            wishes[name] = str(value).lower()
            if wishes[name] not in _CHOICES[name]:
                raise _wrong(name, value, f"one of {', '.join(_CHOICES[name])}")
        else:
            wishes[name] = str(value)
    return ToolkitWish(**wishes)


def _list(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, value, "a list")
    return list(value)


def _boolean(name: str, value: Any) -> bool:
    found = truth(value)
    if found is None:
        raise _wrong(name, value, "true or false")
    return found


def _wrong(name: str, value: Any, words: str) -> InputError:
    return InputError(
        f"nvidia_container_toolkit_{name} has to be {words}.", evidence=f"{name}: {value!r}"
    )
