# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A problem of a node or a cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import KubegpuError

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
#: How sure a cause is: facts or the text prove it, the text alone suggests it, or nothing decides
#: between it and others.
PROVEN, LIKELY, POSSIBLE = "proven", "likely", "possible"
CONFIDENCES = (PROVEN, LIKELY, POSSIBLE)


@dataclass(frozen=True)
class Subject:
    """What a finding is about: a host, one of its GPUs, or a pod, which may be on a host.

    :param gpu: its address, or that of an NVSwitch.
    :param pod: ``namespace/name``.
    :param placed: whether the pod has a node, which need not be a host of the run.
    :param vendor: of the GPU or the software: nvidia, amd or intel.
    """

    host: str = ""
    gpu: str = ""
    pod: str = ""
    placed: bool = False
    vendor: str = ""

    def __str__(self) -> str:
        if self.pod:
            return f"pod {self.pod}"
        return f"{self.host}: GPU {self.gpu}" if self.gpu else self.host


@dataclass(frozen=True)
class Finding:
    """A problem with its parts, which whatever shows or joins findings reads as they are.

    :param details: the names that were put into its texts, such as the address of a GPU.
    :param severity: error, warning or info; empty where its source decides.
    :param fix: a command or variables, empty if none is known.
    :param confidence: proven, likely or possible; empty where its source decides.
    :param alternatives: codes of the other possible causes if nothing decides.
    """

    code: str
    cause: str
    evidence: str = ""
    next_step: str = ""
    details: Mapping[str, str] = field(default_factory=dict, compare=False)
    severity: str = ""
    subject: Subject = field(default_factory=Subject, compare=False)
    fix: str = ""
    confidence: str = ""
    alternatives: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return str(self.error())

    def error(self) -> KubegpuError:
        """Return the exception for a failing module."""
        return KubegpuError(
            self.cause, evidence=self.evidence, next_step=self.next_step, code=self.code
        )

    def as_problem(self) -> dict[str, str]:
        """Return an item of ``gpu_node.problems``."""
        return {
            "code": self.code,
            "cause": self.cause,
            "evidence": self.evidence,
            "next_step": self.next_step,
        }
