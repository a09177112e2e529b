# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters that most roles use, by their names, in each template of a test."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.template import Templar

from ansible_collections.kubegpu.nodes.plugins.filter.cluster_connection import cluster_connection
from ansible_collections.kubegpu.nodes.plugins.filter.gpu_hosts import gpu_hosts
from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.filter.rollout import rollout


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Templar.__init__

    def with_filter(templar: Any, *arguments: Any, **options: Any) -> None:
        begin(templar, *arguments, **options)
        filters = templar._engine.environment.filters
        filters["kubegpu.nodes.cluster_connection"] = cluster_connection
        filters["kubegpu.nodes.gpu_hosts"] = gpu_hosts
        filters["kubegpu.nodes.gpu_plan"] = gpu_plan
        filters["kubegpu.nodes.rollout"] = rollout

    monkeypatch.setattr(Templar, "__init__", with_filter)
