# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A signal interrupts once; then the clean-up is left alone."""

from __future__ import annotations

import signal

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.signals import (
    SIGNALS,
    Interrupted,
    ignore_signals,
    raise_on_signals,
)


@pytest.fixture(autouse=True)
def handlers():
    """Restore the handlers of the process that runs the tests."""
    kept = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_interrupts_and_those_after_it_do_not(number):
    raise_on_signals()
    with pytest.raises(Interrupted, match=number.name):
        signal.raise_signal(number)
    for other in SIGNALS:
        signal.raise_signal(other)


def test_no_handler_of_ordinary_errors_swallows_it():
    assert not issubclass(Interrupted, Exception)


def test_nothing_interrupts_a_clean_up():
    raise_on_signals()
    ignore_signals()
    for number in SIGNALS:
        signal.raise_signal(number)
