# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Request, target and result of a test pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._cluster.allocation import NodeState, Resource

if TYPE_CHECKING:
    from .._core.finding import Finding

# Resources whose pods run with NVIDIA's image and RuntimeClass.
_NVIDIA = "nvidia.com/"
# Value of ``runtime_class``: the class that the cluster's device plugin uses.
AUTO = "auto"


@dataclass(frozen=True)
class Sample:
    """What the test pods of AMD or Intel GPUs run."""

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    expect: str


@dataclass(frozen=True)
class Request:
    """What the test pods run, and how long they may take.

    :param expect: regular expression that a line of the log must match.
    :param runtime_class: empty for none.
    :param auto_class: whether ``runtime_class`` was taken from the device plugin, not requested.
    :param timeout: seconds, including the pull of the image.
    :param busy_fails: whether a node whose GPUs are all allocated counts as failed.
    :param samples: what pods run that ask for another resource than NVIDIA's, by the beginning of
        its name.
    """

    image: str
    expect: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    namespace: str = "kubegpu"
    runtime_class: str = ""
    auto_class: bool = False
    tolerations: tuple[Mapping[str, Any], ...] = ()
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    priority_class: str = ""
    run_as_user: int = 65532
    timeout: int = 120
    busy_fails: bool = False
    samples: Mapping[str, Sample] = field(default_factory=dict)

    def of(self, resource: str) -> Request:
        """Return the request for a pod that asks for this resource."""
        if resource.startswith(_NVIDIA):
            return self
        found = self
        if self.auto_class:
            # AMD's and Intel's GPUs need no handler of a runtime.
            found = replace(found, runtime_class="")
        for prefix, sample in self.samples.items():
            if resource.startswith(prefix):
                found = replace(
                    found,
                    image=sample.image,
                    command=sample.command,
                    args=sample.args,
                    expect=sample.expect,
                )
        return found


@dataclass(frozen=True)
class Target:
    """A test pod to create: for which host, on which node, with which resource.

    :param key: the host's key in the option ``nodes``.
    :param count: how many of ``resource`` the pod requests.
    :param facts: what is known of the host, as a part of the fact ``gpu_node``.
    :param dra: whether a DRA driver provides the device. Such a pod needs no RuntimeClass, and
        NVIDIA's could add GPUs that the claim does not have.
    :param claim: whether the pod asks by a ResourceClaim; ``resource`` is then the device class.
    """

    key: str
    node: str
    hostname: str
    resource: str
    count: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    dra: bool = False
    claim: bool = False

    def of(self, state: NodeState) -> Resource:
        """Return what its node offers of that which the pod asks for."""
        if not self.claim:
            return state.resource(self.resource)
        return state.dra.by_class.get(self.resource, Resource()) if state.dra else Resource()


@dataclass(frozen=True)
class PodResult:
    """Result of a test; ``ok`` is None if the node could not be tested."""

    ok: bool | None
    finding: Finding | None = None
    proof: str = ""
