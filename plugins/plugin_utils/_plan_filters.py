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


def with_facts(
    name: str,
    hosts: Mapping[str, Mapping[str, Any]],
    facts: Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    """Return the hosts with their facts.

    :param name: the filter.
    :param facts: the fact ``gpu_node`` by host, if it is not in ``hosts``.
    :raises AnsibleFilterError: the fact of a host is missing.
    """
    complete = {
        host: {"gpu_node": facts.get(host), **given} if host in facts else given
        for host, given in hosts.items()
    }
    missing = [host for host, given in complete.items() if not given.get("gpu_node")]
    if missing:
        raise AnsibleFilterError(
            f"{name} needs the fact gpu_node of {', '.join(missing)}. Next step: run "
            "kubegpu.nodes.gpu_node_facts on the hosts first."
        )
    return complete
