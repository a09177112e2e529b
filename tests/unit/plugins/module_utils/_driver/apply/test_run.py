# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module puts back; its flow is tested with the action, and live."""

from __future__ import annotations

import types

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.run import (
    restored_streams,
)
from tests.unit.fixtures.driver_cases import facts

BEFORE = {"branch": "580", "source": "nvidia", "kernel_module": "open"}


@pytest.mark.parametrize(
    ("before", "streams"),
    [
        ({**BEFORE, "streams": {"nvidia-driver": "open-dkms"}}, {"nvidia-driver": "open-dkms"}),
        ({**BEFORE, "streams": {}}, {}),
        # A record that does not say.
        (BEFORE, {"nvidia-driver": "580-open"}),
        (None, {}),
    ],
)
def test_the_stream_that_stood_there_is_put_back(before, streams):
    work = types.SimpleNamespace(params={}, facts=facts("T4", "rocky9", "-"))
    assert restored_streams(work, before) == streams
