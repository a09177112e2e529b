# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from plugins.module_utils._core.errors import InputError
from plugins.module_utils._mig.options import read_options
from plugins.module_utils._mig.types import Request


def test_the_request_is_read_from_options():
    options = {"config": None, "configs": None, "services": ["dcgm"], "reset": "no"}
    assert read_options(options) == Request(services=("dcgm",), reset=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"config": "half"}, "nvidia_mig_config: MIG configuration 'half' is not known"),
        ({"config": "a", "configs": []}, "nvidia_mig_configs has to be a mapping"),
        ({"driver_version": "new"}, "not the version of an NVIDIA driver"),
        ({"at_boot": "maybe"}, "nvidia_mig_at_boot has to be true or false"),
    ],
)
def test_a_wrong_value_names_the_variable(options, words):
    with pytest.raises(InputError, match=words):
        read_options(options)
