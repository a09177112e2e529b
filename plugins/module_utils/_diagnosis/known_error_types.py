# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One text by which a failure is known: what the tables of failure texts are made of."""

from __future__ import annotations

from dataclasses import dataclass

READ = "2026-11-21"
_FACTS = "the project's own collection of failure texts"


@dataclass(frozen=True)
class KnownText:
    """One text.

    :param pattern: a regular expression, whatever the case of letters. Named groups may stand in
        braces in ``cause`` and ``next_step``. What it is searched in may come from a hostile pod:
        no two repeats that can take the same characters may stand side by side without a bound.
    :param where: what says it.
    :param example: the text as it was seen.
    :param covers: codes that are not worth saying beside this one.
    :param driver: whether the diagnosis of the driver can say more, from the rest of the text.
    :param last_resort: whether it says little, and is for texts in which nothing else is known.
    :param outdated: of words that newer programs no longer say, which releases do: pairs of words
        in lower case and releases. It is told where these words were found.
    """

    code: str
    pattern: str
    where: str
    cause: str
    next_step: str
    example: str
    source: str = _FACTS
    date: str = READ
    covers: tuple[str, ...] = ()
    driver: bool = False
    last_resort: bool = False
    outdated: tuple[tuple[str, str], ...] = ()
