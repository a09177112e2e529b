# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Batches of nodes: how large they are, how a node failed, and when the others have to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

ALL = "100%"
# Tasks that fail where nothing was done: the value, or the plan, is refused.
_REFUSING = ("fail", "validate_argument_spec")
_PERCENTAGE = re.compile(r"\d{1,3}%\Z", re.ASCII)


def serial_wrong(value: Any) -> str:
    """Return what a value of ``kubegpu_serial`` has to be, or nothing where it is."""
    items = value if isinstance(value, (list, tuple)) else [value]
    for item in items or [None]:
        text = str(item).strip()
        if isinstance(item, bool) or not (
            (text.isascii() and text.isdigit() and int(text) > 0)
            or (_PERCENTAGE.match(text) and 0 < int(text[:-1]) <= 100)
        ):
            return "a number of nodes from 1 on, a percentage such as '25%', or a list of these"
    return ""


def percentage_wrong(value: Any) -> str:
    """Return what a value of ``kubegpu_max_fail_percentage`` has to be, or nothing where it is."""
    try:
        good = not isinstance(value, bool) and 0 <= float(str(value)) <= 100
    except ValueError:
        good = False
    return "" if good else "a number from 0 to 100"


def serial(values: Sequence[Any], count: int) -> Any:
    """Return what Ansible's ``serial`` is to be for hosts that say these values.

    A play has one size of its batches. Where hosts say different ones, the one whose largest batch
    is the smallest holds for all: nobody's nodes go more at once than was allowed for them.

    :param values: what hosts say; those that say nothing are not among it.
    :param count: how many hosts the play has, of which percentages are.
    """
    return min(values, key=lambda value: max(batch_sizes(value, count), default=0), default=ALL)


def batch_sizes(value: Any, count: int) -> list[int]:
    """Return the sizes of the batches that Ansible makes of so many hosts."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    sizes: list[int] = []
    left = count
    while left > 0:
        text = str(items[min(len(sizes), len(items) - 1)]).strip()
        wished = int(int(text[:-1]) / 100 * count) or 1 if text.endswith("%") else int(text)
        sizes.append(min(wished, left) if wished > 0 else left)
        left -= sizes[-1]
    return sizes


def failure(
    task: Mapping[str, Any], result: Mapping[str, Any], changed: bool = False
) -> dict[str, Any]:
    """Return what is kept of a failed task.

    :param task: Ansible's ``ansible_failed_task``.
    :param result: Ansible's ``ansible_failed_result``.
    :param changed: whether something on the node was changed before it.
    :returns: ``task`` (its name), ``words`` (what it said) and ``refused`` (whether it stopped
        before anything was done, since the plan or a value is refused).
    """
    action = str(task.get("action") or "").rpartition(".")[2]
    return {
        "task": str(task.get("name") or action),
        "words": str(result.get("msg") or "").strip() or "it said nothing",
        "refused": action in _REFUSING and not changed,
    }


def failure_words(kept: Mapping[str, Any]) -> str:
    """Return a kept failure as one line: its cause, and where it was."""
    cause = (str(kept["words"]).splitlines() or [""])[0]
    if kept["refused"]:
        return f"the run stopped at this node, which is refused: {cause}"
    return f"the run stopped at this node, in the task {kept['task']!r}: {cause}"


def stop_words(failures: Mapping[str, Mapping[str, Any] | None], limit: float) -> str:
    """Return what is said of nodes whose batch is not begun, or nothing where it may be.

    :param failures: of each host of the batch the kept failure, None where there is none.
    :param limit: the percentage of the batch's hosts that may fail.
    """
    failed = [host for host, kept in failures.items() if kept and not kept["refused"]]
    if not failed or len(failed) * 100 / len(failures) <= limit:
        return ""
    share = f"{limit:g} %" if limit else "none"
    return (
        f"not begun: {len(failed)} of {len(failures)} nodes of a batch failed ({_some(failed)}), "
        f"and kubegpu_max_fail_percentage allows {share}. Next step: mend what failed and run "
        "again; what is done already is left as it is"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
