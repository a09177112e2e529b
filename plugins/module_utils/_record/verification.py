# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mark in a node's record that the node has to be verified.

It is set before a node is changed and when a verification failed, and dropped when one passed: a
run that was interrupted, or that failed, is followed by one that verifies the node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .store import StateStore

_KEY = "verification"
_DUE = "due"


def verification_due(record: Mapping[str, Any] | None) -> bool | None:
    """Return whether the node has to be verified.

    :param record: the node's record; None if it cannot be read, and None is returned.
    """
    return None if record is None else (record.get("values") or {}).get(_KEY) == _DUE


def mark_verification(store: StateStore, *, due: bool, dry_run: bool) -> dict[str, Any]:
    """Set or drop the mark; return what a module returns."""
    before, after = store.get(_KEY), _DUE if due else None
    if before != after and not dry_run:
        with store.transaction():
            if after is None:
                store.drop(_KEY)
            else:
                store.put(_KEY, after)
    return {
        "changed": before != after,
        "diff": {"before": {_KEY: before}, "after": {_KEY: after}},
    }
