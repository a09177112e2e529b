# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.loading import (
    ModuleState,
    decide_loading,
    kernel_without_module,
)
from tests.unit.fixtures.driver_nodes import node

NO_REBOOT = {"required": False, "reason": ""}


@pytest.mark.parametrize(
    ("wanted", "look", "now", "words"),
    [
        (True, ModuleState(), True, ""),
        (False, ModuleState(users=("x (pid 1)",), loaded="1"), False, ""),
        (True, ModuleState(loaded="1"), True, ""),
        (True, ModuleState(loaded="1", users=("python3 (pid 7)",)), False, "python3 (pid 7)"),
        (True, ModuleState(loaded="1", holders=("nvidia_fs",)), False, "module nvidia_fs"),
        (True, ModuleState(nouveau=0), True, ""),
        (True, ModuleState(nouveau=3), False, "nouveau is loaded and in use (3 users,"),
        (
            True,
            ModuleState(nouveau=1, kernel_driver="nova_drm"),
            False,
            "nova_drm is loaded and in use (1 user, usually the console)",
        ),
    ],
)
def test_loading(wanted, look, now, words):
    loading = decide_loading(wanted, look, NO_REBOOT)
    assert loading.now == now
    assert words in loading.reboot
    assert bool(loading.reboot) == bool(words)


def test_an_environment_without_modules_warns_and_asks_for_no_reboot():
    loading = decide_loading(True, ModuleState(cannot="this is a container"), NO_REBOOT)
    assert (loading.now, loading.reboot) == (False, "")
    assert "this is a container" in loading.warning


def test_the_plans_word_on_a_reboot_is_taken_where_nothing_is_to_be_loaded():
    reboot = {"required": True, "reason": "another kernel"}
    assert decide_loading(False, ModuleState(), reboot).reboot == "another kernel"


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ((("6.1", True, "580"),), False),
        ((("6.1", True, None),), False),
        ((("6.1", True, None), ("6.2", False, "580")), True),
        ((("6.1", True, "unknown"), ("6.2", False, "580")), False),
        ((("6.2", False, "580"),), True),
    ],
)
def test_a_module_for_another_kernel(kernels, said):
    assert bool(kernel_without_module(node(kernels=kernels))) == said
