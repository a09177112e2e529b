# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A text without a known message: the rest that is asked for is of the same program."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import explain
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.kinds import rest_of


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Nov 28 10:00:00 vm1 nvidia-gridd[812]: vGPU Software package (0)", "nvidia-gridd"),
        ("# dnf install x\nError: something new", "package manager"),
        ("E: something new of apt", "package manager"),
        ("[   12.345678] NVRM: something new", "journalctl -k -b"),
        ("docker: Error response from daemon: something new", "docker logs"),
        ("Warning  Unheard  3s  kubelet  something new", "kubectl describe pod"),
        ("make[2]: *** something new", "make.log"),
        ("# nvidia-smi\nsomething new", "nvidia-smi -q"),
        ("all is well", "the program that failed"),
    ],
)
def test_the_rest_is_of_the_same_program(text, rest):
    assert explain(text) == []
    assert rest in rest_of(text)
