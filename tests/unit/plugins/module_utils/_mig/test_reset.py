# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Only the GPUs whose mode changes are reset: programs on the others go on."""

from __future__ import annotations

from plugins.module_utils._mig.apply import absent, present
from plugins.module_utils._mig.types import Request
from tests.unit.fixtures.mig_node import MigNode, card

SECOND = {"one": [{"devices": [1], "mig-enabled": True, "mig-devices": {"3g.20gb": 2}}]}


def resets(node):
    return [" ".join(one[1:]) for one in node.commands if "--gpu-reset" in one]


def test_the_gpus_that_stay_are_not_reset(tmp_path):
    cards = [card(number, "20b0", needs_reset=True) for number in range(3)]
    node = MigNode(tmp_path, *cards)
    request = Request("one", SECOND, at_boot=False)
    # What a reset of the first GPU would end.
    node.open_device(800, "/dev/nvidia0", "training.service")
    assert not present(request, node.dependencies(), False)["reboot_required"]
    assert resets(node) == ["--gpu-reset -i GPU-1"]
    assert [node.modes(number) for number in range(3)] == [[False] * 2, [True] * 2, [False] * 2]
    # More instances, with the mode as it is: no reset at all.
    node.commands.clear()
    more = {"one": [{**SECOND["one"][0], "mig-devices": {"3g.20gb": 1, "1g.5gb": 1}}]}
    present(Request("one", more, at_boot=False), node.dependencies(), False)
    assert resets(node) == []
    absent(Request("", at_boot=False), node.dependencies(), False)
    assert resets(node) == ["--gpu-reset -i GPU-1"]
