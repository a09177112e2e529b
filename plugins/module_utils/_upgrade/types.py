# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of the rolling upgrade: request, host, plan. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.finding import Finding

# What a change disturbs, from the least to the most.
NOTHING, RUNTIME, GPU, ALL = "nothing", "runtime", "gpu", "all"
LEVELS = (NOTHING, RUNTIME, GPU, ALL)

# What is done with a host.
CHANGE, RESUME, NONE, REFUSE = "change", "resume", "none", "refuse"

# How a host ended. A host without an outcome was not started.
DONE, UNCHANGED, ROLLED_BACK = "done", "unchanged", "rolled_back"
FAILED, UNREACHABLE, BLOCKED, REFUSED = "failed", "unreachable", "blocked", "refused"
NOT_STARTED, PLANNED, RELEASED = "not_started", "planned", "released"
#: They count against ``max_failed``.
SPENDS = (FAILED, UNREACHABLE, ROLLED_BACK)
#: They fail the run.
BAD = (*SPENDS, BLOCKED, REFUSED, NOT_STARTED)
#: The node remains cordoned.
KEPT = (FAILED, UNREACHABLE)


@dataclass(frozen=True)
class Request:
    """What the user asks for. Numbers of nodes may be percentages, such as ``25%``."""

    run: str = "gpu-upgrade"
    #: How many hosts are upgraded first, or which.
    canary: int | tuple[str, ...] = 1
    batch: tuple[str, ...] = ("1",)
    max_unavailable: str = "25%"
    max_failed: int = 0
    #: auto, gpu, all or none
    pods: str = "auto"
    #: auto or never
    reboot: str = "auto"
    #: stop or skip
    on_refusal: str = "stop"
    #: try, require or never
    rollback: str = "try"
    #: Whether nodes whose restart would cost the control plane its quorum are refused.
    keep_quorum: bool = True
    #: Whether nodes that an earlier run left are only released.
    release: bool = False


@dataclass(frozen=True)
class Host:
    """A host with an NVIDIA GPU.

    :param plans: the plans of the roles, by part.
    :param row: the node as ``gpu_node_maintenance`` or ``gpu_host_maintenance`` sees it.
    :param drain: what its dry run of the drain returned; None if there was none.
    :param labels: the labels of the node.
    :param failure: why the host cannot be planned, with the parts of an error.
    """

    name: str
    plans: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    row: Mapping[str, Any] | None = None
    drain: Mapping[str, Any] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    failure: Mapping[str, Any] = field(default_factory=dict)
    #: The installed driver; empty for none.
    driver: str = ""
    #: The folder of a kubelet that ran on it, although no cluster is given; empty for none.
    kubelet: str = ""
    #: The installed packages that are changed and that no repository has any more.
    missing: tuple[str, ...] = ()
    #: Why the package manager could not be asked for them; empty if it was.
    unasked: str = ""
    #: Whether the unit of its containerd runs a member of the control plane.
    control_plane: bool = False

    @property
    def node(self) -> str:
        """The name of its node; empty if it has none."""
        return str((self.row or {}).get("node") or "")

    @property
    def held_by(self) -> str:
        return str((self.row or {}).get("held_by") or "")

    def is_out(self, run: str) -> bool:
        """Return whether the node takes no pods, for another reason than this upgrade."""
        row = self.row or {}
        if not self.node:
            return False
        if self.held_by == run:
            # A node that was cordoned before the upgrade is out for that reason.
            return not row.get("ready") or bool(row.get("was_unschedulable"))
        return not row.get("ready") or bool(row.get("unschedulable"))


@dataclass(frozen=True)
class HostPlan:
    """What is done with a host.

    :param pods: which pods leave its node: none, gpu or all.
    :param member: whether its upgrade takes a member of the control plane away that is ready.
    :param batch: number of its batch, from 1; None if it has none.
    :param findings: why it is refused.
    :param blocks: what would hold up its drain now.
    """

    name: str
    action: str
    disturbs: str = NOTHING
    pods: str = "none"
    member: bool = False
    batch: int | None = None
    changes: tuple[str, ...] = ()
    leave: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    blocks: tuple[Mapping[str, Any], ...] = ()

    @property
    def works(self) -> bool:
        return self.action in (CHANGE, RESUME)

    def to_json(self) -> dict[str, Any]:
        return {
            "node": self.name,
            "action": self.action,
            "disturbs": self.disturbs,
            "pods": self.pods,
            "member": self.member,
            "batch": self.batch,
            "changes": list(self.changes),
            "leave": list(self.leave),
            "findings": [finding.as_problem() for finding in self.findings],
            "blocks": [dict(block) for block in self.blocks],
        }


@dataclass(frozen=True)
class Plan:
    """The upgrade of all hosts.

    :param findings: why the whole run is refused.
    :param refused: whether nothing is touched.
    :param limit: how many nodes may be out at once.
    """

    hosts: tuple[HostPlan, ...] = ()
    batches: tuple[tuple[str, ...], ...] = ()
    findings: tuple[Finding, ...] = ()
    refused: bool = False
    limit: int = 0
    run: str = ""
    #: Whether the hosts are only released.
    release: bool = False
    #: The nodes with GPUs that are out of service and are no hosts of the run.
    elsewhere: tuple[str, ...] = ()
    #: The hosts that did not answer when the run began. They have no part in it.
    not_read: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "refused": self.refused,
            "limit": self.limit,
            "release": self.release,
            "elsewhere": list(self.elsewhere),
            "not_read": list(self.not_read),
            "batches": [list(batch) for batch in self.batches],
            "findings": [finding.as_problem() for finding in self.findings],
            "hosts": {host.name: host.to_json() for host in self.hosts},
        }
