# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of a node that roles change: what each plan depends on, and who makes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.errors import InputError
from .._core.failure import parts
from .._core.options import read_arguments
from .._cuda import options as cuda_options
from .._cuda.plan import plan_cuda
from .._cuda.types import Plan as CudaPlan
from .._driver import amd_types as amd_driver
from .._driver import options as driver_options
from .._driver.amd_plan import plan_amd_driver
from .._driver.plan.plan import plan_driver
from .._driver.types import Plan as DriverPlan
from .._driver.types import Request as DriverRequest
from .._exporter import options as exporter_options
from .._exporter.plan import plan_exporter
from .._exporter.types import Plan as ExporterPlan
from .._mig import options as mig_options
from .._mig.plan import plan_mig
from .._mig.types import Plan as MigPlan
from .._monitoring.metrics import counters_file, read_counters
from .._toolkit import amd_types as amd_toolkit
from .._toolkit import options as toolkit_options
from .._toolkit.amd_plan import plan_amd_toolkit
from .._toolkit.plan import ToolkitPlan, plan_toolkit
from .types import Node, Part, Plan

# Set by a rollback of gpu_upgrade. Extra variables are stronger than what an include passes, so
# that they have names of their own.
DRIVER_BACK = "__kubegpu_driver_back"
CUDA_BACK = "__kubegpu_cuda_back"
TOOLKIT_BACK = "__kubegpu_toolkit_back"

EXPORTER = "gpu_exporter"
_RESULT = "nvidia_driver_result"


def is_set(node: Node, variable: str, *, default: bool = False) -> bool:
    """Return whether a boolean variable is true.

    :raises InputError: it is no boolean.
    """
    rules = {variable: {"type": "bool", "default": default}}
    return bool(read_arguments(rules, node.variables)[variable])


def _next_driver(node: Node) -> Mapping[str, Any]:
    """Return ``next_driver`` and ``next_repository``: what the driver's part leaves behind.

    Its plan says it if both are planned together. After the role, its result does in check mode,
    and the facts otherwise.
    """
    if "nvidia_driver" in node.together:
        return node.plans["nvidia_driver"]
    return node.variables.get(_RESULT) or {}


def _plan_driver(node: Node, options: dict[str, Any]) -> Plan:
    if is_set(node, DRIVER_BACK):
        options.update(version="previous", branch="auto")
    options.update(controller=node.run.controller, today=node.run.today)
    request, tables = driver_options.read_options(options)
    return _driver_json(node, plan_driver(node.facts, request, tables), request.state)


def _driver_json(node: Node, plan: DriverPlan, state: str) -> Plan:
    reboots = is_set(node, "nvidia_driver_reboot") and plan.reboot["required"]
    left = state == "absent" and bool(_own_repositories(node))
    loaded = node.facts["driver"]["loaded"] or ""
    return {
        **plan.to_json(),
        "work": bool(plan.action == "refuse" or plan.change or reboots or left),
        "next_driver": (plan.version or plan.branch or "") if plan.load or reboots else loaded,
        "next_repository": (plan.repository or {}).get("url") or "",
    }


def _own_repositories(node: Node) -> set[str]:
    """Return our repositories on the node, which a run that died after the removal leaves."""
    name = (node.variables.get("nvidia_driver_repository") or {}).get("name")
    ours = {name or DriverRequest.repository_name, "kubegpu-debian-non-free"}
    files = (str(one["file"]).rpartition("/")[2] for one in node.facts["repositories"])
    return ours & {name.rpartition(".")[0] or name for name in files}


def _refused_driver(error: InputError) -> Plan:
    plan = DriverPlan.refused(error).to_json()
    return {**plan, "work": True, "next_driver": "", "next_repository": ""}


def _plan_mig(node: Node, options: dict[str, Any]) -> Plan:
    options["driver_version"] = _next_driver(node).get("next_driver") or ""
    request = mig_options.read_options(options)
    plan = plan_mig(node.facts, request, cluster=node.run.cluster).to_json()
    reboots = is_set(node, "nvidia_mig_reboot") and plan["reboot_reason"] != ""
    return {**plan, "work": plan["change"] or plan["action"] == "refuse" or reboots}


def _plan_cuda(node: Node, options: dict[str, Any]) -> Plan:
    driver = _next_driver(node)
    back = node.variables.get(CUDA_BACK)
    if back is not None:
        # The source and the runfiles that are asked for are of the new versions. The earlier ones
        # are kept, whoever installed them.
        runfiles = options.get("runfiles") or {}
        kept = {version: one for version, one in runfiles.items() if version in back}
        options.update(versions=back, default="", source="auto", runfiles=kept)
    options["driver_version"] = options.get("driver_version") or driver.get("next_driver") or ""
    repository = driver.get("next_repository")
    options["planned_repositories"] = [repository] if repository else []
    options["controller"] = node.run.controller
    request, tables = cuda_options.read_options(options)
    plan = plan_cuda(node.facts, request, tables).to_json()
    return {**plan, "work": plan["change"] or plan["action"] == "refuse"}


def _plan_toolkit(node: Node, options: dict[str, Any]) -> Plan:
    driver = _next_driver(node).get("next_driver") or ""
    if "nvidia_driver" not in node.together and node.facts["container_toolkit"]["version"]:
        # The driver's role has refreshed, or predicted, the CDI specification of the toolkit.
        driver = ""
    back = node.variables.get(TOOLKIT_BACK)
    options.update({"version": back} if back is not None else {})
    options.update(driver_version=driver, controller=node.run.controller)
    plan = plan_toolkit(node.facts, toolkit_options.read_request(options)).to_json()
    install = (
        plan["repository"] is not None
        or plan["cdi"] is not None
        or bool(plan["change_packages"] or plan["change_config"])
    )
    runtimes = any(plan[name] for name in ("containerd", "docker", "crio"))
    return {**plan, "install": install, "work": plan["action"] == "refuse" or install or runtimes}


def _plan_amd_driver(node: Node, options: dict[str, Any]) -> Plan:
    options["controller"] = node.run.controller
    request = amd_driver.read_amd_driver_request(options)
    return plan_amd_driver(node.facts, request).to_json()


def _plan_amd_toolkit(node: Node, options: dict[str, Any]) -> Plan:
    loads = bool(node.plans.get("amd_driver", {}).get("load"))
    options.update(
        controller=node.run.controller, driver_planned=loads and node.run.driver_selected
    )
    return plan_amd_toolkit(node.facts, amd_toolkit.read_amd_request(options)).to_json()


def _plan_exporter(node: Node, options: dict[str, Any]) -> Plan:
    """Return the plan of the exporter of a host, with its row and what Prometheus reads."""
    profiling = exporter_options.read_options({"profiling": options.get("profiling")}).profiling
    name = f"{exporter_options.PREFIX}counters"
    counters = read_counters(options.get("counters", "default"), profiling, name)
    # What the driver's role will have changed, whose repository has DCGM, too.
    repository = node.plans.get("nvidia_driver", {}).get("next_repository")
    options.update(
        counters=counters_file(counters), planned_repositories=[repository] if repository else []
    )
    plan = plan_exporter(node.facts, exporter_options.read_options(options))
    return _exporter_json(plan, node)


def _exporter_json(plan: ExporterPlan, node: Node | None = None) -> Plan:
    refused, values = plan.action == "refuse", plan.to_json()
    variables, scrape = node.variables if node else {}, plan.scrape or {}
    own = variables.get("gpu_monitoring_node_exporter_port")
    port = own if scrape.get("exporter") == "node" else scrape.get("port")
    address = str(variables.get("gpu_monitoring_address") or "")
    shown = f"[{address}]" if ":" in address else address
    prometheus, hosts = variables.get(_PROMETHEUS) or "", node.run.hosts if node else None
    if prometheus and hosts is not None and prometheus not in hosts:
        values["warnings"].append(_NO_PROMETHEUS.format(prometheus))
    return {
        **values,
        "work": plan.change or refused,
        "changes": ["monitoring: refused"] if refused else values["changes"],
        "why": [step.reason for step in plan.steps] or values["reasons"],
        "target": {
            "host": variables.get("inventory_hostname") or "",
            "targets": [f"{shown}:{port}"] if str(port or 0) != "0" else [],
            "job": "kubegpu-dcgm",
            "scheme": scrape.get("scheme") or "http",
            "gpus": scrape.get("gpus") or 0,
        },
    }


_PROMETHEUS = "gpu_monitoring_prometheus_host"
_NO_PROMETHEUS = (
    f"{_PROMETHEUS} is {{}}, and the inventory of this run has no such host, so that no "
    "Prometheus gets the targets and rules. Next step: add the host to the inventory, or correct "
    "its name."
)


def _refused_exporter(error: InputError) -> Plan:
    return _exporter_json(ExporterPlan.refused(error))


def _refusal(plan: type[MigPlan | CudaPlan | ToolkitPlan], error: InputError) -> Plan:
    refused = plan("refuse", reasons=tuple(str(error).splitlines()), refusals=(parts(error),))
    return {**refused.to_json(), "work": True}


_NOT_ASKED = ("controller", "driver_version")

#: By the role, in the order in which the roles run.
PARTS: Mapping[str, Part] = {
    "nvidia_driver": Part(
        driver_options.ARGUMENTS,
        _plan_driver,
        _refused_driver,
        internal=("controller", "today"),
        switch="nvidia_driver_enabled",
        others=("nvidia_driver_enabled", "nvidia_driver_reboot", DRIVER_BACK),
    ),
    "nvidia_mig": Part(
        mig_options.ARGUMENTS,
        _plan_mig,
        lambda error: _refusal(MigPlan, error),
        internal=_NOT_ASKED,
        others=("nvidia_mig_reboot", _RESULT),
    ),
    "cuda_toolkit": Part(
        cuda_options.ARGUMENTS,
        _plan_cuda,
        lambda error: _refusal(CudaPlan, error),
        internal=("controller", "planned_repositories"),
        others=(CUDA_BACK, _RESULT),
    ),
    "nvidia_container_toolkit": Part(
        toolkit_options.ARGUMENTS,
        _plan_toolkit,
        lambda error: _refusal(ToolkitPlan, error),
        internal=_NOT_ASKED,
        others=(TOOLKIT_BACK, _RESULT),
    ),
    "amd_driver": Part(
        amd_driver.ARGUMENTS,
        _plan_amd_driver,
        lambda error: amd_driver.AmdDriverPlan.refused(error).to_json(),
        internal=("controller",),
        others=("amd_driver_enabled",),
    ),
    "amd_container_toolkit": Part(
        amd_toolkit.ARGUMENTS,
        _plan_amd_toolkit,
        lambda error: amd_toolkit.AmdToolkitPlan.refused(error).to_json(),
        internal=("controller", "driver_planned"),
        others=("amd_container_toolkit_enabled",),
    ),
    # Of a host that is monitored without Kubernetes.
    EXPORTER: Part(
        exporter_options.ARGUMENTS,
        _plan_exporter,
        _refused_exporter,
        internal=("planned_repositories",),
        others=(
            "inventory_hostname",
            "gpu_monitoring_address",
            "gpu_monitoring_node_exporter_port",
            _PROMETHEUS,
        ),
        role="gpu_monitoring",
    ),
}
#: Those of the software that a node has; an exporter is planned by itself.
OF_NODES = tuple(name for name in PARTS if name != EXPORTER)
