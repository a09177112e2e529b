# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of labels and of connections share."""

from __future__ import annotations

from ansible_collections.kubegpu.nodes.plugins.modules import node_gpu_label
from tests.unit.module_process import run_module


def refused(api, nodes=None, **options):
    """Return the answer of a run that has to fail, as in check mode."""
    arguments = {"nodes": nodes or {"label-a": {"labels": {"a": "b"}}}, **options}
    if not {"kubeconfig", "host"} & set(options):
        arguments["kubeconfig"] = str(api.kubeconfig)
    check = run_module(node_gpu_label.main, arguments, check=True)
    answer = run_module(node_gpu_label.main, arguments)
    assert check["failed"] and answer["failed"]
    assert check["msg"] == answer["msg"]
    return answer
