# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings and the places of each distribution."""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import (
    Settings,
    chosen_distribution,
    with_distribution_defaults,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import Request


@pytest.mark.parametrize(
    ("distribution", "there", "found"),
    [
        ("auto", (), "containerd"),
        ("auto", ("/var/lib/rancher/k3s/agent/etc/containerd",), "k3s"),
        ("auto", ("/var/lib/rancher/rke2/agent/etc/containerd",), "rke2"),
        ("auto", ("/var/lib/k0s/bin/containerd",), "k0s"),
        ("auto", ("/var/snap/microk8s/current/args",), "microk8s"),
        ("containerd", ("/var/lib/rancher/k3s/agent/etc/containerd",), "containerd"),
        ("k3s", (), "k3s"),
    ],
)
def test_distribution(distribution, there, found):
    assert (
        chosen_distribution(Settings(distribution=distribution), lambda path: path in there).name
        == found
    )


@pytest.mark.parametrize("name", [distribution.name for distribution in DISTRIBUTIONS])
def test_options_of_the_user_win_over_the_distribution(name):
    (distribution,) = (item for item in DISTRIBUTIONS if item.name == name)
    request, settings = with_distribution_defaults(
        distribution, Request(), Settings(), lambda: "found"
    )
    assert request.config_path == distribution.config_path
    assert (settings.unit, settings.socket) == ("found", distribution.socket)
    own = (Request(config_path="/c"), Settings(unit="u", socket="/s", restart_timeout=61))
    assert with_distribution_defaults(distribution, *own, lambda: "found") == own
