# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probe CRI-O: its CRI service and the handler.

CRI-O starts no container without a pod: the layer ``pod`` tests that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.finding import Finding
from .._known_faults.explain import explain_one
from .._runtime.cri import CRIO_SOCKET, read_status
from .containers import RUNC_SHIM, ContainerTests
from .types import RuntimeState


def probe_crio(tests: ContainerTests, facts: Mapping[str, Any]) -> RuntimeState:
    """Return the state of CRI-O.

    :param facts: the fact ``runtimes.crio``.
    """
    handler, known = tests.options.handler, facts["runtimes"] or {}
    fault = tests.not_running("crio", facts)
    if fault:
        return RuntimeState("crio", handler, fault=fault)
    answer = read_status(tests.dependencies.run, CRIO_SOCKET, ctr=None)
    handlers, source = tuple(sorted(known)), "the files in /etc/crio"
    if answer.handlers is not None:
        handlers, source = tuple(sorted(answer.handlers)), "crictl info"
    if not answer.ready:
        otherwise = Finding(
            "cri_not_ready",
            "CRI-O runs, but does not answer: Kubernetes cannot use it.",
            answer.message,
            "Check: journalctl --unit crio.",
        )
        fault = explain_one(answer.message, otherwise)
    elif answer.handlers is None and facts["restart_required"]:
        fault = Finding(
            "restart_required",
            f"The files of CRI-O were changed after the running one started: their settings of "
            f"{handler} are not in effect.",
            f"{handler} is {'in' if handler in known else 'not in'} the files",
            f"systemctl restart {facts['unit']} (running containers continue), or run "
            "kubegpu.nodes.site, which does it.",
        )
    elif handler in handlers:
        fault = tests.wrong_program("crio", {"type": RUNC_SHIM, **known.get(handler, {})})
    return RuntimeState(
        "crio",
        handler,
        handler in handlers,
        handlers,
        facts["default_runtime"],
        source,
        fault=fault,
    )
