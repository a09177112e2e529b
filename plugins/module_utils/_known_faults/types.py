# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The type of the rows in the tables of known messages."""

from __future__ import annotations

from dataclasses import dataclass

from .._core.finding import ERROR

READ = "2026-11-21"
#: The part of a text that package managers report as failed.
PACKAGE_ERRORS = "package_errors"
_FACTS = "the project's own collection of failure texts"


@dataclass(frozen=True)
class Rule:
    """What a message means.

    :param pattern: a case-insensitive regular expression. ``cause``, ``next_step`` and ``fix`` may
        refer to its named groups in braces. It must not have adjacent unbounded repeats of the same
        characters, because the searched text may come from a hostile pod.
    :param where: the program that prints the message.
    :param example: a real message.
    :param severity: of the finding.
    :param when: predicates of :mod:`.predicates` that the facts have to meet; ``not`` before a name
        is its opposite. A rule of which one is false does not apply.
    :param family: rules of one family explain the same message by different causes: if facts decide
        for one, it counts alone; if they decide for none, the finding is possible only and names
        the others. Empty: a rule without alternatives.
    :param fix: a command or variables.
    :param confidence: ``possible`` where a message has several causes and no fact decides; the
        cause names them.
    :param context: a pattern that the text must have somewhere, too; for general messages.
    :param within: the part of a text that is searched; empty: all of it.
    :param over: a pattern that shows, after a match, that it is over; ``ADDRESS`` in it is the
        address of the match, or any.
    :param covers: codes that are left out if this one is found.
    :param quotes_covered: whether the lines of those are evidence of this one.
    :param driver: whether the driver's diagnosis can find the cause in the rest of the text.
    :param last_resort: whether it applies only if nothing else is found.
    :param outdated: messages that only old releases print: pairs of a lower-case part of the
        message and the releases, which the finding names.
    """

    code: str
    pattern: str
    where: str
    cause: str
    next_step: str
    example: str
    source: str = _FACTS
    date: str = READ
    severity: str = ERROR
    when: tuple[str, ...] = ()
    family: str = ""
    fix: str = ""
    confidence: str = ""
    context: str = ""
    within: str = ""
    over: str = ""
    covers: tuple[str, ...] = ()
    quotes_covered: bool = False
    driver: bool = False
    last_resort: bool = False
    outdated: tuple[tuple[str, str], ...] = ()
