# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the role and the filter, as a request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .._core.options import truth
from .types import Request

_AUTO = ("auto", "true", "false")
_CHOICES = {
    "containerd": _AUTO,
    "docker": _AUTO,
    "crio": _AUTO,
    "docker_restart": ("never", "if_idle", "always"),
}


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option is unknown or has a wrong value; the message names it.
    """
    unknown = sorted(set(given) - set(Request.__dataclass_fields__))
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} is not known.",
            next_step=f"Known are {', '.join(sorted(Request.__dataclass_fields__))}.",
        )
    values: dict[str, Any] = {}
    for name, known in Request.__dataclass_fields__.items():
        value = given.get(name)
        if value is None:
            continue
        if isinstance(known.default, bool):
            values[name] = _boolean(name, value)
        elif name == "key_fingerprints":
            values[name] = tuple(str(text) for text in _list(name, value))
        elif name in ("settings", "containerd_options"):
            if not isinstance(value, Mapping):
                raise _wrong(name, value, "a mapping")
            values[name] = dict(value)
        elif name in _CHOICES:
            # YAML reads an unquoted true as a boolean.
            values[name] = str(value).lower()
            if values[name] not in _CHOICES[name]:
                raise _wrong(name, value, f"one of {', '.join(_CHOICES[name])}")
        else:
            values[name] = str(value)
    return Request(**values)


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


def _wrong(name: str, value: Any, expected: str) -> InputError:
    return InputError(
        f"nvidia_container_toolkit_{name} has to be {expected}.", evidence=f"{name}: {value!r}"
    )
