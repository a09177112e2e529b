# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of the module and the filter of MIG. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.checks import of_variable
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._nvidia.compatibility import parse_driver
from .config import read_config
from .types import Request

#: The prefix of the role's variables.
PREFIX = "nvidia_mig_"
#: The options of the filter.
ARGUMENTS = argument_spec(Request)
#: Those of the module, which reads the driver by itself.
MODULE_ARGUMENTS = {name: rule for name, rule in ARGUMENTS.items() if name != "driver_version"}


def read_options(given: Mapping[str, Any]) -> Request:
    """Return the request. An option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    request = Request(**read_arguments(ARGUMENTS, given, PREFIX))
    if request.config:
        read_config(request.config, request.configs)
    if request.driver_version:
        try:
            parse_driver(request.driver_version)
        except InputError as error:
            raise of_variable(f"{PREFIX}driver_version", error) from error
    return request
