# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan the exporter of a host from its facts and the request. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError, Refusal
from .._core.finding import Finding
from .._core.steps import Step
from .._cuda.sources import plan_repository
from .._cuda.types import Request as CudaRequest
from .._cuda.types import Tables
from .._distro.images import MONITORING, image_system, immutable, keeps_etc
from .._distro.support import MANAGERS
from .._hardware.vendors import container_gpus, passed_through
from .._nvidia.cuda_releases import BUILT_IN
from .._nvidia.driver_branches import driver_data
from .._packages.types import fits
from .data import (
    AUTO,
    CONTAINER,
    CONTAINER_UNIT,
    CORE_PACKAGE,
    EXPORTER_PACKAGE,
    EXPORTER_UNIT,
    OLD_PACKAGE,
    PACKAGES,
    PROPRIETARY_PACKAGE,
    TEXTFILE,
)
from .files import image, setup, textfile_directory
from .types import Plan, Request, Setup

_REPOSITORY = "gpu_monitoring_repository"
_OWN_UNITS = {PACKAGES: EXPORTER_UNIT, CONTAINER: CONTAINER_UNIT}


def plan_exporter(node: Mapping[str, Any], request: Request) -> Plan:
    """Return the changes that the request needs on a node, each with a reason.

    :param node: the fact ``gpu_node``.
    :returns: the plan; an unsatisfiable request has the action ``refuse``.
    """
    if not node["gpus"] and not request.expected_gpus and not node["exporter"]["expected_gpus"]:
        return Plan(reasons=("This node has no GPU: nothing to monitor.",))
    try:
        return _plan(node, request)
    except (Refusal, InputError) as error:
        return Plan.refused(error)


def wanted_gpus(node: Mapping[str, Any], request: Request) -> tuple[tuple[str, ...], str]:
    """Return the addresses of the GPUs that the node has to have, and a warning about lost ones.

    A GPU that was there once remains expected: otherwise the next run would end its alert.
    """
    present = [gpu["address"] for gpu in node["gpus"]]
    if request.expected_gpus:
        return tuple(sorted(set(request.expected_gpus))), ""
    known = set(node["exporter"]["expected_gpus"])
    lost = sorted(known - set(present))
    warning = Finding(
        "gpu_lost",
        f"The node had a GPU at {', '.join(lost)}, which is not on the PCI bus any more.",
        f"{len(present)} of {len(known)} GPUs are there",
        "Check dmesg and the card; if it was taken out, set gpu_monitoring_expected_gpus to "
        "the addresses of those that remain.",
    )
    return tuple(sorted(known | set(present))), warning.message if lost else ""


def _plan(node: Mapping[str, Any], request: Request) -> Plan:
    if not node["exporter"]["systemd"]:
        raise Refusal(
            "The exporter of a host needs systemd, which does not run on this node.",
            "leave it out: gpu_monitoring_enabled: false.",
        )
    method = _method(node, request)
    foreign = _foreign(node, request, method)
    if foreign:
        return Plan(reasons=(foreign.cause,), warnings=(foreign.message,))
    image = immutable(node["os"], MONITORING)
    if image and not keeps_etc(node["os"]) and not node["exporter"]["method"]:
        raise image
    _check(node, request, method)
    gpus, lost = wanted_gpus(node, request)
    packages, optional, package_step = _packages(node, request, method)
    if image and package_step:
        raise image
    repository, repository_step, note = _repository(node, request, packages, package_step)
    wanted = setup(method, request, node, gpus)
    setup_step = _setup_step(node, request, method, wanted, gpus)
    removed = node["exporter"]["method"] == PACKAGES and method != PACKAGES
    steps = tuple(one for one in (repository_step, package_step, setup_step) if one is not None)
    if removed:
        gone = Step("monitoring", "remove", EXPORTER_PACKAGE, f"the method is {method} now")
        steps = (*steps, gone)
    return Plan(
        action="change" if steps else "none",
        method=method,
        counters=request.counters,
        gpus=gpus,
        textfile_directory=textfile_directory(request, node) if method == TEXTFILE else "",
        packages=packages,
        optional_packages=optional,
        obsolete=(OLD_PACKAGE,) if OLD_PACKAGE in node["exporter"]["packages"] else (),
        change_packages=package_step is not None,
        remove_packages=removed,
        repository=repository,
        files=tuple(wanted.files),
        change_setup=setup_step is not None,
        scrape=_scrape(node, request, method, gpus),
        change=bool(steps),
        steps=steps,
        reasons=tuple(f"{one.step}: {one.reason}" for one in steps)
        or (f"The GPUs are monitored by {method}.",),
        warnings=tuple(text for text in (lost, note) if text),
    )


def _method(node: Mapping[str, Any], request: Request) -> str:
    if request.method != AUTO:
        return request.method
    only_nvidia = all(gpu["vendor"] == "nvidia" for gpu in node["gpus"])
    # DCGM does not start where all GPUs are passed through to virtual machines.
    passed = bool(node["gpus"]) and not container_gpus(node)
    image = image_system(node["os"])
    if not only_nvidia or passed or image or node["os"]["package_manager"] not in MANAGERS:
        return TEXTFILE
    try:
        _repository(node, request, {CORE_PACKAGE: None}, None)
    except Refusal:
        return TEXTFILE
    return PACKAGES


def _foreign(node: Mapping[str, Any], request: Request, method: str) -> Finding | None:
    """Return what another exporter is, which is left alone.

    Text files are no second exporter: they are written next to any.
    """
    facts = node["exporter"]
    if method == TEXTFILE and request.method != AUTO:
        return None
    # Also after a run that was killed between the packages and their setup.
    packages = facts["method"] == PACKAGES or facts["packages_managed"]
    # Also one that another method takes the place of.
    ours = {facts["method"], PACKAGES} if packages else {facts["method"]}
    units = dict(facts["foreign_units"])
    if facts["units"].get(EXPORTER_UNIT) and not packages:
        units[EXPORTER_UNIT] = facts["units"].get(EXPORTER_UNIT)
    running = [f"{unit}.service ({state})" for unit, state in units.items()]
    taken = ""
    port = str(request.port)
    listener = facts["listeners"].get(port)
    # Text files need no port: there a listener counts only if it is an exporter by its name.
    counts = listener is not None and (method != TEXTFILE or "exporter" in listener)
    if counts and not any(facts["units"].get(_OWN_UNITS.get(one, "")) for one in ours):
        taken = f"port {port}: {listener or 'a program of the node'}"
    if taken and request.beside_others and method != TEXTFILE:
        raise Refusal(
            f"Port {port} of the node is taken.", "set gpu_monitoring_listen.", evidence=taken
        )
    if request.beside_others or not (running or taken):
        return None
    if not running:
        return Finding(
            "exporter_port_taken",
            f"Port {port} of this node is taken by something else, which is left alone.",
            taken,
            "If it is an exporter of GPU metrics, use its metrics; otherwise set "
            "gpu_monitoring_listen to another port, or gpu_monitoring_method: textfile, which "
            "needs none.",
        )
    return Finding(
        "foreign_exporter",
        "Another exporter of GPU metrics is on this node, and is left alone.",
        "; ".join(filter(None, (*running, taken))),
        "Use its metrics, or remove it; or set gpu_monitoring_method: textfile, which needs no "
        "port, or gpu_monitoring_beside_others: true and another gpu_monitoring_listen.",
    )


def _check(node: Mapping[str, Any], request: Request, method: str) -> None:
    """Check that the node can have the method.

    :raises Refusal: it cannot.
    """
    vendors = {gpu["vendor"] for gpu in node["gpus"]}
    if method in (PACKAGES, CONTAINER):
        if vendors - {"nvidia"}:
            raise Refusal(
                f"DCGM serves NVIDIA's GPUs only; this node has {', '.join(sorted(vendors))}.",
                "set gpu_monitoring_method: textfile for this node.",
            )
        if not request.counters.strip():
            raise InputError(
                "gpu_monitoring_counters is empty.", next_step="Name the counters of DCGM."
            )
    if method == CONTAINER and node["runtimes"]["docker"] is None:
        raise Refusal(
            "gpu_monitoring_method is container, and the node has no Docker.",
            "set gpu_monitoring_method: packages or textfile.",
        )
    if method == TEXTFILE and not textfile_directory(request, node):
        raise Refusal(
            "No folder is known in which node_exporter reads text files.",
            "install node_exporter (Debian: prometheus-node-exporter), or set "
            "gpu_monitoring_textfile_directory to the folder of its option "
            "--collector.textfile.directory.",
        )


def _packages(
    node: Mapping[str, Any], request: Request, method: str
) -> tuple[dict[str, str | None], dict[str, str | None], Step | None]:
    """Return the packages, those that are installed if they are available, and the step."""
    if method != PACKAGES:
        return {}, {}, None
    wanted: dict[str, str | None] = {
        CORE_PACKAGE: f"{request.dcgm}*",
        EXPORTER_PACKAGE: f"{request.exporter}*",
    }
    optional: dict[str, str | None] = (
        {PROPRIETARY_PACKAGE: f"{request.dcgm}*"} if request.profiling else {}
    )
    installed: Mapping[str, str] = node["exporter"]["packages"]
    differs = [
        f"{name} is {installed.get(name, 'not installed')}"
        for name, version in wanted.items()
        if not fits(version, installed.get(name))
    ]
    if not differs:
        return wanted, optional, None
    detail = f"DCGM {request.dcgm}, exporter {request.exporter}"
    action = "change" if EXPORTER_PACKAGE in installed else "install"
    return wanted, optional, Step("monitoring", action, detail, "; ".join(differs))


def _repository(
    node: Mapping[str, Any],
    request: Request,
    packages: Mapping[str, str | None],
    step: Step | None,
) -> tuple[dict[str, Any] | None, Step | None, str]:
    """Return NVIDIA's CUDA repository, if it has to be written: it has DCGM, too."""
    if step is None and not (packages and request.method == AUTO):
        return None, None, ""
    same = CudaRequest(
        manage_repository=request.manage_repository,
        repository_name=request.repository_name,
        repository_url=request.repository_url,
        repository_key_url=request.repository_key_url,
        key_fingerprints=request.key_fingerprints,
        planned_repositories=request.planned_repositories,
    )
    tables = Tables(BUILT_IN, driver_data())
    repository, made, note = plan_repository(node, same, (), packages, tables, _REPOSITORY)
    return (repository, made, note) if step else (None, None, "")


def _setup_step(
    node: Mapping[str, Any], request: Request, method: str, wanted: Setup, gpus: Sequence[str]
) -> Step | None:
    reasons = _differences(node["exporter"], method, wanted, gpus)
    if not reasons:
        return None
    details = {
        PACKAGES: f"exporter on {request.listen}",
        CONTAINER: f"{image(request)} on {request.listen}",
        TEXTFILE: f"text file in {textfile_directory(request, node)}",
    }
    return Step("monitoring", "set up", details[method], "; ".join(_few(reasons)))


def _differences(
    facts: Mapping[str, Any], method: str, wanted: Setup, gpus: Sequence[str]
) -> list[str]:
    """Return why files and units are not as they have to be."""
    if facts["method"] != method:
        return [f"the method was {facts['method']}" if facts["method"] else "it is new"]
    current: Mapping[str, str] = facts["files"]
    reasons = [
        f"{path} {'differs' if path in current else 'is missing'}"
        for path, text in wanted.files.items()
        if current.get(path) != hashlib.sha256(text.encode()).hexdigest()
    ]
    reasons += [f"{path} is of another method" for path in current if path not in wanted.files]
    for unit in wanted.units:
        state = facts["units"].get(unit)
        if state != "active":
            reasons.append(f"{unit} is {state or 'missing'}")
        elif unit not in facts["enabled"]:
            reasons.append(f"{unit} is not enabled")
    if list(gpus) != facts["expected_gpus"]:
        reasons.append(f"{len(gpus)} GPUs are expected, not {len(facts['expected_gpus'])}")
    return reasons


def _few(reasons: Sequence[str]) -> list[str]:
    return [*reasons[:3], *([f"and {len(reasons) - 3} more"] if len(reasons) > 3 else [])]


def _scrape(
    node: Mapping[str, Any], request: Request, method: str, gpus: Sequence[str]
) -> dict[str, Any]:
    """Return what Prometheus reads. The port of node_exporter is not ours."""
    if method == TEXTFILE:
        # The program shows the number of GPUs by itself.
        return {"exporter": "node", "port": None, "scheme": "http", "gpus": 0}
    passed = {gpu["address"] for gpu in passed_through(node)}
    return {
        "exporter": "dcgm",
        "port": request.port,
        "scheme": "https" if request.web_config else "http",
        # DCGM shows none that is passed through to a virtual machine.
        "gpus": len(set(gpus) - passed),
    }
