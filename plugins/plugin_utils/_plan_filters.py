# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the filters of plans check before they read options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def check_call(
    name: str, gpu_node: Any, options: Iterable[str] = (), known: Iterable[str] = ()
) -> None:
    """Check the facts, and the names of the options.

    :param name: the filter.
    :param options: the names of the given options.
    :param known: the names of all options.
    :raises AnsibleFilterError: the fact ``gpu_node`` is missing, or an option is unknown.
    """
    if not isinstance(gpu_node, Mapping) or "gpus" not in gpu_node:
        raise AnsibleFilterError(
            f"{name} needs the fact gpu_node. Next step: run kubegpu.nodes.gpu_node_facts on the "
            "host first."
        )
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise AnsibleFilterError(
            f"{name} does not know {', '.join(unknown)}. It knows {', '.join(sorted(known))}."
        )
