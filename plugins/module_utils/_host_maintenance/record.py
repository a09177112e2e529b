# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a maintenance on the host. Pure."""

from __future__ import annotations

from typing import Any

from .._core.errors import InputError
from .types import Record, Stopped

#: Key in the node's record.
KEY = "maintenance"
_TEXTS = ("run", "reason", "since", "slurm_node")


def read_record(data: Any) -> Record | None:
    """Return the record; None without one.

    :raises InputError: it is not as this module writes it.
    """
    if data is None:
        return None
    try:
        if not all(isinstance(data[name], str) for name in _TEXTS) or not data["run"]:
            raise ValueError(f"one of {', '.join(_TEXTS)}")
        if not isinstance(data["was_drained"], bool):
            raise ValueError("was_drained")
        stopped = tuple(
            Stopped(str(one["id"]), str(one["name"]), str(one["policy"]), int(one["retries"]))
            for one in data["containers"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            "The record of the maintenance of this host cannot be read, so that nobody knows which "
            "containers were stopped.",
            evidence=f"{type(error).__name__}: {error}",
            next_step=f"Correct the value {KEY} in state.json, or remove it and start the "
            "containers manually.",
            code="maintenance_unreadable",
        ) from error
    return Record(
        **{name: data[name] for name in _TEXTS},
        was_drained=data["was_drained"],
        containers=stopped,
    )
