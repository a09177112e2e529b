# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse Kubernetes quantities: ``4``, ``500m``, ``1Gi``, ``1e3``. Pure.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from fractions import Fraction

from .._core.errors import KubegpuError

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|([A-Za-z]*))\Z", re.ASCII)
_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}
#: Longest text, in characters, and largest exponent. Kubernetes caps quantities at 2**63 - 1.
_MAX_LENGTH = 100
_MAX_EXPONENT = 100


def parse_quantity(value: object) -> Fraction:
    """Return a quantity as a number.

    :raises KubegpuError: ``value`` is not a quantity.
    """
    text = str(value).strip()
    match = _QUANTITY.match(text) if len(text) <= _MAX_LENGTH else None
    suffix = match[3] or "" if match else None
    if match is None or suffix not in _SUFFIXES:
        raise KubegpuError(
            f"{text[:_MAX_LENGTH]!r} is not a Kubernetes quantity",
            next_step="Write a number, with a suffix if needed: 4, 500m or 1Gi.",
        )
    number = Fraction(match[1])
    if match[2]:
        exponent = min(max(int(match[2]), -_MAX_EXPONENT), _MAX_EXPONENT)
        return number * Fraction(10) ** exponent
    return number * _SUFFIXES[suffix]


def parse_count(value: object) -> int:
    """Return a quantity as a count. A fraction, which no device has, is rounded up.

    :raises KubegpuError: ``value`` is not a quantity.
    """
    return -int(-parse_quantity(value) // 1)
