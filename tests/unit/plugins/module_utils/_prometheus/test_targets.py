# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
import yaml

from plugins.module_utils._core.errors import InputError, KubegpuError
from plugins.module_utils._prometheus.options import read_options
from plugins.module_utils._prometheus.targets import (
    expected_text,
    merge,
    read_targets,
    targets_text,
)

ONE = {"host": "gpu1", "targets": ["10.0.0.1:9400"], "gpus": 4, "job": "kubegpu-dcgm"}
TWO = {"host": "gpu2", "targets": ["[fd00::2]:9100"], "scheme": "https"}


def test_hosts_of_other_runs_stay():
    entries = merge((), [TWO, ONE])
    text = targets_text(entries)
    assert yaml.safe_load(text) == entries
    assert entries == [
        {
            "targets": ["10.0.0.1:9400"],
            "labels": {"__kubegpu_host": "gpu1", "__kubegpu_gpus": "4", "job": "kubegpu-dcgm"},
        },
        {
            "targets": ["[fd00::2]:9100"],
            "labels": {"__kubegpu_host": "gpu2", "__kubegpu_gpus": "0", "__scheme__": "https"},
        },
    ]
    assert merge(read_targets(text, "f"), [{"host": "gpu1", "targets": []}]) == entries[1:]
    assert merge(read_targets(text, "f"), [{**ONE, "gpus": 3}])[1] == entries[1]


def test_expected_gpus_are_recorded_where_no_exporter_tells_them():
    groups = yaml.safe_load(expected_text(merge((), [ONE, TWO])))["groups"]
    assert groups == [
        {
            "name": "kubegpu-expected",
            "rules": [
                {
                    "record": "kubegpu_gpus_expected",
                    "expr": "vector(4)",
                    "labels": {"instance": "10.0.0.1:9400"},
                }
            ],
        }
    ]


OURS = '"labels": {"__kubegpu_host": "a", "__kubegpu_gpus": "1"}'


@pytest.mark.parametrize("text", [
    "- targets: [a]\n", '[{"targets": ["a:1"]}]', "{}", "null", '"',
    # Ours, and broken by an editor.
    '[{"targets": ["a:1"], "labels": "__kubegpu_host"}]',
    '[{"targets": ["a:1"], "labels": ["__kubegpu_host"]}]',
    f'[{{{OURS}}}]', f'[{{"targets": [1], {OURS}}}]',
    f'[{{"targets": ["a:1"], {OURS.replace(chr(34) + "1" + chr(34), chr(34) + "x" + chr(34))}}}]',
])  # fmt: skip
def test_a_file_of_somebody_else_is_refused(text):
    with pytest.raises(KubegpuError, match="was not written by this collection"):
        read_targets(text, "/etc/prometheus/file_sd/kubegpu.yml")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"hosts": [{"host": "a", "targets": ["b"]}]}, "'b' of a"),
        ({"hosts": [{"host": "a", "targets": ["b:1\n- c"]}]}, "of a"),
        ({"rules_file": "kubegpu.yml"}, "rules_file"),
        ({"targets_file": "/etc/a b.yml"}, "targets_file"),
        ({"config": "/etc/prometheus/prometheus"}, "config"),
        ({"job": "a: b"}, "job"),
        ({"unit": "prometheus --now"}, "unit"),
        ({"hosts": [{"targets": []}]}, "host"),
    ],
)
def test_wrong_values_are_refused(options, word):
    with pytest.raises(InputError, match=word):
        read_options(options)
