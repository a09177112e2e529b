# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an Xid or SXid means, how bad it is, and what to do. Pure.

The tables are in ``xids_data.py``. A user's entries are merged over them (:func:`xid_table`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from .._core.errors import InputError
from .rules import xids_data as data
from .rules.xids_data import ERROR, INFO, WARNING

SEVERITIES = (ERROR, WARNING, INFO)

_NUMBER = re.compile(r"[1-9]\d{0,2}\Z")
_KEYS = ("action", "meaning", "severity")
_EXAMPLE = "Write {63: error} or {63: {severity: error, action: reset, meaning: 'a bad row'}}."
# Of NVLink errors the driver writes Nonfatal, of NVSwitches Non-fatal.
_NON_FATAL = re.compile(r"\bnon-?fatal\b", re.IGNORECASE)
_FATAL = re.compile(r"\bfatal\b", re.IGNORECASE)
# NVLink 5: errors for which the catalogue goes by the Xid 154 after them (XID_154_EVAL).
_BY_XID_154 = re.compile(
    r"\bRLW_REMAP\b|\bRLW_SRC_TRACK\b[^(]{0,60}\(0x[0-9a-f]{8} 0x0000000[48c]", re.IGNORECASE
)
_LINK_EVENT = re.compile(r"\bNETIR_LINK_EVT\b[^(]{0,60}\(0x(?P<info>[0-9a-f]{8})\b", re.IGNORECASE)
# Subcodes of it that the catalogue ignores although the line calls them fatal.
_NO_LINK_EVENTS = (38, 40)
_NEW_ACTION = re.compile(r"\bto 0x[0-9a-fA-F]{1,8} \((?P<action>[^)\n]{1,60})\)")
_PREVIOUS = re.compile(r"\bcaused by previous Xid (?P<number>\d{1,4})\b")
_NO_ACTION = re.compile(r"\bto 0x[0-9a-f]{1,8} \(None\)", re.IGNORECASE)


@dataclass(frozen=True)
class Xid:
    """What one number means.

    :param severity: ``error`` (the GPU or the link needs help), ``warning`` or ``info``.
    :param action: a key of ``ACTIONS``.
    """

    number: int
    meaning: str
    action: str
    severity: str

    @property
    def next_step(self) -> str:
        return data.ACTIONS[self.action][2]


def _built_in() -> Mapping[int, Xid]:
    rows = {
        number: Xid(number, meaning, action, severity or data.ACTIONS[action][1])
        for numbers, meaning, action, severity in data.XIDS
        for number in numbers
    }
    rows.update(
        {number: Xid(number, data.UNUSED_MEANING, data.SUPPORT, WARNING) for number in data.UNUSED}
    )
    return MappingProxyType(dict(sorted(rows.items())))


XIDS: Mapping[int, Xid] = _built_in()


def xid_table(rows: Mapping[Any, Any] | None = None, name: str = "xids") -> Mapping[int, Xid]:
    """Return the table with the user's entries merged over it.

    :param rows: a severity by number, or a mapping with ``severity``, ``action`` and ``meaning``.
    :param name: the option or variable, for the message.
    :raises InputError: an entry is not valid.
    """
    if not rows:
        return XIDS
    if not isinstance(rows, Mapping):
        raise InputError(f"{name}: {rows!r} is not a mapping.", next_step=_EXAMPLE)
    table = dict(XIDS)
    for key, value in rows.items():
        if isinstance(key, bool) or not _NUMBER.match(str(key)):
            raise InputError(f"{name}: {key!r} is not the number of an Xid.", next_step=_EXAMPLE)
        number = int(key)
        table[number] = _merged(look_up(number), value, f"{name}: {number}")
    return MappingProxyType(dict(sorted(table.items())))


def _merged(xid: Xid, value: Any, where: str) -> Xid:
    row = {"severity": value} if isinstance(value, str) else value
    if not isinstance(row, Mapping) or not row or set(row) - set(_KEYS):
        raise InputError(
            f"{where} is {value!r}, neither a severity nor a mapping of {', '.join(_KEYS)}.",
            next_step=_EXAMPLE,
        )
    action = row.get("action", xid.action)
    if not isinstance(action, str) or action not in data.ACTIONS:
        raise InputError(
            f"{where}: unknown action {action!r}.",
            next_step=f"Name one of {', '.join(data.ACTIONS)}.",
        )
    otherwise = data.ACTIONS[action][1] if "action" in row else xid.severity
    severity = row.get("severity", otherwise)
    if severity not in SEVERITIES:
        raise InputError(
            f"{where}: unknown severity {severity!r}.",
            next_step=f"Name one of {', '.join(SEVERITIES)}.",
        )
    return Xid(xid.number, str(row.get("meaning", xid.meaning)), action, severity)


def look_up(number: int, table: Mapping[int, Xid] = XIDS) -> Xid:
    """Return what a number means; one that the table does not have is a warning."""
    return table.get(number) or Xid(number, data.UNKNOWN_MEANING, data.SUPPORT, WARNING)


def in_line(number: int, text: str, table: Mapping[int, Xid] = XIDS) -> Xid:
    """Return what an Xid means together with its line in the kernel's log.

    The line says of the NVLink errors 144 to 150 whether they are fatal, and Xid 154 also
    announces that nothing has to be done any more. An entry of the user is not overruled.
    """
    xid = look_up(number, table)
    if xid != XIDS.get(number):
        return xid
    if xid.action == data.NVLINK5:
        if _NON_FATAL.search(text):
            severity = WARNING if _BY_XID_154.search(text) else INFO
            return replace(
                xid, action=data.LATER if severity == WARNING else data.IGNORE, severity=severity
            )
        if _link_event_is_none(text):
            return replace(xid, action=data.IGNORE, severity=INFO)
        if _FATAL.search(text):
            return replace(xid, action=data.RESET, severity=ERROR)
    if xid.action == data.RECOVERY and needs_nothing(text):
        return replace(xid, action=data.IGNORE, severity=INFO)
    return xid


def _link_event_is_none(text: str) -> bool:
    event = _LINK_EVENT.search(text)
    return event is not None and (int(event["info"], 16) >> 20) & 0x3F in _NO_LINK_EVENTS


def needs_nothing(text: str) -> bool:
    """Return whether a line of Xid 154 says that nothing has to be done any more."""
    return _NO_ACTION.search(text) is not None


def numbers_of(severity: str, table: Mapping[int, Xid] = XIDS) -> tuple[int, ...]:
    """Return the numbers of one severity, sorted."""
    return tuple(xid.number for xid in table.values() if xid.severity == severity)


def sxid_next_step(severity: str) -> str:
    """Return what to do after an error of an NVSwitch."""
    return data.SXID_STEPS[severity]


def sxid_severity(number: int, text: str = "") -> str:
    """Return how bad an NVSwitch's error is: by its line in the log, else by its number."""
    if number in (*data.SXIDS_ALWAYS_FATAL, *data.SXIDS_STALL):
        return ERROR
    if number in data.SXIDS_NOTABLE:
        return WARNING
    if _NON_FATAL.search(text):
        return INFO
    if number in data.SXIDS_FATAL or _FATAL.search(text):
        return ERROR
    return INFO if number in data.SXIDS_NOT_FATAL else WARNING


def sxid_stops_board(number: int) -> bool:
    """Return whether an SXid is fatal to all GPUs of the board, not only to one link."""
    return number in data.SXIDS_ALWAYS_FATAL


def recovery_action(line: str) -> str:
    """Return what a line of Xid 154 says that the GPU needs, in lower case; empty if unknown."""
    match = _NEW_ACTION.search(line)
    return match["action"].lower() if match else ""


def previous_xid(line: str) -> int | None:
    """Return the Xid that a line names as its cause."""
    match = _PREVIOUS.search(line)
    return int(match["number"]) if match else None
