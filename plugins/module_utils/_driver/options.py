# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the driver's filter and module, read into a request. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.checks import wrong_value
from .._core.errors import InputError
from .._core.options import read_arguments, variable_of
from .._nvidia.driver_branches import DriverData, driver_data, is_date
from .arguments import PREFIX, REQUEST_ARGUMENTS, TABLES, licence_timeout, read_request
from .plan.config_texts import gridd, options
from .plan.memory_mode import check as check_memory
from .types import Request

#: The options of the filter.
ARGUMENTS = {**REQUEST_ARGUMENTS, **TABLES}
_BRANCH = re.compile(r"(?:auto|\d{3,})\Z")
_VERSION = re.compile(r"(?:previous|\d{3,}\.\d+(?:\.\d+)?)?\Z")
# An IPv4 or IPv6 address, or a host name.
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*\Z")


def read_options(given: Mapping[str, Any]) -> tuple[Request, DriverData]:
    """Return the request and the tables. An option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    request = read_request(given)
    tables = driver_data(*read_arguments(TABLES, given, PREFIX).values())
    _check(request)
    return request, tables


def _check(request: Request) -> None:
    if not _BRANCH.match(request.branch):
        raise _wrong("branch", request.branch, "auto or a number such as 580")
    if not _VERSION.match(request.version):
        raise _wrong(
            "version",
            request.version,
            "a driver's version such as 580.126.09 (without the package's revision), or previous",
        )
    if request.today and not is_date(request.today):
        raise _wrong("today", request.today, "a date as YYYY-MM-DD")
    wrong = [one for one in request.imex_nodes if not _ADDRESS.match(one)]
    if wrong:
        raise _wrong("imex_nodes", wrong, "a list of addresses or names")
    if request.runfile is not None:
        if bool(request.runfile.get("url")) == bool(request.runfile.get("path")):
            raise _wrong("runfile", dict(request.runfile), "given with either url or path")
        version = str(request.runfile.get("version") or "")
        if version == "previous" or not _VERSION.match(version):
            raise _wrong("runfile.version", version, "a driver's version such as 580.126.09")
    if request.runfile is None and request.source == "runfile" and request.version == "previous":
        raise _wrong("runfile", None, "given: the earlier file may not be on the node any more")
    if request.manage_repository and not request.repository_name.startswith("kubegpu-"):
        raise _wrong(
            "repository_name",
            request.repository_name,
            "a name that begins with kubegpu-, by which the facts know our own file",
        )
    # Only to validate them; the texts are built where they are needed.
    options(request.module_options, debian=False)
    check_memory(request)
    gridd(request.licence)
    licence_timeout(request.licence)


def _wrong(name: str, value: Any, expectation: str) -> InputError:
    return wrong_value(variable_of(PREFIX[:-1], name), expectation, value)
