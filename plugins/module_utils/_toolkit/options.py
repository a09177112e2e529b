# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the role and the filter, as a request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.options import argument_spec, read_arguments
from .types import Request

_AUTO = {"choices": ["auto", "true", "false"]}
ARGUMENTS = argument_spec(
    Request,
    containerd=_AUTO,
    docker=_AUTO,
    docker_restart={"choices": ["never", "if_idle", "always"]},
    crio=_AUTO,
)


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request; an option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    return Request(**read_arguments(ARGUMENTS, given, "nvidia_container_toolkit_"))
