# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recognise the messages of tools when a GPU container does not run. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._core.errors import InputError
from .._core.finding import INFO, POSSIBLE, Finding
from .._hardware.vgpu_licence import LICENSED, UNLICENSED, licence_state
from .._nvidia.compatibility import minor, parse_cuda, required_by, runs, supported_by
from .._nvidia.cuda_releases import BUILT_IN, CudaData
from .build import explain_log, is_foreign, missing_headers
from .codes import BUILD_FAILED, GPU_UNSUPPORTED, MISMATCH, NO_HEADERS
from .common import missing_licence
from .decide import decided, possible
from .documents.read import of_documents, of_smi
from .driver import find_cause
from .evidence_types import Evidence, Gpu
from .matching import (
    all_matches,
    evidence,
    finding,
    of_others,
    uncovered,
    with_covered,
)
from .nvidia_log import mismatch, recovery, switch_errors, unsupported, worst_xids
from .package_lines import RELATION, relevant_lines
from .predicates import Facts, holds
from .reader import read
from .rules.cuda import CUDA_BUSY, CUDA_CONDITION, CUDA_RUNTIME
from .rules.packages import MANAGERS
from .rules.tables import FAILURES, SUCCESSES
from .rules.xids import RECOVERY, SWITCH, XID
from .types import Rule
from .versions_in_text import with_text
from .words import filled_in, groups

_REQUIRE = re.compile(r"--require=(cuda\s*>=\s*\d+\.\d+)")
_CUDA = re.compile(r"cuda\s*>=\s*(\d+\.\d+)", re.IGNORECASE)
_MOST_LINES = 2000
_GOOD = tuple((row, re.compile(row.pattern)) for row in SUCCESSES)


def explain(
    text: str,
    facts: Facts | None = None,
    *,
    seen: Mapping[str, bool] | None = None,
    data: CudaData = BUILT_IN,
) -> list[Finding]:
    """Return the known problems in a text, most specific first.

    :param text: a log, an event or an error of a container.
    :param facts: the fact ``gpu_node`` of the node of the text, or a part of it.
    :param seen: what the caller knows of the text, by the name of a predicate.
    :param data: the tables of CUDA.
    :raises InputError: the facts are not those of a node.
    """
    if facts is None:
        return _explained(text, {}, seen or {}, data)
    try:
        if isinstance(facts, Mapping):
            return _explained(text, facts, seen or {}, data)
        wrong = f"facts are {type(facts).__name__}, not a mapping"
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        # Without facts it is a fault of this code, which is raised as it is.
        _explained(text, {}, seen or {}, data)
        wrong = f"{type(error).__name__}: {str(error)[:200]}"
    raise InputError(
        "The facts for the explanation are not a fact gpu_node.",
        evidence=wrong,
        next_step="Give gpu_node as kubegpu.nodes.gpu_node_facts returned it, or leave the facts "
        "out.",
    )


def _explained(text: str, facts: Facts, known: Mapping[str, bool], data: CudaData) -> list[Finding]:
    documents = of_documents(text)
    told = "".join(f"\n{one.evidence}" for one in documents)
    documents += of_smi(text)
    text = read(text) + told
    facts = with_text(facts, text)
    findings: list[Finding] = []
    # Of the general messages of one program only the first counts.
    contexts: set[str] = set()
    foreign = is_foreign(text)

    def applies(row: Rule) -> bool:
        if foreign and row.code == BUILD_FAILED:
            return False
        return holds(row.when, facts, known) is not False

    matched = all_matches(text, FAILURES, applies)
    for row, match, others in decided(uncovered(matched), facts, known):
        if (row.last_resort and documents) or row.context in contexts:
            continue
        contexts |= {row.context} - {""}
        first, *more = _findings(row, match, text, facts, data)
        for one in (with_covered(first, row, matched), *more):
            if _is_new(one, findings):
                whole = one if one.severity else replace(one, severity=row.severity)
                findings.append(possible(whole, others) if others else whole)
    findings += _of_other_gpus(text, findings)
    # What is in a document follows from what a line of it names.
    codes = {one.code for one in findings}
    return [*findings, *(one for one in documents if one.code not in codes)]


def _findings(
    row: Rule, match: re.Match[str], text: str, facts: Facts, data: CudaData
) -> list[Finding]:
    """Return what a row says: a finding for each GPU that the text names in its message."""
    if row.code == XID:
        return worst_xids(text) or [finding(row, match)]
    if row.code == SWITCH:
        return switch_errors(finding(row, match), text) or [finding(row, match)]
    found = [_finding(row, match, text, facts, data)]
    if row.driver:
        return found
    return found + [_finding(row, other, text, facts, data) for other in of_others(row, match)]


def _of_other_gpus(text: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the Xids that call for help of GPUs that no finding is about."""
    named = {one.subject.gpu for one in findings if one.subject.gpu}
    if not named:
        return []
    return [
        one
        for one in worst_xids(text)
        if one.severity != INFO and not any(one.subject.gpu in gpu for gpu in named)
    ]


def _is_new(one: Finding, findings: Sequence[Finding]) -> bool:
    """Return whether nothing of the kind was found, or of other GPUs only."""
    gpus = [other.subject.gpu for other in findings if other.code == one.code]
    return not gpus or (bool(one.subject.gpu) and "" not in gpus and one.subject.gpu not in gpus)


def successes(text: str) -> list[Finding]:
    """Return the messages of success in a text: ``plugin_registered``, ``test_passed``."""
    text = read(text)
    found = ((row, pattern.search(text)) for row, pattern in _GOOD)
    return [
        Finding(row.code, filled_in(row.cause, match), evidence(match), details=groups(match))
        for row, match in found
        if match
    ]


def explain_one(
    text: str,
    otherwise: Finding,
    facts: Facts | None = None,
    seen: Mapping[str, bool] | None = None,
) -> Finding:
    """Return the first finding in a text, or ``otherwise``."""
    return next(iter(explain(text, facts, seen=seen)), otherwise)


def _finding(
    row: Rule,
    match: re.Match[str],
    text: str,
    facts: Facts,
    data: CudaData,
) -> Finding:
    driver, gpus = (facts.get("driver") or {}).get("loaded"), facts.get("gpus") or ()
    if row.code == CUDA_CONDITION:
        return _requirement(row, match, text, driver, data)
    if row.code == CUDA_RUNTIME:
        cause, step = row.cause, row.next_step
        if driver:
            cause += f" It is {driver}, {_newest(driver, data)}."
        return Finding(row.code, cause, evidence(match), step)
    if row.context == MANAGERS:
        lines = relevant_lines(match.string, f"{row.pattern}|{RELATION}")
        return replace(finding(row, match), evidence=lines[:_MOST_LINES])
    if row.code == BUILD_FAILED:
        return explain_log(text)
    if row.code == NO_HEADERS:
        return missing_headers(text, facts) or finding(row, match)
    if row is CUDA_BUSY:
        return _busy(finding(row, match), gpus)
    if row.code == RECOVERY and "address" in match.re.groupindex:
        return recovery(finding(row, match), match)
    if row.code == MISMATCH:
        return mismatch(finding(row, match), facts)
    if row.code == GPU_UNSUPPORTED and row.driver and not gpus:
        return unsupported(row, text, evidence(match))
    if row.driver:
        found = find_cause(
            Evidence(
                modprobe=text,
                output=text,
                dmesg=tuple(text.splitlines()[-400:]),
                loaded=driver,
                gpus=_gpus(gpus),
            )
        )
        if found is not None:
            # What was not looked at is no evidence.
            return found if gpus else replace(found, evidence=evidence(match))
    return finding(row, match)


def _busy(found: Finding, gpus: Sequence[Mapping[str, Any]]) -> Finding:
    """Return why a GPU is busy or unavailable: in a guest without a licence that is the cause."""
    nvidia = [gpu for gpu in gpus if gpu.get("vendor") == "nvidia" and gpu.get("vgpu")]
    for gpu in nvidia:
        if licence_state(gpu) == UNLICENSED:
            cause = missing_licence(gpu["address"], gpu["vgpu"]["licence"])
            return replace(cause, evidence=f"{found.evidence}; {cause.evidence}")
    if nvidia and all(
        gpu["vgpu"]["guest"] is False or licence_state(gpu) == LICENSED for gpu in nvidia
    ):
        return found
    return replace(
        found,
        confidence=POSSIBLE,
        cause=f"{found.cause} A virtual GPU (vGPU) without a licence fails so as well.",
        next_step=f"{found.next_step} In a guest with a vGPU check License Status in "
        "nvidia-smi -q.",
    )


def _requirement(
    row: Rule, match: re.Match[str], text: str, driver: str | None, data: CudaData
) -> Finding:
    """Return what an image requires, which driver meets it, and what this driver supports."""
    shown = evidence(match)
    condition = re.sub(r"\s+", "", match["condition"])
    # Of several alternatives the toolkit names the last one; that of CUDA is the first.
    demanded = _REQUIRE.search(text)
    cuda = _CUDA.match(condition) or (_CUDA.match(demanded[1]) if demanded else None)
    if not cuda:
        return Finding(
            row.code,
            row.cause.format(condition=condition),
            shown,
            row.next_step,
            {"condition": condition},
        )
    wanted = cuda[1]
    details = {"condition": condition, "cuda": wanted}
    has = f" The node's driver is {driver}, {_newest(driver, data)}." if driver else ""
    cause = f"The image demands CUDA {wanted}, which is newer than the node's driver allows.{has}"
    steps = []
    try:
        need = required_by(f"cuda>={wanted}", data)
    except InputError:
        steps.append(f"Install the driver that CUDA {wanted} came with, or a newer one")
    else:
        details["driver_needed"] = need["minimum"]
        steps.append(f"Install driver {need['minimum']} or newer (it came with CUDA {wanted})")
    newest = _native(driver, data)
    if newest:
        details["newest_cuda"] = newest
        steps.append(f"use an image with CUDA {newest} or older")
    else:
        steps.append(
            "use an image with an older CUDA (the head of nvidia-smi names the newest one that "
            "the driver has)"
        )
    step = f"{', or '.join(steps)}."
    if driver and _runs(wanted, driver, data):
        step += (
            f" By minor-version compatibility driver {driver} runs CUDA {minor(parse_cuda(wanted))}"
            " too, but for new features and PTX that is compiled at start: "
            "NVIDIA_DISABLE_REQUIRE=true in the container's environment turns the demand off."
        )
    return Finding(CUDA_CONDITION, cause, shown, step, details)


def _newest(driver: str, data: CudaData) -> str:
    newest = _native(driver, data)
    return f"whose own CUDA is {newest}" if newest else "whose CUDA is not in the table"


def _native(driver: str | None, data: CudaData) -> str | None:
    try:
        return supported_by(driver, data)["native"] if driver else None
    except InputError:
        return None


def _runs(cuda: str, driver: str, data: CudaData) -> bool:
    try:
        return runs(cuda, driver, data)
    except InputError:
        return False


def _gpus(gpus: Sequence[Mapping[str, Any]]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            gpu["address"],
            gpu["product"] or f"the NVIDIA GPU {gpu['device_id']}",
            gpu["generation"] or "unknown",
            gpu["vgpu"]["guest"],
            gpu["vgpu"]["host_driver_version"],
            gpu["vgpu"]["host_driver_branch"],
        )
        for gpu in gpus
        # Facts may be partial.
        if gpu.get("vendor") == "nvidia" and {"address", "product", "vgpu"} <= gpu.keys()
    )
