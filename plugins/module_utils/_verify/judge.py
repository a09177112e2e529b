# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a GPU node layer by layer, from its facts and the state collected from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._core.redact import redact
from .._host.command import TIMED_OUT, Result
from .._known_faults.common import driver_hangs, unlicensed_guest
from .._known_faults.explain import explain, explain_one
from .._toolkit.settings import faults, release_of
from .evidence import (
    LISTED_GPU,
    count_of,
    failed,
    from_finding,
    own_gpus,
    shorten,
    untried,
    works,
)
from .fabric import describe, fabric_fault
from .judge_in_kernel import judge_in_kernel
from .judge_runtime import judge_runtimes
from .types import MODULE, NODE_LAYERS, NVML, PCI, TOOLKIT, LayerResult, Request, State

_CDI_DEVICE = re.compile(r"^nvidia\.com/gpu=(\S+)", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def judge_node(
    node: Mapping[str, Any], state: State | None = None, request: Request | None = None
) -> list[LayerResult]:
    """Return the results of the requested layers, in their order.

    The layer ``runtime`` has one result for each container runtime.

    :param node: the facts ``gpu_node``, read after all changes.
    :param state: None if nothing was collected, as on a node without a GPU.
    """
    state, request = state or State(), request or Request()
    gpus = own_gpus(node)
    others = judge_in_kernel(node, request)
    if not gpus and others:
        return [result for result in others if _in(request, result.layer)]
    if not gpus and not request.gpus:
        cause = "No GPU is on this node's PCI bus: there is nothing to verify."
        return [untried(layer, "no_gpu", cause) for layer in NODE_LAYERS if _in(request, layer)]
    found = [_pci(gpus, request)]
    module = _module(node, gpus, state, request)
    found.append(module)
    nvml = _nvml(node, gpus, state, module)
    found.append(nvml)
    toolkit = _toolkit(node, state, request, nvml)
    found.append(toolkit)
    driver_ok = module.ok is not False and nvml.ok is not False
    found.extend(judge_runtimes(node, state, request, driver_ok, toolkit))
    return [result for result in (*found, *others) if _in(request, result.layer)]


def any_failed(results: Iterable[LayerResult]) -> bool:
    return any(one.ok is False for one in results)


def _pci(gpus: Sequence[Mapping[str, Any]], request: Request) -> LayerResult:
    count = len(gpus)
    if request.gpus is not None and count != request.gpus:
        return failed(
            PCI,
            "gpu_count",
            f"{count_of(count, 'NVIDIA GPU')} on the PCI bus, and {request.gpus} should be there.",
            _addresses(gpus) or "no NVIDIA function on the bus",
            "Check that all cards are seated and powered, and check dmesg | grep -i -e pciehp "
            "-e 'fallen off'; or correct the expected number.",
        )
    others: dict[str | None, list[Mapping[str, Any]]] = {}
    for gpu in gpus:
        if gpu["kernel_driver"] != "nvidia":
            others.setdefault(gpu["kernel_driver"], []).append(gpu)
    for driver, bound in others.items():
        return _unbound(driver, bound)
    return works(PCI, f"{count_of(count, 'GPU')} bound to the driver nvidia")


def _unbound(driver: str | None, gpus: Sequence[Mapping[str, Any]]) -> LayerResult:
    names = ", ".join(f"{gpu['product'] or gpu['device_id']} at {gpu['address']}" for gpu in gpus)
    are = "is" if len(gpus) == 1 else "are"
    if driver is None:
        cause = f"{names} {are} bound to no driver."
        step = "The layer module says why NVIDIA's driver does not serve it."
    elif driver == "vfio-pci":
        cause = f"{names} {are} bound to vfio-pci: reserved for virtual machines."
        step = (
            "Leave this node out of the GPU nodes, or take the card back: remove it from "
            "vfio-pci.ids (kernel command line, modprobe.d) and reboot."
        )
    else:
        cause = f"{names} {are} bound to {driver}, not to NVIDIA's driver."
        step = f"Block {driver} (blacklist {driver} in /etc/modprobe.d), rebuild the initramfs, "
        step += "reboot; the role nvidia_driver does it."
    evidence = f"/sys/bus/pci/devices/{gpus[0]['address']}/driver is {driver or 'missing'}"
    return failed(PCI, "gpu_not_bound", cause, evidence, step)


def _module(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], state: State, request: Request
) -> LayerResult:
    driver = node["driver"]
    loaded, installed, userland = driver["loaded"], driver["installed"], driver["userland"]
    if not loaded:
        if state.diagnosis is not None:
            return from_finding(MODULE, state.diagnosis)
        there = f"Driver {installed} is installed, but its" if installed else "NVIDIA's"
        step = "Run kubegpu.nodes.site for this node: role nvidia_driver "
        step += "loads it, or says why it cannot." if installed else "installs and loads it."
        return failed(
            MODULE,
            "driver_not_loaded",
            f"{there} kernel module is not loaded.",
            "/proc/driver/nvidia/version does not exist",
            step,
        )
    if installed and installed != loaded:
        return failed(
            MODULE,
            "pending_reboot",
            f"Driver {installed} is installed, but {loaded} is still loaded.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Reboot the node, or reload the module while no program uses a GPU.",
        )
    if userland and userland != loaded:
        mismatch = explain("Driver/library version mismatch", node)[0]
        return failed(
            MODULE,
            mismatch.code,
            mismatch.cause,
            f"module {loaded}, libraries {userland}",
            mismatch.next_step,
        )
    if request.driver and request.driver != loaded:
        return failed(
            MODULE,
            "other_driver",
            f"Driver {loaded} is loaded, and {request.driver} is expected.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Run kubegpu.nodes.site for this node, or correct the expected version.",
        )
    kind = f", {driver['kernel_module']} modules" if driver["kernel_module"] else ""
    return works(MODULE, f"{loaded} is loaded{kind}")


def _nvml(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], state: State, module: LayerResult
) -> LayerResult:
    nvml = node["nvml"]
    # It can hang after it has answered.
    if node.get("driver_hang") and node["driver"]["loaded"]:
        return from_finding(NVML, driver_hangs(node["driver_hang"]))
    if nvml is None:
        if not node["driver"]["loaded"]:
            return _waits(NVML, module)
        return _no_nvml(node, gpus, state)
    devices = nvml["devices"]
    if len(devices) != len(gpus):
        known = {device["address"] for device in devices}
        missing = [gpu for gpu in gpus if gpu["address"] not in known]
        lost = f"; missing: {_addresses(missing)}" if missing and None not in known else ""
        return failed(
            NVML,
            "gpu_missing_in_nvml",
            f"The driver counts {count_of(len(devices), 'GPU')}, and the PCI bus has {len(gpus)}.",
            f"NVML lists {', '.join(str(device['uuid']) for device in devices) or 'none'}{lost}",
            "Check dmesg | grep -i -e NVRM -e Xid for the GPU that is missing: one that fell off "
            "the bus comes back by powering the node off and on.",
            names=_gpus(missing if lost else ()),
        )
    fabric = fabric_fault(node, state.fabric)
    if fabric is not None:
        return from_finding(NVML, fabric)
    licence = unlicensed_guest(gpus)
    if licence is not None:
        return from_finding(NVML, licence)
    cuda = f", CUDA {nvml['cuda_version']}" if nvml["cuda_version"] else ""
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi"
    return works(
        NVML,
        f"{how} lists {count_of(len(devices), 'GPU')}, driver {nvml['driver_version']}{cuda}"
        f"{describe(state.fabric)}{_licences(gpus)}",
    )


def _licences(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the licences of virtual GPUs, to append to the proof of the layer."""
    found = (gpu["vgpu"].get("licence") for gpu in gpus)
    states = dict.fromkeys(one["status"] for one in found if one)
    return "".join(f", licence status: {one}" for one in states)


def _no_nvml(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], state: State
) -> LayerResult:
    smi = state.smi
    if smi is None or smi.rc == 127:
        return failed(
            NVML,
            "nvidia_smi_missing",
            "The driver cannot be queried: this node has neither nvidia-smi nor the Python library "
            "pynvml.",
            smi.last_output() if smi else "",
            "Install the driver's utilities (nvidia-utils-<branch>, nvidia-smi); the role "
            "nvidia_driver does it.",
        )
    if smi.ok and LISTED_GPU.search(smi.stdout):
        return _half_answer(node, smi)
    output = redact(smi.stdout.strip() or smi.stderr.strip())
    if smi.rc == TIMED_OUT:
        output = f"nvidia-smi did not answer in time. {output}".strip()
    otherwise = Finding(
        "driver_not_answering",
        f"The driver {node['driver']['loaded']} is loaded, but does not answer.",
        shorten(output),
        "Check: dmesg | grep -i -e NVRM -e Xid.",
        _gpus([gpu for gpu in gpus if str(gpu["address"]) in output.lower()]),
    )
    facts, seen = {**node, "gpus": gpus}, {"on_host": True}
    return from_finding(NVML, explain_one(output, otherwise, facts, seen))


def _gpus(gpus: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the GPUs that a finding names."""
    return {"gpus": " ".join(str(gpu["address"]) for gpu in gpus)} if gpus else {}


def _half_answer(node: Mapping[str, Any], smi: Result) -> LayerResult:
    """Return the result for a driver that lists its GPUs and reports nothing else of them."""
    driver = node["driver"]["loaded"]
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi -q -x"
    codes = ("driver_not_answering", "gpu_lost", "recovery_action")
    reported = next((one["evidence"] for one in node["problems"] if one["code"] in codes), "")
    count = len(LISTED_GPU.findall(smi.stdout))
    otherwise = Finding(
        "driver_not_answering",
        f"{how} fails, with driver {driver}; nvidia-smi -L answers, with {count_of(count, 'GPU')}.",
        f"{how}: {shorten(reported) or 'no answer'}",
        f"Run {how.replace('pynvml', 'nvidia-smi -q')} on the node, with -i for one GPU after the "
        "other: one of them may not answer. Check: dmesg | grep -i -e NVRM -e Xid.",
    )
    finding = explain_one(reported, otherwise, node) if reported else otherwise
    return from_finding(NVML, finding)


def _toolkit(
    node: Mapping[str, Any], state: State, request: Request, nvml: LayerResult
) -> LayerResult:
    toolkit, runtime = node["container_toolkit"], state.runtime
    if runtime is None or runtime.rc == 127:
        return _no_toolkit(toolkit["version"], state)
    # Checked first: with a wrong setting, the program does not even print its version.
    wrong = _wrong_settings(toolkit)
    if wrong is not None:
        return wrong
    if not runtime.ok:
        return failed(
            TOOLKIT,
            "toolkit_broken",
            f"{state.runtime_path} does not answer.",
            runtime.last_output(),
            "Install the packages of the container toolkit again.",
        )
    if state.config_exists and toolkit["config"] is None:
        return failed(
            TOOLKIT,
            "toolkit_config_invalid",
            "The toolkit's configuration cannot be read: containers will not start.",
            "/etc/nvidia-container-runtime/config.toml is not valid TOML",
            "Correct it, or generate it again: nvidia-ctk config --in-place.",
        )
    wrong = _cdi(node, state, request)
    if wrong is not None:
        return wrong
    if state.cli is not None and not state.cli.ok and state.cli.rc != 127 and nvml.ok:
        output = state.cli.last_output()
        otherwise = Finding(
            "toolkit_broken",
            "nvidia-container-cli does not find the driver, which works outside of it.",
            shorten(output),
            "Run on the node: nvidia-container-cli --load-kmods --debug=/dev/stderr info.",
        )
        return from_finding(TOOLKIT, explain_one(output, otherwise, node, {"on_host": True}))
    version = _VERSION.search(runtime.stdout)
    shown = [f"{state.runtime_path.rpartition('/')[2]} {version.group() if version else 'answers'}"]
    spec = toolkit["cdi_spec"]
    if spec:
        made = f" for driver {spec['driver_version']}" if spec["driver_version"] else ""
        shown.append(f"CDI specification {spec['path']}{made}")
    else:
        shown.append("no CDI specification, and none is needed")
    return works(TOOLKIT, "; ".join(shown))


def _no_toolkit(package: str | None, state: State) -> LayerResult:
    return failed(
        TOOLKIT,
        "toolkit_missing",
        f"The container toolkit {package} is installed, but its program {state.runtime_path} is "
        "not there."
        if package
        else "NVIDIA's container toolkit is not installed.",
        state.runtime.last_output() if state.runtime else f"there is no {state.runtime_path}",
        # The package is installed, so that site would change nothing.
        "Install the packages of the container toolkit again (apt-get install --reinstall, dnf "
        "reinstall): nvidia-container-toolkit and nvidia-container-toolkit-base."
        if package
        else "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit installs it "
        "and configures the runtimes.",
        names={"package": package} if package else {},
    )


def _wrong_settings(toolkit: Mapping[str, Any]) -> LayerResult | None:
    """Return the settings in the toolkit's file that keep all containers from starting."""
    found = faults(toolkit["config"] or {}, release_of(toolkit["version"]))
    wrong = [fault.message for fault in found if fault.stops]
    if not wrong:
        return None
    return failed(
        TOOLKIT,
        "toolkit_config_invalid",
        f"In the toolkit's configuration {wrong[0]}: no container that NVIDIA's runtime starts "
        "runs.",
        f"/etc/nvidia-container-runtime/config.toml: {'; '.join(wrong)}",
        "Correct it: nvidia_container_toolkit_settings, if the role set it, else the file.",
    )


def _cdi(node: Mapping[str, Any], state: State, request: Request) -> LayerResult | None:
    """Return what is wrong with the CDI specification; None if nothing is."""
    toolkit, loaded = node["container_toolkit"], node["driver"]["loaded"]
    spec = toolkit["cdi_spec"]
    again = (
        "Generate it again: systemctl restart nvidia-cdi-refresh, or nvidia-ctk cdi generate "
        "--output=/var/run/cdi/nvidia.yaml; the module cdi_specification does it."
    )
    mode = (toolkit["config"] or {}).get("nvidia-container-runtime.mode")
    if spec is None:
        if not request.cdi and mode != "cdi":
            return None
        why = "the toolkit's mode is cdi" if mode == "cdi" else "one is required"
        return failed(
            TOOLKIT,
            "cdi_missing",
            "There is no CDI specification.",
            f"no nvidia.yaml in /etc/cdi and /var/run/cdi; {why}",
            again,
        )
    made = spec["driver_version"]
    if loaded and made and made != loaded:
        return failed(
            TOOLKIT,
            "cdi_stale",
            f"The CDI specification was made for driver {made}, and {loaded} is loaded: containers "
            "that get their devices by CDI will not start.",
            spec["path"],
            again,
        )
    if state.cdi is None or state.cdi.rc == 127:
        return None
    if not state.cdi.ok or not _CDI_DEVICE.search(state.cdi.stdout):
        return failed(
            TOOLKIT,
            "cdi_invalid",
            f"The CDI specification {spec['path']} has no device of nvidia.com/gpu.",
            shorten(state.cdi.last_output()) or "nvidia-ctk cdi list names none",
            again,
        )
    return None


def _in(request: Request, layer: str) -> bool:
    return layer in request.layers


def _waits(layer: str, other: LayerResult) -> LayerResult:
    return untried(layer, "waits", f"It depends on the layer {other.layer}, which failed.")


def _addresses(gpus: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(gpu["address"]) for gpu in gpus)
