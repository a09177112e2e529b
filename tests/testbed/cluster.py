# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A real Kubernetes: a control plane on this machine, and kubelets in node containers."""

from __future__ import annotations

from tests.testbed.cluster_control import ControlPlane
from tests.testbed.paths import BUILD

API = BUILD / "api"


def api_up() -> ControlPlane:
    """An API server with its controllers alone, on loopback: for Node objects that are made."""
    plane = ControlPlane(API).up()
    print(plane.kubeconfig)
    return plane


def api_down() -> None:
    """Stop it; nothing stays."""
    ControlPlane(API).remove()
