# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Driver branches, generations, products, repositories and package names. Data, not code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DriverData:
    """The tables that the decision uses, with the user's own rows merged over them."""

    branches: Mapping[str, Any] = field(default_factory=dict)
    gpus: Mapping[str, Any] = field(default_factory=dict)
    repositories: Mapping[str, Any] = field(default_factory=dict)


def driver_data(
    branches: Mapping[str, Any] | None = None,
    gpus: Mapping[str, Any] | None = None,
    repositories: Mapping[str, Any] | None = None,
) -> DriverData:
    """Return the built-in data with the user's rows merged over it.

    :raises InputError: a row is not as it has to be.
    """
    return DriverData(branches or {}, gpus or {}, repositories or {})
