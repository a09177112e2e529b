# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of ``gpu_test_pods``, read into a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .._kube.image import check_reference
from .types import Request


def read_options(params: Mapping[str, Any]) -> Request:
    """Return the request.

    :raises InputError: an option has a wrong value.
    """
    try:
        re.compile(params["expect"])
    except re.error as error:
        raise InputError(
            f"The option expect is no regular expression: {params['expect']!r}",
            evidence=str(error),
            next_step="Use Python's syntax (re), with a backslash before special characters.",
        ) from error
    for name in ("count", "timeout"):
        if params[name] < 1:
            raise InputError(
                f"The option {name} is {params[name]}", next_step="Give a number from 1."
            )
    check_reference("The option image", params["image"])
    return Request(
        image=params["image"],
        expect=params["expect"],
        command=tuple(params["command"]),
        args=tuple(params["args"]),
        env=params["env"],
        namespace=params["namespace"],
        runtime_class=params["runtime_class"],
        tolerations=tuple(params["tolerations"]),
        pull_policy=params["pull_policy"],
        pull_secrets=tuple(params["pull_secrets"]),
        priority_class=params["priority_class"],
        run_as_user=params["run_as_user"],
        timeout=params["timeout"],
        busy_fails=params["busy"] == "fail",
    )
