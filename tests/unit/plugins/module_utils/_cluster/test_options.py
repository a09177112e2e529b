# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option ``expected`` of gpu_cluster_info."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from tests.unit.fixtures.cluster_objects import GPU


@pytest.mark.parametrize("given", [{"n1": {"count": 4}}, {"n1": {"resources": {GPU: "many"}}},
                                   {"n1": {"resources": [GPU]}}])  # fmt: skip
def test_what_is_not_as_it_should_be_is_named(given):
    with pytest.raises(InputError, match=r"expected\.n1"):
        read_expected(given)
