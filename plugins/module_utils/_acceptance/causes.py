# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Say why a test ended without a result, where its words are known. Pure."""

from __future__ import annotations

from .._core.finding import ERROR, Finding
from .._known_faults.documents.read import of_documents
from .._known_faults.explain import explain
from .._known_faults.predicates import Facts
from .._known_faults.rules.tests_of_gpus import LAST_OF_TESTS

# They only say that a test has no result.
_NO_CAUSES = frozenset(row.code for row in LAST_OF_TESTS)


def with_causes(ended: Finding, *texts: str, facts: Facts | None = None) -> list[Finding]:
    """Return that a test has no result, and what is known of its words.

    :param texts: what it printed.
    :param facts: what of the node's facts decides between causes.
    """
    text = "\n".join(texts)
    said = {one.code for one in of_documents(text)} | _NO_CAUSES
    known = explain(text, facts)
    return [ended, *(one for one in known if one.severity == ERROR and one.code not in said)]
