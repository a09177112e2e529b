# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pasted log is explained by the playbook diagnose, without any host or with the facts of one."""

from __future__ import annotations

import pytest

from tests.integration.controller.standin_nodes import Nodes

LOST = "NVRM: Xid (PCI:0000:05:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    return Nodes(tmp_path_factory.mktemp("nodes"))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "log.txt"
    path.write_text(LOST, encoding="utf-8")
    return str(path)


def explained(nodes, log, *arguments, **variables):
    return nodes.play(
        "diagnose", {"gpu1": {}, "gpu2": {}}, *arguments, gpu_diagnose_text_file=log, **variables
    )


def test_no_host_is_read_for_a_text(nodes, log):
    run = explained(nodes, log)

    assert (run.status, run.calls) == (0, [])
    assert "What log.txt says about GPUs" in run.screen
    assert "error     gpu_lost " in run.screen


def test_the_host_of_a_text_is_read_and_no_other(nodes, log):
    for arguments, variables in (
        (("--limit", "gpu2"), {}),
        ((), {"gpu_diagnose_text_host": "gpu2"}),
    ):
        run = explained(nodes, log, *arguments, **variables)
        assert run.status == 0, run.screen
        assert run.hosts("gpu_node_facts") == ["gpu2"]
        assert "gpu_lost" in run.screen


def test_a_text_that_cannot_be_explained_says_why(nodes, log, tmp_path):
    nothing = tmp_path / "nothing.txt"
    nothing.write_text("all is well\n", encoding="utf-8")
    run = explained(nodes, str(nothing))
    assert run.status == 0
    assert (
        "nothing.txt shows no fault that this collection knows. If something fails nevertheless: "
        in run.screen
    )
    assert "Severity" not in run.screen
    assert "give the whole output of the program that failed" in run.screen
    assert "journalctl" not in run.screen and "kubectl" not in run.screen

    run = explained(nodes, log, gpu_diagnose_text_host="gpu9")
    assert run.status != 0 and run.calls == []
    assert "gpu_diagnose_text_host is gpu9, and the inventory has no such host" in run.screen
