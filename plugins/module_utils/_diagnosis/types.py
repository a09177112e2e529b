# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of hosts and pods, and the diagnosis made of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._core.finding import (
    CONFIDENCES,
    ERROR,
    INFO,
    LIKELY,
    POSSIBLE,
    PROVEN,
    SEVERITIES,
    WARNING,
    Finding,
    Subject,
)

__all__ = (
    "CONFIDENCES", "ERROR", "INFO", "LIKELY", "POSSIBLE", "PROVEN", "SEVERITIES", "WARNING",
    "Subject",
)  # fmt: skip

Object = Mapping[str, Any]

BUS, MODULE, GPU, NVML = "bus", "module", "gpu", "nvml"
TOOLKIT, RUNTIME = "toolkit", "runtime"
NODE, PLUGIN, POD = "node", "plugin", "pod"
#: Each layer needs those before it.
LAYERS = (BUS, MODULE, GPU, NVML, TOOLKIT, RUNTIME, NODE, PLUGIN, POD)


@dataclass(frozen=True)
class Rule:
    """What is known of the code of a finding. The order of the table counts, too.

    :param because: layers and codes whose errors explain this finding. A code explains only
        findings of later rows.
    :param fix: a command or variables, with names in braces: ``limit`` is the host where several
        can stand with commas, ``host`` one of them, ``reboot`` how it is rebooted, ``namespace``
        and ``name`` the pod; others are those of the finding, without which it has no fix.
    :param severity: instead of that of the finding.
    :param pod_fix: instead of ``fix`` where the finding is about a pod of a user.
    """

    code: str
    layer: str
    because: tuple[str, ...] = ()
    fix: str = ""
    severity: str = ""
    confidence: str = PROVEN
    pod_fix: str | None = None


@dataclass(frozen=True)
class Observed(Finding):
    """A finding of one of the sources.

    :param source: the layer that the source sees: a pod's log may name a cause of any layer.
    """

    source: str = ""


@dataclass(frozen=True)
class Host:
    """What was read of a host; None or empty where it was not read.

    :param facts: the fact ``gpu_node``.
    :param layers: the layers of ``gpu_node_verify``.
    :param health: the result of ``gpu_node_health``.
    :param node: the name of its node in the cluster.
    :param root: whether it was read as root.
    :param failure: why it could not be read.
    :param switches: the variables of ``switches.SWITCHES`` with their values; empty: not known.
    """

    name: str
    facts: Object | None = None
    layers: Sequence[Object] = ()
    health: Object | None = None
    node: str = ""
    root: bool = True
    failure: str = ""
    switches: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis(Observed):
    """A root cause, with the codes of the findings that follow from it.

    :param folded: these findings.
    """

    folded: tuple[Observed, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.code,
            "severity": self.severity,
            "subject": str(self.subject),
            "host": self.subject.host,
            "gpu": self.subject.gpu,
            "pod": self.subject.pod,
            "cause": self.cause,
            "evidence": self.evidence,
            "next_step": self.next_step,
            "fix": self.fix,
            "confidence": self.confidence,
            "follows": list(self.follows),
            **self.named(),
        }
