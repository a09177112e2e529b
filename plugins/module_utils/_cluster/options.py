# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the option ``expected``: what each host should offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import wrong_value
from .._core.options import read_arguments
from .types import VENDORS, Expected

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "name": {"type": "str"},
    "machine_id": {"type": "str"},
    # Null: any GPU will do.
    "resources": {"type": "raw", "default": {}},
    "driver": {"type": "str"},
    "default_runtime": {"type": "str"},
    "gpus": {"type": "list", "elements": "dict"},
    "some_of": {"type": "list", "elements": "str", "choices": list(VENDORS)},
    "facts": {"type": "dict"},
}


def read_expected(given: Mapping[str, Any]) -> list[Expected]:
    """Return the option ``expected``.

    :raises InputError: a value is wrong.
    """
    spec = {str(key): {"type": "dict", "options": _ARGUMENTS} for key in given}
    values = read_arguments(
        spec, {str(key): value or {} for key, value in given.items()}, "expected."
    )
    return [_read_expected(key, one) for key, one in values.items()]


def _read_expected(key: str, given: Mapping[str, Any]) -> Expected:
    resources = given["resources"]
    try:
        counts = {str(name): int(count) for name, count in (resources or {}).items()}
    except (AttributeError, TypeError, ValueError):
        raise wrong_value(
            f"expected.{key}.resources",
            "names of resources with whole numbers, such as nvidia.com/gpu: 4",
            resources,
        ) from None
    return Expected(
        key,
        given["name"] or key,
        given["machine_id"] or None,
        counts,
        given["driver"],
        given["default_runtime"],
        tuple(given["gpus"] or ()),
        resources is None,
        tuple(given["some_of"] or ()),
        given["facts"] or {},
    )
