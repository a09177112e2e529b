# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What somebody meant by a name that is not known, and never its opposite."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.names import (
    is_opposite,
    most_similar,
)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("skip_reboot", "reboot"),
        ("skp_reboot", "reboot"),
        ("no_reboot", "reboot"),
        ("reboot_disabled", "reboot"),
        ("reboot_never", "reboot"),
        ("disable", "enabled"),
        ("disabled", "enabled"),
        ("unhold", "hold"),
        ("hold", "unhold"),
        ("uninstall_timeout", "install_timeout"),
        ("without_cdi", "cdi"),
        ("not_loaded", "load"),
        ("ignore_persistence", "persistence"),
        ("keep_source", "replace_source"),
        ("remove_pods", "keep_pods"),
        ("skipReboot", "reboot"),
        ("exclude_graphics", "graphics"),
    ],
)
def test_opposites(name, known):
    assert is_opposite(name, known) and is_opposite(known, name)
    assert most_similar(name, [known], 0.3) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("kernel_modules", "kernel_module"),
        ("branche", "branch"),
        ("reboots", "reboot"),
        ("node_name", "node_names"),
        ("containerd_default", "containerd_set_default"),
        ("no_proxi", "no_proxy"),
        ("skip_pods", "skip_pod"),
        ("enable", "enabled"),
        ("persistance", "persistence"),
        ("units", "unit"),
        ("install_timout", "install_timeout"),
    ],
)
def test_typing_errors(name, known):
    assert most_similar(name, ["something", known], 0.6) == known


def test_the_next_similar_name_is_taken_if_the_first_is_the_opposite():
    assert most_similar("no_reboots", ["reboots", "no_reboot"], 0.6) == "no_reboot"
