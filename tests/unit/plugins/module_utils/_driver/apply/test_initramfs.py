# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.initramfs import (
    rebuild_initramfs,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.driver_nodes import OK, StandinRunner


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("update-initramfs", "update-initramfs -u -k all"),
        ("dracut", "dracut --force --regenerate-all"),
        ("mkinitrd", "mkinitrd"),
        ("mkinitcpio", "mkinitcpio -P"),
    ],
)
def test_the_tool_that_is_there_rebuilds_the_initramfs(tree, program, said):
    run = StandinRunner(**{program.replace("-", "_"): OK})
    assert rebuild_initramfs(run, tree(**{f"usr__sbin__{program}": ""})) == ""
    assert run.calls == [said]


def test_an_initramfs_that_fails_is_an_error_and_no_tool_is_a_reason(tree):
    run = StandinRunner(dracut=Result(1, "", "No space left on device"))
    with pytest.raises(KubegpuError, match="No space left"):
        rebuild_initramfs(run, tree(usr__bin__dracut=""))
    assert "no program" in rebuild_initramfs(run, NodeReader("/nowhere"))
