# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests that are refused."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "runc"},
        {"name": "a.b]"},
        {"name": "x" * 64},
        {"runtime_path": "relative"},
        {"runtime_path": "/ends/in/"},
        {"runtime_path": "/new\nline"},
        {"config_path": ""},
        {"drop_in_path": ""},
        {"drop_in_path": Request.config_path},
        {"options": {"binaryname": "/x"}},
        {"runtime_type": 'x"\n'},
    ],
)
def test_requests_that_are_refused(options):
    with pytest.raises(InputError):
        Request(**options).check()
