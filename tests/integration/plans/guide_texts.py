# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outputs in the guides of machines that need a node: made by the code that makes them there.

What a node would show is given; judgement, texts and tables are those of the collection.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.action.fleet_variables import _NEXT_STEP
from ansible_collections.kubegpu.nodes.plugins.filter.gpu_plan import gpu_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._distro.kernel_packages import (
    without_dkms,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.types import (
    Request as DriverRequest,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._hardware.vgpu_licence import (
    read_licence,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance import plan as hosts
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.slurm import (
    not_registered,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host_maintenance.types import (
    Decision,
    Request,
    SlurmNode,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.blocked import (
    module_blocked,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.explain import (
    explain,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.licence import (
    licence_fault,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.predicates import (
    partial,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance import plan as pods_plan
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance import (
    record as pods_record,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance import result as pods
from ansible_collections.kubegpu.nodes.plugins.module_utils._maintenance import types as pods_types
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.record import Record as MigRecord
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.restore import plan_restore
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.state import Usage
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import Pods
from ansible_collections.kubegpu.nodes.plugins.module_utils._mig.types import Request as MigRequest
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.fabric import (
    Fabric,
    fabric_fault,
    needs,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import judge_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import State
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import Column, paragraph
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._variables import unknown
from tests.integration.plans.guides import WIDTH, message, table, verified
from tests.unit.fixtures.driver_cases import facts as driver_facts
from tests.unit.fixtures.kernel_gpus import amd_node, intel_node
from tests.unit.fixtures.node_facts import node as node_facts
from tests.unit.fixtures.verified_node import ONE_GPU, container, runtime, state, working

NODE_LAYERS = ("pci", "module", "nvml", "toolkit", "runtime")
DOCKER = {
    "name": "docker", "handlers": ("io.containerd.runc.v2", "nvidia", "runc"),
    "source": "docker info",
}  # fmt: skip
COLUMNS = (Column("node", "Node"), Column("changes", "Change", True), Column("why", "Why", True))


def _docker(said: Result = ONE_GPU) -> State:
    return state(runtimes=(runtime(container(said, method="docker run --gpus all"), **DOCKER),))


def _explained(text: str, driver: str | None = None) -> str:
    return message(explain(text, partial(driver))[0])


def docker_verified() -> str:
    return verified({"gpu1.example.com": judge_node(working(), _docker())}, NODE_LAYERS)


def docker_not_restarted() -> str:
    return _explained(
        'docker: Error response from daemon: could not select device driver "" with capabilities: '
        "[[gpu]]."
    )


def docker_image_newer() -> str:
    return _explained(
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.1, please update "
        "your driver to a newer version",
        driver="580.126.09",
    )


def mismatch() -> str:
    return _explained(
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.126"
    )


def verified_again() -> str:
    return verified({"gpu1": judge_node(working(), _docker())}, NODE_LAYERS)


def not_reloaded() -> str:
    facts = _with_driver("580.126.09", driver__userland="580.95.05")
    return verified({"gpu1": judge_node(facts, _docker())}, NODE_LAYERS)


def secure_boot() -> str:
    return _explained("modprobe: ERROR: could not insert 'nvidia': Required key not available")


def _with_driver(version: str, **changes: Any) -> dict[str, Any]:
    return working(
        driver__loaded=version, driver__installed=version,
        container_toolkit__cdi_spec={"path": "/var/run/cdi/nvidia.yaml", "driver_version": version},
        **{"driver__userland": version, "nvml__driver_version": version, **changes},
    )  # fmt: skip


def _guest(status: str) -> dict[str, Any]:
    facts = _with_driver("535.129.03")
    (gpu,) = facts["gpus"]
    licence = read_licence("VGPU", "NVIDIA Virtual Compute Server", status)
    gpu["vgpu"] = {**gpu["vgpu"], "guest": True, "licence": licence}
    return facts


def licence_proof() -> str:
    facts = _guest("Licensed (Expiry: 2026-12-5 16:1:44 GMT)")
    (nvml,) = (one for one in judge_node(facts, _docker()) if one.layer == "nvml")
    return f"nvml: {nvml.proof}"


def unlicensed() -> str:
    facts = _guest("Unlicensed (Restricted)")
    return verified({"vm1": judge_node(facts, _docker())}, NODE_LAYERS)


def expired() -> str:
    (gpu,) = _guest("Licensed (Expiry: 2026-12-5 16:1:44 GMT)")["gpus"]
    found = licence_fault(gpu["address"], gpu["vgpu"]["licence"], 1796860800.0)
    return message(_found(found))


def _found(finding: Finding | None) -> Finding:
    if finding is None:
        raise ValueError("nothing is wrong")
    return finding


def wrong_driver() -> str:
    return _explained(
        "NVRM: Xid (PCI:0000:00:07): 78, pid='<unknown>', name=<unknown>, Guest driver is "
        "incompatible with host driver"
    )


def no_dkms() -> str:
    return paragraph(without_dkms("rocky"), WIDTH)


def amd_verified() -> str:
    judged = {"mi300-1": amd_node(), "flex-1": intel_node("i915")}
    layers = ("pci", "module", "devices", *NODE_LAYERS[2:])
    shown = {"h100-1": judge_node(working(), _docker())}
    return verified(
        {**shown, **{name: judge_node(facts, None) for name, facts in judged.items()}}, layers
    )


def amd_blocked() -> str:
    place = "/etc/modprobe.d/blacklist-amdgpu.conf"
    block = {"module": "amdgpu", "place": place, "setting": "blacklist amdgpu"}
    return message(module_blocked("amd", [block], "amdgpu"))


def pods_waiting() -> str:
    waiting = [
        {"name": "train-0", "owner": "Job/train", "why": pods.WAITS, "code": ""},
        {"name": "web-5d8f6-x2k9p", "owner": "ReplicaSet/web", "why": "", "code": "pdb_blocks"},
    ]
    waiting = [{"namespace": "ml", "deletion": "", **one} for one in waiting]
    return "\n".join(pods.progress({"gpu3": {"waiting": waiting, "ok": True}}))


def jobs_waiting() -> str:
    return "\n".join(hosts.progress(REQUEST, JOBS))


def jobs_left() -> str:
    return message(hosts.left_over(REQUEST, JOBS))


REQUEST = Request("node1", "drained", "gpu-upgrade", timeout=87300)
JOBS = Decision(waiting=({"namespace": "slurm", "name": "job 4711"},))


def unknown_variable() -> str:
    (found,) = unknown({"gpu1": ["nvidia_driver_kernel_modules"]}, ["nvidia_driver_kernel_module"])
    return paragraph(f"{found} {_NEXT_STEP}", WIDTH)


def _record(text: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "state.json")
        path.write_text(text, encoding="utf-8")
        try:
            StateStore(str(path))
        except KubegpuError as error:
            return paragraph(str(error).replace(name, "/var/lib/kubegpu"), WIDTH)
    raise ValueError("the record was read")


def newer_record() -> str:
    return _record('{"format": 2, "files": {}, "values": {}}')


def damaged_record() -> str:
    return _record('{"format": 1, "files": {')


def _h100(*states: str, **packages: str) -> tuple[dict[str, Any], Fabric]:
    facts = driver_facts("+".join(["H100"] * 8), "u24", "distro 580.178.04 open held ours")
    devices = [
        {"address": gpu["address"], "uuid": f"GPU-{number}"}
        for number, gpu in enumerate(facts["gpus"])
    ]
    facts["nvml"] = {"driver_version": "580.178.04", "cuda_version": "13.0", "devices": devices}
    facts["nvswitches"] = 4
    facts["driver"]["packages"].update(
        {name.replace("_", "-"): text for name, text in packages.items()}
    )
    for gpu in facts["gpus"]:
        gpu["kernel_driver"] = "nvidia"
    joined = [(one, "success" if one == "completed" else None) for one in states]
    unit = "failed" if packages else "active"
    facts["driver"]["services"]["nvidia-fabricmanager"] = unit
    return facts, Fabric(tuple(joined), unit, waited=60, needs=needs(facts, DriverRequest()))


def fabric_proof() -> str:
    facts, fabric = _h100(*["completed"] * 8)
    (nvml,) = (one for one in judge_node(facts, State(fabric=fabric)) if one.layer == "nvml")
    return f"nvml: {nvml.proof}"


def fabric_not_ready() -> str:
    facts, fabric = _h100(*["completed"] * 7, "in_progress")
    return message(_found(fabric_fault(facts, fabric)))


def fabric_versions() -> str:
    facts, fabric = _h100(*["in_progress"] * 8, nvidia_fabricmanager_580="580.95.05-1")
    return message(_found(fabric_fault(facts, fabric)))


def invalid_registration() -> str:
    reason = "gres/gpu count reported lower than configured (6 < 8)"
    flags = frozenset({"DRAIN", "INVALID_REG"})
    return message(not_registered(SlurmNode("node1", "IDLE", flags=flags, reason=reason)))


def held() -> str:
    record = (
        '{"run": "gpu-upgrade", "reason": "", "since": "2026-11-28T09:12:44Z", '
        '"was_unschedulable": false, "paused": false, "kept_before": ""}'
    )
    node = pods_types.Node("gpu3", "1", unschedulable=True, ready=True, record=record)
    request = pods_types.Request((), "drained", "gpu3-out")
    return message(_found(pods_record.find_obstacle(node, request)))


def _kept(**pod: Any) -> str:
    request = pods_types.Request((), "drained", "gpu3-out")
    one = pods_types.Pod("ml", pod.pop("name"), "u", "gpu3", phase="Running", gpus=1, **pod)
    decision = pods_plan.classify(one, request, pods_types.DaemonSets(frozenset(), frozenset()))
    return message(decision.findings[0])


def unmanaged() -> str:
    return _kept(name="notebook")


def local_data() -> str:
    owner = {"owner_kind": "ReplicaSet", "owner_name": "web"}
    return _kept(name="web-5d8f6-x2k9p", on_disk=("scratch",), **owner)


def mig_hidden() -> str:
    node = {
        "nvml": None,
        "gpus": [{"vendor": "nvidia", "address": "0000:07:00.0", "kernel_driver": None}],
        "mig": {"waiting": {}},
    }
    record = MigRecord(found={"GPU-0": []}, addresses={"GPU-0": "0000:07:00.0"})
    plan = plan_restore(node, record, MigRequest(), Usage(), Pods())
    return "\n".join(paragraph(text, WIDTH) for text in plan.reasons)


FOLDER = "/var/lib/prometheus/node-exporter"


def _exporter(name: str, method: str = "auto", **exporter: Any) -> dict[str, Any]:
    """Return the row of a host."""
    facts = node_facts()
    facts["exporter"].update({"textfile_directories": [FOLDER], **exporter})
    part = "gpu_exporter"
    return {**gpu_plan(facts, {"gpu_monitoring_method": method}, [part])[part], "node": name}


def _exporters(*rows: dict[str, Any]) -> str:
    return table("Monitoring of hosts", COLUMNS, rows, "warnings")


def exporters() -> str:
    return _exporters(_exporter("server1"), _exporter("workstation1", "textfile"))


def exporter_port() -> str:
    listeners = {"9400": "dcgm-exporter (pid 812)"}
    return _exporters(_exporter("server1", listeners=listeners))


def exporter_folder() -> str:
    return _exporters(_exporter("workstation1", "textfile", textfile_directories=[]))


def exporter_lost() -> str:
    gone = ["0000:00:05.0", "0000:3a:00.0"]
    return _exporters(_exporter("workstation1", "textfile", expected_gpus=gone))
