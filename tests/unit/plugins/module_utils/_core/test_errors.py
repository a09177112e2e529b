# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core import errors as _errors


def test_error_says_cause_evidence_and_next_step_in_this_order():
    error = _errors.KubegpuError("It broke.\n", evidence="line 3", next_step="Fix it.")
    assert str(error) == "It broke.\nSeen: line 3\nNext step: Fix it."
    assert (error.cause, error.evidence, error.next_step) == ("It broke.\n", "line 3", "Fix it.")


def test_what_is_not_known_is_not_said():
    assert str(_errors.KubegpuError("It broke.")) == "It broke."


@pytest.mark.parametrize("kind", ["InputError", "LockedError", "Refusal", "RolledBackError"])
def test_all_errors_are_of_one_tree(kind):
    assert issubclass(getattr(_errors, kind), _errors.KubegpuError)


def test_a_refusal_fits_in_one_line():
    refusal = _errors.Refusal("It cannot run.", "take another.", "line 3")
    assert refusal.line == "It cannot run. Seen: line 3 Next step: take another."
