# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of ``gpu_test_pods``, read into a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.options import check_at_least, check_expression
from .._kube.image import check_reference
from .types import Request


def read_options(params: Mapping[str, Any]) -> Request:
    """Return the request.

    :raises InputError: an option has a wrong value.
    """
    check_expression("expect", params["expect"])
    for name in ("count", "timeout"):
        check_at_least(name, params[name])
    check_reference("image", params["image"])
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
