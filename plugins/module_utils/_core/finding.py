# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A problem of a node or a cluster. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import KubegpuError
from .printable import printable
from .redact import first_words, redact

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)
#: How sure a cause is: facts or the text prove it, the text alone suggests it, or nothing decides
#: between it and others.
PROVEN, LIKELY, POSSIBLE = "proven", "likely", "possible"
CONFIDENCES = (PROVEN, LIKELY, POSSIBLE)
_MOST_OF_NAME = 300
_MOST_TEXT = 2000
_MOST_READ = 64 * 1024
#: The words that stand for names in what is reported of several hosts.
WORDS = {"host": "HOST", "node": "NODE", "pod": "POD", "name": "POD", "gpu": "GPU"}


@dataclass(frozen=True)
class Subject:
    """What a finding is about: a host, one of its GPUs, or a pod, which may be on a host.

    :param gpu: its address, or that of an NVSwitch.
    :param pod: ``namespace/name``.
    :param placed: whether the pod has a node, which need not be a host of the run.
    :param vendor: of the GPU or the software: nvidia, amd or intel.
    :param part: another part of the host or of the run, such as a task or a GPU without address.
    """

    host: str = ""
    gpu: str = ""
    pod: str = ""
    placed: bool = False
    vendor: str = ""
    part: str = ""

    def __str__(self) -> str:
        gpu = f"GPU {self.gpu}" if self.gpu else self.part
        return f"pod {self.pod}" if self.pod else ": ".join(filter(None, (self.host, gpu)))

    @property
    def place(self) -> str:
        """The same without the host, for what names the host elsewhere."""
        return f"pod {self.pod}" if self.pod else self.gpu or self.part


@dataclass(frozen=True)
class Finding:
    """A problem with its parts, which whatever shows or joins findings reads as they are.

    :param details: the names that were put into its texts, such as the address of a GPU.
    :param severity: error, warning or info; empty where its source decides.
    :param fix: a command or variables, empty if none is known.
    :param confidence: proven, likely or possible; empty where its source decides.
    :param alternatives: codes of the other possible causes if nothing decides.
    :param follows: what follows from it: codes or causes of other findings.
    :param template: the next step with names of ``details`` in braces; empty where it has none.
    """

    code: str
    cause: str
    evidence: str = ""
    next_step: str = ""
    details: Mapping[str, str] = field(default_factory=dict, compare=False)
    severity: str = ""
    subject: Subject = Subject()
    fix: str = ""
    confidence: str = ""
    alternatives: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    template: str = field(default="", compare=False)

    @property
    def message(self) -> str:
        return str(self.error())

    def error(self) -> KubegpuError:
        """Return the exception for a failing module."""
        return KubegpuError(
            self.cause,
            evidence=self.evidence,
            next_step=self.next_step,
            code=self.code,
            names=self.details,
        )

    def as_problem(self) -> dict[str, Any]:
        """Return an item of ``gpu_node.problems``, with all parts that have a value."""
        more = {
            "severity": self.severity,
            "host": self.subject.host,
            "gpu": self.subject.gpu,
            "pod": self.subject.pod,
            "placed": self.subject.placed,
            "vendor": self.subject.vendor,
            "subject": self.subject.part,
            "fix": self.fix,
            "confidence": self.confidence,
            "alternatives": list(self.alternatives),
            "follows": list(self.follows),
        }
        return {
            "code": self.code,
            "cause": printable(self.cause),
            "evidence": printable(self.evidence),
            "next_step": printable(self.next_step),
            **{name: value for name, value in more.items() if value},
            **self.named(),
        }

    def named(self) -> dict[str, Any]:
        """Return ``names`` and ``template``, where they have a value, without secrets."""
        names = {
            name: printable(redact(str(value)))[:_MOST_OF_NAME]
            for name, value in self.details.items()
            if value
        }
        return {
            **({"names": names} if names else {}),
            **({"template": self.template} if self.template else {}),
        }


def safe_text(value: Any) -> str:
    """Return a text of a node or a pod, without secrets and without control characters."""
    # Redacted before it is cut: half an address does not show its password.
    text = redact(first_words(str(value or ""), _MOST_READ))
    return printable(text[:_MOST_TEXT]).strip()


def read_finding(
    given: Mapping[str, Any],
    clean: Callable[[Any], str],
    subject: Subject,
    severity: str = "",
    code: str = "",
) -> Finding:
    """Return the finding of an item of a result, such as that of :meth:`Finding.as_problem`.

    :param clean: makes a text of a value of a node; of None, an empty one.
    :param severity: of a finding whose item has none.
    :param code: the same.
    """
    names, own = given.get("names"), clean(given.get("severity"))
    codes = [given.get("alternatives"), given.get("follows")]
    alternatives, follows = (
        tuple(map(clean, one if isinstance(one, (list, tuple)) else ())) for one in codes
    )
    return Finding(
        clean(given.get("code")) or code,
        clean(given.get("cause")),
        clean(given.get("evidence")),
        clean(given.get("next_step")),
        {
            clean(name): clean(value)
            for name, value in (names.items() if isinstance(names, Mapping) else ())
            if value
        },
        own if own in SEVERITIES else severity,
        subject,
        clean(given.get("fix")),
        clean(given.get("confidence")),
        alternatives,
        follows,
        clean(given.get("template")),
    )


def with_names(
    code: str, cause: str, evidence: str, next_step: str, names: Mapping[str, str]
) -> Finding:
    """Return a finding whose next step names parts of the node or the cluster.

    :param next_step: with the names in braces.
    """
    return Finding(code, cause, evidence, next_step.format_map(names), names, template=next_step)


def pod_names(namespace: str, name: str, **more: str) -> dict[str, str]:
    """Return the names of a pod or a DaemonSet, for :func:`with_names`."""
    return {"pod": f"{namespace}/{name}", "namespace": namespace, "name": name, **more}


def general_step(step: str, template: str, names: Mapping[str, Any]) -> str:
    """Return a next step in which words in capitals stand for host, node, pod and GPU.

    :param template: of the finding; empty for a step without names.
    """
    try:
        return template.format_map({**names, **WORDS}) if template else step
    except (KeyError, IndexError, ValueError, AttributeError):
        # It was read from the result of another release.
        return step
