# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the outputs in the guides of machines are made."""

from __future__ import annotations

from collections.abc import Mapping

from tests.integration.plans.guides import Output, Plan, having
from tests.unit.fixtures.machines import MACHINES

WORKSTATION = having(MACHINES["rtx4090-workstation"], {"/usr/bin/dockerd": ""})
OUTPUTS: Mapping[str, Output] = {
    "docker-plan": Plan({"gpu1.example.com": WORKSTATION}),
}
