# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the option ``expected``: what each host should offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .types import Expected

_KEYS = {"name", "machine_id", "resources", "driver", "default_runtime", "gpus"}


def read_expected(given: Mapping[str, Any]) -> list[Expected]:
    """Return the option ``expected``, having checked it."""
    return [_read_expected(str(key), value or {}) for key, value in given.items()]


def _read_expected(key: str, given: Any) -> Expected:
    where = f"expected.{key}"
    if not isinstance(given, Mapping) or set(given) - _KEYS:
        raise InputError(
            f"The option {where} is not as it should be",
            evidence=f"{given!r}",
            next_step=f"It is a mapping with some of {', '.join(sorted(_KEYS))}.",
        )
    resources = given.get("resources", {})
    some = resources is None
    resources = resources or {}
    counts: dict[str, int] = {}
    for name, count in resources.items() if isinstance(resources, Mapping) else [("", "")]:
        try:
            counts[str(name)] = int(count)
        except (TypeError, ValueError):
            raise InputError(
                f"The option {where}.resources is not as it should be",
                evidence=f"{resources!r}",
                next_step='Give names of resources with whole numbers: {"nvidia.com/gpu": 4}.',
            ) from None
    return Expected(
        key,
        str(given.get("name") or key),
        given.get("machine_id") or None,
        counts,
        given.get("driver"),
        given.get("default_runtime"),
        tuple(given.get("gpus") or ()),
        some,
    )
