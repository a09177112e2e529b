# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The driver of a node: from facts and wishes to a plan with a reason for each step. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._driver_data import DriverData, driver_data
from ._driver_types import DriverPlan, DriverWish, Step

__all__ = ["DriverData", "DriverPlan", "DriverWish", "Step", "plan_driver", "read_options"]


def read_options(options: Mapping[str, Any]) -> tuple[DriverWish, DriverData]:
    """Return wish and data from the options of the filter and of the module.

    :raises InputError: an option is not as it has to be; it is named.
    """
    data = driver_data(options.get("branches"), options.get("gpus"), options.get("repositories"))
    wishes = {name: options[name] for name in DriverWish.__dataclass_fields__ if name in options}
    return DriverWish(**wishes), data


def plan_driver(node: Mapping[str, Any], wish: DriverWish, data: DriverData) -> DriverPlan:
    """Return what has to be done so that the node's driver is as wished.

    :param node: the facts ``gpu_node``.
    :param wish: what is asked for.
    :param data: branches, products and repositories.
    """
    raise NotImplementedError
