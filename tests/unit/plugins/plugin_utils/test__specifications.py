# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles' specifications, read where the collection is installed."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleError

from ansible_collections.kubegpu.nodes.plugins.plugin_utils import _specifications


def test_options_of_roles():
    found = _specifications.role_options(["nvidia_driver", "gpu_verify"])
    assert set(found) == {"nvidia_driver", "gpu_verify"}
    assert found["nvidia_driver"]["nvidia_driver_source"]["choices"][0] == "auto"


def test_a_file_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(_specifications, "_ROLES", tmp_path)
    with pytest.raises(AnsibleError, match=r"nvidia_driver/meta/argument_specs.yml cannot be read"):
        _specifications.role_options(["nvidia_driver"])


@pytest.mark.parametrize(
    ("option", "value", "good"),
    [
        ({"type": "bool"}, "no", True),
        ({"type": "bool"}, "perhaps", False),
        ({"type": "int"}, "12", True),
        ({"type": "int", "description": "x", "default": 1}, "x", False),
        ({"type": "str", "choices": ["auto", "true", "false"]}, True, True),
        ({"type": "str", "choices": ["a"]}, "b", False),
        ({"type": "list", "elements": "str"}, "a,b", True),
        ({"type": "list", "elements": "dict"}, ["a"], False),
        ({"type": "dict"}, ["a"], False),
        ({"type": "raw"}, object(), True),
    ],
)
def test_a_value_fits_as_ansible_sees_it(option, value, good):
    assert _specifications.fits("x", option, value) is good
