# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The failed result of a module: cause, evidence and next step besides the message."""

from __future__ import annotations

from typing import Any

from .errors import KubegpuError
from .redact import redact

#: The parts of an error in the result of a module.
PARTS = ("cause", "evidence", "next_step", "code", "names")


def failure(error: KubegpuError) -> dict[str, Any]:
    """Return the keys of the result, without secrets: a daemon's journal quotes its settings."""
    return {"msg": redact(str(error)), **parts(error)}


def parts(error: KubegpuError) -> dict[str, Any]:
    """Return an error as an item of a list of refusals, in the form of a finding's."""
    texts = {
        "cause": error.cause,
        "evidence": error.evidence,
        "next_step": error.next_step,
        **({"code": error.code} if error.code else {}),
    }
    names = {name: redact(text) for name, text in error.names.items()}
    shown: dict[str, Any] = {name: redact(text) for name, text in texts.items()}
    return {**shown, "names": names} if names else shown


def fail(module: Any, error: KubegpuError, **values: Any) -> None:
    """End the module with ``fail_json``; ``values`` are added to the result."""
    module.fail_json(**{**failure(error), **values})
