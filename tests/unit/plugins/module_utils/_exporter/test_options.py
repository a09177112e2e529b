# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from plugins.module_utils._core.errors import InputError
from plugins.module_utils._exporter.options import read_options
from plugins.module_utils._exporter.types import Request


def test_defaults():
    request = read_options({"version": None})
    assert request == Request()
    assert (request.dcgm, request.exporter, request.port) == ("4.6.1", "4.8.4", 9400)


@pytest.mark.parametrize("listen", ["127.0.0.1:9400", "[::1]:9400", "gpu1.example.com:1"])
def test_addresses_to_listen_on(listen):
    assert read_options({"listen": listen}).listen == listen


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("method", "dcgm"),
        ("listen", "9400"),
        ("listen", ":99999"),
        ("listen", ":9400 --debug"),
        ("listen", ":9400\nExecStart=/bin/sh"),
        ("version", "4.6.1"),
        ("version", "latest"),
        ("web_config", "web.yml"),
        ("web_config", "/etc/a b"),
        ("web_config", "/etc/../x"),
        ("job_mapping_dir", "/run/$(id)"),
        ("textfile_directory", "/var/%i"),
        ("expected_gpus", ["3b:00.0"]),
        ("expected_gpus", ["0000:3B:00.0"]),
        ("image", "a b"),
        ("image", ""),
        ("image", "a;b"),
        ("digest", "sha256:12"),
        ("counters", "DCGM_FI_DEV_GPU_TEMP"),
        ("counters", "a, gauge, b"),
        ("counters", "DCGM_FI_DEV_GPU_TEMP, gauge, a, b"),
        ("counters", 'DCGM_FI_DEV_GPU_TEMP, gauge, "a'),
        ("counters", "DCGM_FI_DEV_GPU_TEMP, gauge, "),
        ("counters", "DCGM_FI_DEV_GPU_TEMP, summary, a"),
        ("interval", 0),
        ("interval", 121),
        ("timeout", 0),
        ("profiling", "perhaps"),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_the_variable(option, value):
    with pytest.raises(InputError, match=f"gpu_monitoring_{option}"):
        read_options({option: value})
