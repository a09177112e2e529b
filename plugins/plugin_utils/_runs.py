# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run that plans: what a plan needs of the controller."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Run

from ._rollout import selected


def this_run(
    controller: str,
    cluster: Mapping[str, Any] | None = None,
    run_tags: Sequence[str] = ("all",),
    skip_tags: Sequence[str] = (),
    hosts: Collection[str] | None = None,
) -> Run:
    """Return the run for the plan of a node.

    :param controller: version of ansible-core.
    :param cluster: what a cluster says of the node.
    :param hosts: those of the inventory.
    """
    return Run(
        controller=controller,
        today=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        driver_selected=selected("driver", run_tags, skip_tags),
        cluster=cluster or {},
        hosts=hosts,
    )
