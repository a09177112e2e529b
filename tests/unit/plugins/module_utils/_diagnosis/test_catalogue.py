# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each cause of the catalogue, made as it is recorded: it is the only root, and what follows from
it is folded in.

The texts are those of the kernel, of nvidia-smi, of Kubernetes and of the device plugin. Where no
test node can have a state, its record is named: a control group of version 1.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.distributions import (
    DISTRIBUTIONS,
    find_unread_template,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.join import diagnose
from ansible_collections.kubegpu.nodes.plugins.module_utils._diagnosis.types import Host
from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.plan.fabric import (
    IMEX,
    MANAGER,
    Needs,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.driver_trouble import (
    find_driver_trouble,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._health.types import (
    Narrow,
    PciGpu,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import Hang
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.drm_log import (
    kernel_findings,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.evidence_types import (
    DkmsBuild,
    Evidence,
    Gpu,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules import (
    drm_kernel,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._known_faults.rules.tables import (
    FAILURES,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.fabric import Fabric
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.judge import judge_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import Request
from tests.unit.fixtures.cluster_objects import node
from tests.unit.fixtures.diagnosed_node import (
    ADDRESS,
    CLI_FAILS,
    LOADED,
    MARKER,
    NO_NVML,
    P4,
    PCI,
    facts,
    health,
    host,
    off_the_bus,
    offer,
    only_root,
    plugin_pod,
    runtime,
    smi,
    state,
    without_module,
)
from tests.unit.fixtures.diagnosed_node import container as in_container
from tests.unit.fixtures.health_node import FINE, recovery, smi_gpu, xid
from tests.unit.fixtures.kernel_gpus import amd_node
from tests.unit.fixtures.make_tree import write
from tests.unit.fixtures.verified_node import device

MISMATCH = (
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95"
)
BLOCKED = {"nvidia": [{"place": "/etc/modprobe.d/a.conf", "setting": "blacklist nvidia"}]}
NO_DEVICE = "modprobe: ERROR: could not insert 'nvidia': No such device"


def ill(*lines, **more):
    """Return a host on which all works but the health of its GPU."""
    return host(seen=health(*lines, **more))


def values(**changed):
    return ill(answer=smi(smi_gpu(ADDRESS, **changed)))


def nvidia_smi(rc, text):
    """Return a host whose nvidia-smi fails, for facts, verification and health."""
    answer = Result(rc, f"{text}\n", "")
    return host(
        facts(text, nvml=None),
        state(smi=answer, runtimes=(runtime(in_container(CLI_FAILS)),)),
        health(answer=smi(status="failed", rc=rc, text=text)),
        offered=[offer(node(labels=MARKER), plugin_pod(log=NO_NVML), driver=LOADED)],
    )


def hanging():
    hang = Hang("nvidia-smi", 4242, 20.0, "D", "os_acquire_rwlock_write", True)
    error = "nvidia-smi -q -x did not answer in 60 seconds"
    cli = Result(1, "", "nvidia-container-cli: initialization error: driver rpc error: timed out")
    return host(
        facts(error, nvml=None),
        state(smi=Result(124, "", ""), runtimes=(runtime(in_container(cli)),)),
        health(answer=smi(status="hung", rc=None, hang=hang)),
    )


def mismatch():
    upgraded = "580.95.05"
    known = facts(
        MISMATCH, nvml=None, driver__installed=upgraded, driver__userland=upgraded,
        driver__pending_reboot=True, container_toolkit__cdi_spec=None,
    )  # fmt: skip
    return host(
        known,
        state(smi=Result(18, MISMATCH, ""), runtimes=(runtime(in_container(CLI_FAILS)),)),
        health(
            "NVRM: API mismatch: the client 'nvidia-smi' (pid 4242)",
            f"NVRM: has the version {upgraded}, but this kernel module has",
            f"NVRM: the version {LOADED}.  Please make sure that this",
            answer=smi(status="failed", rc=18, text=MISMATCH),
        ),
    )


def fabric(**more):
    return host(what=state(fabric=Fabric(**more)))


def kernels(driver):
    running, newest = "6.1.0-40-amd64", "6.1.0-41-amd64"
    return [
        {"version": running, "running": True, "on_disk": True, "headers": True, "driver": LOADED},
        {"version": newest, "running": False, "on_disk": True, "headers": False, "driver": driver},
    ]


def nvml(*devices):
    return {"driver_version": LOADED, "cuda_version": "12.2", "devices": list(devices)}


MIG = [{"name": "MIG 1g.10gb"}, {"name": "MIG 3g.40gb"}]
MISSING_GPU = {"findings": [], "gpus": [{"address": "0000:00:06.0", "product": "Tesla P4"}]}

UNATTENDED = """
Start-Date: 2001-01-01  06:00:00
Commandline: /usr/bin/unattended-upgrade
Upgrade: nvidia-driver-535:amd64 (535.86.05-0ubuntu1, 535.98-0ubuntu1)
End-Date: 2001-01-01  06:00:09

Start-Date: 2026-11-20  06:31:12
Commandline: apt-get install hunter2
Upgrade: libnvidia-compute-535:amd64 (535.98-0ubuntu1, 535.104.05-0ubuntu1)
End-Date: 2026-11-20  06:31:20

Start-Date: 2026-11-21  06:31:12
Commandline: /usr/bin/unattended-upgrade
Upgrade: libnvidia-compute-535:amd64 (535.104.05-0ubuntu1, 535.129.03-0ubuntu1), vim:amd64 (1, 2)
End-Date: 2026-11-21  06:31:20
"""
TEMPLATE = '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n'


def troubled(files, nvml_error="", what=None, seen=None, **changes):
    """Return a host in whose files the facts find what is wrong with a loaded driver."""
    known = facts(nvml_error, **changes)
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            write(Path(folder), path, text)
        found = find_driver_trouble(NodeReader(folder), known["driver"])
    known["problems"] = [*known["problems"], *(one.as_problem() for one in found)]
    return host(known, what, seen)


def upgraded():
    """Return a host whose libraries are newer than the module: NVML and containers fail."""
    failed = Result(18, f"{MISMATCH}\n", "")
    return troubled(
        {"/proc/stat": "btime 1763600000\n", "/var/log/apt/history.log": UNATTENDED},
        MISMATCH,
        state(smi=failed, runtimes=(runtime(in_container(CLI_FAILS)),)),
        health(answer=smi(status="failed", rc=18, text=MISMATCH)),
        nvml=None,
        driver__installed="535.129.03",
        driver__userland="535.129.03",
        driver__pending_reboot=True,
    )


def other_template():
    known = facts(runtimes__containerd={
        **facts()["runtimes"]["containerd"], "distribution": "k3s", "handlers": {"runc": {}},
    })  # fmt: skip
    (k3s,) = (one for one in DISTRIBUTIONS if one.name == "k3s")
    files = {k3s.templates[2]: TEMPLATE}
    unread = find_unread_template(k3s, files.get, 3, {"runc": {}})
    known["problems"] = [*known["problems"], unread.as_problem()]
    return host(known, state(runtimes=(runtime(listed=False, handlers=("runc",)),)))


NODE = {
    "gpu_fell_off_bus": (off_the_bus, "gpu_lost"),
    "gpu_missing": (lambda: ill(baseline=MISSING_GPU), "gpu_missing"),
    "bar_not_assigned": (
        lambda: without_module(
            Evidence(modprobe=NO_DEVICE),
            health(
                "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:",
                "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:00:05.0)",
                "NVRM: The NVIDIA probe routine failed for 1 device(s).",
                "NVRM: None of the NVIDIA devices were initialized.",
                answer=smi(status="not_asked", rc=None, driver=None),
            ),
        ),
        "bar_not_assigned",
    ),
    "pcie_width": (
        lambda: ill(gpus=(replace(PCI, narrow=(Narrow(ADDRESS, 8, 16),)),)), "pcie_width"
    ),
    "pcie_errors": (
        lambda: ill(gpus=(replace(PCI, values={"aer": {"fatal": 2}}),)), "pcie_errors"
    ),
    "power_cable": (lambda: nvidia_smi(8, ""), "power_cable"),
    "hw_slowdown": (
        lambda: values(clocks_event_reason_hw_power_brake_slowdown="Active"), "hw_slowdown"
    ),
    "ecc_uncorrected": (
        lambda: ill(
            xid(48, "DBE (double bit error) ECC Error", gpu=ADDRESS),
            xid(63, "Row Remapper: New row marked for remapping", gpu=ADDRESS),
            xid(94, "Contained ECC error", gpu=ADDRESS, name="python"),
            answer=smi(smi_gpu(ADDRESS, {**FINE, "ecc_errors/volatile/dram_uncorrectable": "1"},
                               remapped_row_pending="Yes")),
        ),
        "gpu_memory_error",
    ),
    "row_remap_pending": (lambda: values(remapped_row_pending="Yes"), "row_remap_pending"),
    "page_retirement_pending": (
        lambda: values(pending_retirement="Yes"), "page_retirement_pending"
    ),
    "row_remap_failed": (
        lambda: ill(
            xid(64, "Row Remapper: Failed to remap row", gpu=ADDRESS),
            answer=smi(smi_gpu(ADDRESS, remapped_row_failure="Yes")),
        ),
        "row_remap_failed",
    ),
    "sram_threshold": (lambda: values(sram_threshold_exceeded="Yes"), "sram_threshold"),
    "inforom_corrupt": (
        lambda: ill(answer=smi(rc=14, text="WARNING: infoROM is corrupted at gpu 0000:00:05.0")),
        "inforom_corrupt",
    ),
    "nvlink_error": (lambda: ill(xid(74, "NVLink: fatal error", gpu=ADDRESS)), "nvlink_error"),
    "gsp_timeout": (
        lambda: ill(xid(119, "Timeout waiting for RPC from GSP!", gpu=ADDRESS)), "gsp_timeout"
    ),
    "reset_required": (lambda: values(gpu_recovery_action="Reset"), "recovery_action"),
    "reboot_required": (
        lambda: ill(recovery("Node Reboot Required", ADDRESS)), "recovery_action"
    ),
    "driver_hangs": (hanging, "driver_hangs"),
    # Driver and system.
    "no_driver": (
        lambda: without_module(Evidence(), driver="nouveau", driver__installed=None,
                               nouveau={"loaded": True, "blocked": False, "modules": ["nouveau"]}),
        "driver_missing",
    ),
    "nouveau_loaded": (
        lambda: without_module(
            Evidence(nouveau_loaded=True, modprobe=NO_DEVICE), driver="nouveau",
            nouveau={"loaded": True, "blocked": False, "modules": ["nouveau"]},
        ),
        "nouveau_loaded",
    ),
    "module_blocked": (
        lambda: without_module(Evidence(blocked=BLOCKED), blocked_modules=BLOCKED),
        "module_blocked",
    ),
    "module_blocked, of AMD": (
        lambda: Host("gpu1", amd_blocked(), host(amd_blocked()).layers, None), "module_blocked"
    ),
    "secure_boot": (
        lambda: without_module(Evidence(
            secure_boot=True,
            modprobe="modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        )),
        "secure_boot",
    ),
    "kernel_headers_missing": (
        lambda: without_module(Evidence(
            kernel="6.8.0-117-generic", os_id="ubuntu", headers=False,
            modprobe="modprobe: FATAL: Module nvidia not found in directory "
            "/lib/modules/6.8.0-117-generic",
            dkms=(DkmsBuild("580.95.05", "6.8.0-100-generic", "installed"),),
        )),
        "kernel_headers_missing",
    ),
    "dkms_build_failed": (
        lambda: without_module(
            Evidence(kernel="6.1.0-40-amd64", headers=True, modprobe=NO_DEVICE,
                     dkms=(DkmsBuild(LOADED, "6.1.0-40-amd64", "failed"),)),
            driver__dkms=[{"kernel": "6.1.0-40-amd64", "version": LOADED, "state": "failed"}],
        ),
        "dkms_build_failed",
    ),
    "wrong_kernel_modules": (
        lambda: without_module(Evidence(
            gpus=(Gpu("0000:02:00.0", "B200", "blackwell", False),), kernel_module="proprietary",
            dmesg=(
                "NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2901)",
                "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
            ),
        )),
        "wrong_kernel_modules",
    ),
    "gpu_unsupported": (
        lambda: without_module(Evidence(
            gpus=(Gpu("0000:06:00.0", "Tesla K80", "kepler", False),), wanted="550.54.15",
            dmesg=(
                "NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:102d)",
                "NVRM: installed in this system is not supported by the NVIDIA 550.54.15 driver "
                "release.",
            ),
        )),
        "gpu_unsupported",
    ),
    "vgpu_guest": (
        lambda: without_module(
            Evidence(gpus=(Gpu("0000:00:05.0", "A10", "ampere", True, "535.129.03", "r535_00"),),
                     grid=False, modprobe=NO_DEVICE),
        ),
        "vgpu_guest_without_grid_driver",
    ),
    "grid_driver_on_whole_gpu": (
        lambda: without_module(
            Evidence(gpus=(Gpu("0000:00:05.0", "A10", "ampere", False),), grid=True)
        ),
        "grid_driver_on_whole_gpu",
    ),
    "driver_in_use, as rmmod says it": (
        lambda: without_module(Evidence(modprobe="rmmod: ERROR: Module nvidia is in use")),
        "driver_in_use",
    ),
    "driver_library_mismatch": (mismatch, "driver_library_mismatch"),
    "module_missing": (
        lambda: without_module(Evidence(
            kernel="6.1.0-40-amd64", headers=True,
            modprobe="modprobe: FATAL: Module nvidia not found in directory "
            "/lib/modules/6.1.0-40-amd64",
        )),
        "module_missing",
    ),
    "module_for_other_kernel": (
        lambda: without_module(Evidence(
            kernel="6.8.0-117-generic", headers=True,
            modprobe="modprobe: ERROR: could not insert 'nvidia': Invalid module format",
        )),
        "module_for_other_kernel",
    ),
    "gpu_bound_to_other_driver": (
        lambda: without_module(Evidence(modprobe=NO_DEVICE, dmesg=(
            "NVRM: GPU 0000:00:05.0 is already bound to vfio-pci.",
            "NVRM: The NVIDIA probe routine was not called for 1 device(s).",
        )), driver="vfio-pci"),
        "gpu_bound_to_other_driver",
    ),
    "no_module_for_next_kernel": (
        lambda: host(facts(kernels=kernels(None))), "no_module_for_next_kernel"
    ),
    "upgraded_unattended": (upgraded, "upgraded_unattended"),
    "device_nodes_missing": (
        lambda: troubled(
            {"/proc/driver/nvidia/gpus/0000:00:05.0/information": "Device Minor: \t 0\n",
             "/dev/nvidiactl": ""},
            "Failed to initialize NVML: Insufficient Permissions",
            state(smi=Result(4, "Failed to initialize NVML: Insufficient Permissions\n", "")),
            health(answer=smi(status="failed", rc=4,
                              text="Failed to initialize NVML: Insufficient Permissions")),
            nvml=None,
        ),
        "device_nodes_missing",
    ),
    "gsp_firmware_missing": (
        lambda: ill("NVRM: GPU 0000:00:05.0: Cannot initialize GSP firmware RM",
                    answer=smi(status="failed", rc=6, text="No devices were found")),
        "gsp_firmware_failed",
    ),
    "fabric_manager_down": (
        lambda: fabric(unit="inactive", needs=Needs((MANAGER,), "4 NVSwitches")),
        "fabric_manager_not_running",
    ),
    "fabric_manager_version": (
        lambda: fabric(
            unit="failed", needs=Needs((MANAGER,), "4 NVSwitches"),
            journal="fabric manager NVIDIA GPU driver interface version 550.127.05 don't match "
            "with driver version 550.120. Please update with matching NVIDIA driver package.",
        ),
        "fabric_manager_version",
    ),
    "imex_not_ready": (
        lambda: host(
            facts(driver__services={"nvidia-imex": "failed"}),
            state(fabric=Fabric(needs=Needs((IMEX,), "GB200"))),
        ),
        "imex_failed",
    ),
    "mig_pending": (lambda: values(pending_mig="Enabled"), "mig_pending"),
    "mig_without_instances": (
        lambda: host(facts(nvml=nvml(device(mig_mode="enabled", mig_devices=[])))),
        "mig_without_instances",
    ),
    "ecc_pending": (lambda: values(pending_ecc="Disabled"), "ecc_pending"),
    "persistence_off": (
        lambda: host(facts(nvml=nvml(device(persistence_mode="disabled")))), "persistence_off"
    ),
    "compute_mode": (
        lambda: host(facts(nvml=nvml(device(compute_mode="prohibited")))), "compute_mode"
    ),
    "mixed_mig_driver_bug": (
        lambda: host(facts(
            driver__loaded="570.133.20", driver__installed="570.133.20",
            driver__userland="570.133.20",
            container_toolkit__cdi_spec={"path": "/etc/cdi/nvidia.yaml",
                                         "driver_version": "570.133.20"},
            nvml=nvml(device(mig_mode="enabled", mig_devices=MIG)),
        )),
        "mixed_mig_driver_bug",
    ),
    # Containers.
    "k3s_template_other_version": (other_template, "k3s_template_other_version"),
    "toolkit_missing": (
        lambda: host(
            facts(container_toolkit__version=None, container_toolkit__cdi_spec=None),
            state(runtime=None, config_exists=False,
                  runtimes=(runtime(listed=False, handlers=("runc",)),)),
            offered=[offer(node(labels=MARKER), plugin_pod(log=NO_NVML), driver=LOADED,
                           default_runtime="nvidia")],
        ),
        "toolkit_missing",
    ),
    "handler_missing": (
        lambda: host(what=state(runtimes=(runtime(listed=False, handlers=("runc",)),)),
                     offered=[offer(node(labels=MARKER), plugin_pod(status={
                         "phase": "Pending"}, events=[{
                             "reason": "FailedCreatePodSandBox", "type": "Warning",
                             "message": 'no runtime for "nvidia" is configured'}]))]),
        "handler_missing",
    ),
    "runtime_lost": (
        lambda: host(what=state(runtimes=(runtime(
            listed=False, handlers=("runc",), recorded=("/etc/containerd/config.toml",)),))),
        "runtime_lost",
    ),
    "cdi_stale": (
        lambda: host(facts(container_toolkit__cdi_spec={
            "path": "/etc/cdi/nvidia.yaml", "driver_version": "535.54.03"})),
        "cdi_stale",
    ),
    "containerd_not_restarted": (
        lambda: host(what=state(runtimes=(runtime(fault=Finding(
            "restart_required",
            "/etc/containerd/config.toml was changed after the running containerd started: the "
            "handlers in the file are not in effect.", "nvidia is in the file",
            "systemctl restart containerd.")),))),
        "restart_required",
    ),
    "container_devices_denied": (
        lambda: host(what=state(runtimes=(runtime(in_container(
            Result(255, "Failed to initialize NVML: Unknown Error\n", ""))),))),
        "container_devices_denied",
    ),
    "amd_driver_absent": (
        lambda: Host("gpu1", amd_without_driver(), amd_layers(), None), "drm_driver_not_loaded"
    ),
}  # fmt: skip


def amd_without_driver():
    known = amd_node(kernel_drivers={}, device_nodes=[])
    for gpu in known["gpus"]:
        gpu["kernel_driver"] = None
    return known


def amd_blocked():
    return {**amd_without_driver(), "blocked_modules": {"amdgpu": BLOCKED["nvidia"]}}


def amd_layers():
    return host(amd_without_driver()).layers


WORDS = {row.code: row.example for row in FAILURES}


def said_in_a_container(words):
    return host(what=state(runtimes=(runtime(in_container(Result(1, "", words))),)))


def runtime_with(code):
    """Return a host whose runtime the verification has found at fault."""
    found = Finding(code, "The runtime does not serve.", "no answer", "Check its journal.")
    return host(what=state(runtimes=(runtime(fault=found),)))


def said_by_drm(words):
    """Return a host with two AMD GPUs, of which the kernel says something."""
    known = amd_node()
    lines = re.sub(r"\b0{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\b", known["gpus"][0]["address"], words)
    found = kernel_findings(lines.splitlines())
    known["problems"] = [*known["problems"], *(one.as_problem() for one in found)]
    return Host("gpu1", known, host(known).layers, None)


# What the programs of others say, in the words of the known errors.
NODE.update(
    {
        code: (partial(said_in_a_container, WORDS[code]), code)
        for code in (
            "container_cli_missing",
            "hook_missing",
            "runtime_missing",
            "driver_libraries_missing",
            "docker_no_gpu_driver",
            "hook_called_directly",
            "cdi_device_unknown",
            "ldconfig_failed",
            "cgroup_rootless",
            "cgroup_rules",
            "wrong_architecture",
            "module_not_loaded",
        )
    }
)
NODE.update({row.code: (partial(said_by_drm, row.example), row.code) for row in drm_kernel.DRM})
NODE.update(
    {
        code: (partial(runtime_with, code), code)
        for code in ("docker_not_running", "cri_missing", "cri_not_ready")
    }
)
NODE["disk_full"] = (
    lambda: without_module(Evidence(output="cp: error writing 'x': No space left on device")),
    "disk_full",
)
NODE["driver_oops"] = (
    lambda: ill("RIP: 0010:nvidia_vma_access+0x2f/0x2f0 [nvidia]"),
    "driver_oops",
)
NODE["driver_message"] = (
    lambda: ill(
        "NVRM: GPU 0000:00:05.0: RmInitAdapter failed!",
        answer=smi(status="failed", rc=6, text="No devices were found"),
    ),
    "driver_message",
)


def asked_of_the_module(**request):
    layers = judge_node(facts(), state(), Request(**request))
    return replace(host(), layers=[one.entry("gpu1") for one in layers])


NODE["gpu_count, asked of the module"] = (partial(asked_of_the_module, gpus=8), "gpu_count")
NODE["other_driver, asked of the module"] = (
    partial(asked_of_the_module, driver="580.65.06"),
    "other_driver",
)
NO_SMI = Result(127, "", "nvidia-smi: executable file not found in $PATH: unknown")
NODE["nothing_injected"] = (
    lambda: host(what=state(runtimes=(runtime(replace(in_container(NO_SMI), bare=True)),))),
    "nothing_injected",
)
NODE["fabric_nothing_to_do"] = (
    lambda: fabric(
        unit="failed",
        needs=Needs((MANAGER,), "8 GPUs of an HGX B200"),
        journal=WORDS["fabric_nothing_to_do"],
    ),
    "fabric_nothing_to_do",
)
NODE["container_failed"] = (partial(said_in_a_container, "something new"), "container_failed")


@pytest.mark.parametrize("name", NODE)
def test_each_cause_of_a_node_is_the_only_root(name):
    made, code = NODE[name]
    one = only_root(diagnose([made()]))
    print(f"{name}: {json.dumps(one, indent=1)}")
    assert (one["id"], one["host"], one["pod"]) == (code, "gpu1", ""), one


@pytest.mark.parametrize(
    ("made", "folded"),
    [
        (off_the_bus, {"container_cli"}),
        (hanging, {"driver_not_answering"}),
        (NODE["nouveau_loaded"][0], {"gpu_not_bound", "driver_not_loaded",
                                     "plugin_without_driver"}),
        (NODE["no_driver"][0], {"nouveau_loaded", "gpu_not_bound", "plugin_without_driver"}),
        (NODE["toolkit_missing"][0], {"handler_missing"}),
        (upgraded, {"driver_library_mismatch"}),
        (other_template, {"handler_missing"}),
        (NODE["ecc_uncorrected"][0], {"row_remap_pending"}),
    ],
)  # fmt: skip
def test_what_follows_is_folded_in(made, folded):
    one = only_root(diagnose([made()]))
    assert folded <= set(one["follows"]), one["follows"]


def test_a_node_on_which_all_works_has_no_finding():
    result = diagnose([host(offered=[], node="n1")], asked=True)
    assert (result["ok"], result["findings"], result["unseen"]) == (True, [], [])
    assert result["hosts"]["gpu1"]["verdict"] == "ok"


def test_gpus_of_one_node_are_told_apart():
    other = PciGpu("0000:af:00.0", "nvidia", "A100", "nvidia")
    seen = health(
        xid(79, "GPU has fallen off the bus.", gpu=ADDRESS),
        xid(31, gpu="0000:af:00.0", name="python"), gpus=(PCI, other),
        answer=smi(smi_gpu(ADDRESS, gpu_recovery_action="Reboot"),
                   smi_gpu("0000:af:00.0", remapped_row_failure="Yes")),
    )  # fmt: skip
    known = facts(gpus=[{**P4, "kernel_driver": "nvidia"}])
    found = diagnose([host(known, seen=seen)])["findings"]
    errors = [(one["id"], one["gpu"]) for one in found if one["severity"] == "error"]
    assert errors == [("gpu_lost", ADDRESS), ("row_remap_failed", "0000:af:00.0")]
