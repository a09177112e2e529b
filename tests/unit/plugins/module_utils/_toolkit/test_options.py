# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the toolkit: what is taken, and what is refused by name."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.options import read_request
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import Request


def test_defaults():
    assert (
        read_request({}) == read_request({"version": None, "key_fingerprints": None}) == Request()
    )


def test_values_as_inventories_write_them():
    given = {
        "version": 1.2,
        "hold": "no",
        "containerd": True,
        "docker": "False",
        "key_fingerprints": "AB, CD",
        "settings": {"nvidia-container-cli.no-cgroups": True},
    }
    assert read_request(given) == Request(
        version="1.2",
        hold=False,
        containerd="true",
        docker="false",
        key_fingerprints=("AB", "CD"),
        settings={"nvidia-container-cli.no-cgroups": True},
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"docker": "maybe"}, "nvidia_container_toolkit_docker has to be one of auto, true, false"),
        ({"docker_restart": "now"}, "nvidia_container_toolkit_docker_restart.*if_idle"),
        ({"cdi": "perhaps"}, "nvidia_container_toolkit_cdi has to be true or false"),
        ({"settings": ["a"]}, "nvidia_container_toolkit_settings has to be a mapping"),
        (
            {"key_fingerprints": {"a": 1}},
            "nvidia_container_toolkit_repository.key_fingerprints.*a list",
        ),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        read_request(options)
