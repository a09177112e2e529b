# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a GPU node layer by layer, from its facts and from what was tried on it. Pure.

One entry a layer: ``{node, layer, ok, code, cause, evidence, next_step, proof}``. ``ok`` is None
where a layer was not tried; then ``cause`` says why. ``proof`` says what was shown, and how.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.finding import Finding
from .._diagnosis.known_errors import explain, explain_one
from .._host.command import TIMED_OUT, Result
from .._toolkit.settings import faults, release_of
from .evidence import LISTED_GPU, end_of, number, of_finding, own_gpus
from .fabric import fault, proof
from .judge_runtime import judge_runtimes
from .types import MODULE, NODE_LAYERS, NVML, PCI, TOOLKIT, Seen, Verdict, Wish

_CDI_DEVICE = re.compile(r"^nvidia\.com/gpu=(\S+)", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def verify(
    node: Mapping[str, Any], seen: Seen | None = None, wish: Wish | None = None
) -> list[Verdict]:
    """Return how the node's layers stand, in their order; one for each container runtime.

    :param node: the facts ``gpu_node``, read after all changes.
    """
    seen, wish = seen or Seen(), wish or Wish()
    gpus = own_gpus(node)
    if not gpus and not wish.gpus:
        cause = "No NVIDIA GPU is on this node's PCI bus: there is nothing to verify."
        return [Verdict(layer, None, "no_gpu", cause) for layer in NODE_LAYERS if _in(wish, layer)]
    found = [_pci(gpus, wish)]
    module = _module(node, gpus, seen, wish)
    found.append(module)
    nvml = _nvml(node, gpus, seen, module)
    found.append(nvml)
    toolkit = _toolkit(node, seen, wish, nvml)
    found.append(toolkit)
    driver_works = module.ok is not False and nvml.ok is not False
    found.extend(judge_runtimes(node, seen, wish, driver_works, toolkit))
    return [verdict for verdict in found if _in(wish, verdict.layer)]


def failed(verdicts: Iterable[Verdict]) -> bool:
    return any(verdict.ok is False for verdict in verdicts)


# -- layers -----------------------------------------------------------------------------------


def _pci(gpus: Sequence[Mapping[str, Any]], wish: Wish) -> Verdict:
    count = len(gpus)
    if wish.gpus is not None and count != wish.gpus:
        return Verdict(
            PCI,
            False,
            "gpu_count",
            f"{number(count, 'NVIDIA GPU')} on the PCI bus, and {wish.gpus} should be there.",
            _addresses(gpus) or "no NVIDIA function on the bus",
            "See that all cards are seated and powered, and dmesg | grep -i -e pciehp -e 'fallen "
            "off'; or correct the number that is expected.",
        )
    others: dict[str | None, list[Mapping[str, Any]]] = {}
    for gpu in gpus:
        if gpu["kernel_driver"] != "nvidia":
            others.setdefault(gpu["kernel_driver"], []).append(gpu)
    for driver, bound in others.items():
        return _unbound(driver, bound)
    return Verdict(PCI, True, proof=f"{number(count, 'GPU')} bound to the driver nvidia")


def _unbound(driver: str | None, gpus: Sequence[Mapping[str, Any]]) -> Verdict:
    names = ", ".join(f"{gpu['product'] or gpu['device_id']} at {gpu['address']}" for gpu in gpus)
    are = "is" if len(gpus) == 1 else "are"
    if driver is None:
        cause = f"{names} {are} bound to no driver."
        step = "The layer module says why NVIDIA's driver does not serve it."
    elif driver == "vfio-pci":
        cause = f"{names} {are} bound to vfio-pci: set aside for virtual machines."
        step = (
            "Leave this node out of the GPU nodes, or take the card back: remove it from "
            "vfio-pci.ids (kernel command line, modprobe.d) and reboot."
        )
    else:
        cause = f"{names} {are} bound to {driver}, not to NVIDIA's driver."
        step = f"Block {driver} (blacklist {driver} in /etc/modprobe.d), rebuild the initramfs, "
        step += "reboot; the role nvidia_driver does it."
    evidence = f"/sys/bus/pci/devices/{gpus[0]['address']}/driver is {driver or 'not there'}"
    return Verdict(PCI, False, "gpu_not_bound", cause, evidence, step)


def _module(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen, wish: Wish
) -> Verdict:
    driver = node["driver"]
    loaded, installed, userland = driver["loaded"], driver["installed"], driver["userland"]
    if not loaded:
        if seen.diagnosis is not None:
            return of_finding(MODULE, seen.diagnosis)
        there = f"Driver {installed} is installed, but its" if installed else "NVIDIA's"
        step = "Run kubegpu.nodes.site for this node: role nvidia_driver "
        step += "loads it, or says why it cannot." if installed else "installs and loads it."
        return Verdict(
            MODULE,
            False,
            "driver_not_loaded",
            f"{there} kernel module is not loaded.",
            "/proc/driver/nvidia/version is not there",
            step,
        )
    if installed and installed != loaded:
        return Verdict(
            MODULE,
            False,
            "pending_reboot",
            f"Driver {installed} is installed, but {loaded} is still loaded.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Reboot the node, or reload the module while no program uses a GPU.",
        )
    if userland and userland != loaded:
        mismatch = explain("Driver/library version mismatch")[0]
        return Verdict(
            MODULE,
            False,
            mismatch.code,
            mismatch.cause,
            f"module {loaded}, libraries {userland}",
            mismatch.next_step,
        )
    if wish.driver and wish.driver != loaded:
        return Verdict(
            MODULE,
            False,
            "other_driver",
            f"Driver {loaded} is loaded, and {wish.driver} should be.",
            f"/proc/driver/nvidia/version says {loaded}",
            "Run kubegpu.nodes.site for this node, or correct the version that is expected.",
        )
    kind = f", {driver['kernel_module']} modules" if driver["kernel_module"] else ""
    return Verdict(MODULE, True, proof=f"{loaded} is loaded{kind}")


def _nvml(
    node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen, module: Verdict
) -> Verdict:
    nvml = node["nvml"]
    if nvml is None:
        if not node["driver"]["loaded"]:
            return _waits(NVML, module)
        return _no_nvml(node, gpus, seen)
    devices = nvml["devices"]
    if len(devices) != len(gpus):
        known = {device["address"] for device in devices}
        missing = [gpu for gpu in gpus if gpu["address"] not in known]
        lost = f"; not there: {_addresses(missing)}" if missing and None not in known else ""
        return Verdict(
            NVML,
            False,
            "gpu_missing_in_nvml",
            f"The driver counts {number(len(devices), 'GPU')}, and the PCI bus has {len(gpus)}.",
            f"NVML lists {', '.join(str(device['uuid']) for device in devices) or 'none'}{lost}",
            "Look at dmesg | grep -i -e NVRM -e Xid for the GPU that is missing: one that fell off "
            "the bus comes back by powering the node off and on.",
        )
    of_fabric = fault(node, seen.fabric)
    if of_fabric is not None:
        return of_finding(NVML, of_fabric)
    cuda = f", CUDA {nvml['cuda_version']}" if nvml["cuda_version"] else ""
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi"
    return Verdict(
        NVML,
        True,
        proof=f"{how} lists {number(len(devices), 'GPU')}, driver {nvml['driver_version']}{cuda}"
        f"{proof(seen.fabric)}",
    )


def _no_nvml(node: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], seen: Seen) -> Verdict:
    smi = seen.smi
    if smi is None or smi.rc == 127:
        return Verdict(
            NVML,
            False,
            "nvidia_smi_missing",
            "The driver cannot be asked: neither nvidia-smi nor the Python library pynvml is on "
            "this node.",
            smi.words() if smi else "",
            "Install the driver's utilities (nvidia-utils-<branch>, nvidia-smi); the role "
            "nvidia_driver does it.",
        )
    if smi.ok and LISTED_GPU.search(smi.stdout):
        return _half_answer(node, smi)
    words = smi.stdout.strip() or smi.stderr.strip()
    if smi.rc == TIMED_OUT:
        words = f"nvidia-smi did not answer in time. {words}".strip()
    otherwise = Finding(
        "driver_not_answering",
        f"The driver {node['driver']['loaded']} is loaded, but does not answer.",
        end_of(words),
        "Look at: dmesg | grep -i -e NVRM -e Xid.",
    )
    known = {"driver": node["driver"]["loaded"], "gpus": gpus}
    return of_finding(NVML, explain_one(words, otherwise, **known))


def _half_answer(node: Mapping[str, Any], smi: Result) -> Verdict:
    """Return what is wrong where the driver lists its GPUs, and does not say more of them."""
    driver = node["driver"]["loaded"]
    how = "pynvml" if node["python"]["pynvml"] is not None else "nvidia-smi -q -x"
    said = next(
        (one["evidence"] for one in node["problems"] if one["code"] == "driver_not_answering"), ""
    )
    count = len(LISTED_GPU.findall(smi.stdout))
    otherwise = Finding(
        "driver_not_answering",
        f"{how} fails, with driver {driver}; nvidia-smi -L answers, with {number(count, 'GPU')}.",
        f"{how}: {end_of(said) or 'no answer'}",
        f"Run {how.replace('pynvml', 'nvidia-smi -q')} on the node, with -i for one GPU after the "
        "other: one of them may not answer. Look at: dmesg | grep -i -e NVRM -e Xid.",
    )
    finding = explain_one(said, otherwise, driver=driver) if said else otherwise
    return of_finding(NVML, finding)


def _toolkit(node: Mapping[str, Any], seen: Seen, wish: Wish, nvml: Verdict) -> Verdict:
    toolkit, loaded = node["container_toolkit"], node["driver"]["loaded"]
    runtime = seen.runtime
    if runtime is None or runtime.rc == 127:
        package = toolkit["version"]
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_missing",
            f"The container toolkit {package} is installed, but its program {seen.runtime_path} is "
            "not there."
            if package
            else "NVIDIA's container toolkit is not installed.",
            runtime.words() if runtime else f"there is no {seen.runtime_path}",
            # To the package manager all is there, so that site would change nothing.
            "Install the packages of the container toolkit again (apt-get install --reinstall, dnf "
            "reinstall): nvidia-container-toolkit and nvidia-container-toolkit-base."
            if package
            else "Run kubegpu.nodes.site for this node: role nvidia_container_toolkit installs it "
            "and configures the runtimes.",
        )
    # Before the program is judged: it does not even tell its version with a wrong setting.
    wrong = _wrong_settings(toolkit)
    if wrong is not None:
        return wrong
    if not runtime.ok:
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_broken",
            f"{seen.runtime_path} does not answer.",
            runtime.words(),
            "Install the packages of the container toolkit again.",
        )
    if seen.config_there and toolkit["config"] is None:
        return Verdict(
            TOOLKIT,
            False,
            "toolkit_config_invalid",
            "The toolkit's configuration cannot be read: containers will not start.",
            "/etc/nvidia-container-runtime/config.toml is no TOML",
            "Correct it, or make it anew: nvidia-ctk config --in-place.",
        )
    fault = _cdi(node, seen, wish)
    if fault is not None:
        return fault
    if seen.cli is not None and not seen.cli.ok and seen.cli.rc != 127 and nvml.ok:
        words = seen.cli.words()
        otherwise = Finding(
            "toolkit_broken",
            "nvidia-container-cli does not find the driver, which works outside of it.",
            end_of(words),
            "Ask it on the node: nvidia-container-cli --load-kmods --debug=/dev/stderr info.",
        )
        return of_finding(TOOLKIT, explain_one(words, otherwise, driver=loaded))
    version = _VERSION.search(runtime.stdout)
    said = [f"{seen.runtime_path.rpartition('/')[2]} {version.group() if version else 'answers'}"]
    spec = toolkit["cdi_spec"]
    if spec:
        made = f" for driver {spec['driver_version']}" if spec["driver_version"] else ""
        said.append(f"CDI specification {spec['path']}{made}")
    else:
        said.append("no CDI specification, and none is needed")
    return Verdict(TOOLKIT, True, proof="; ".join(said))


def _wrong_settings(toolkit: Mapping[str, Any]) -> Verdict | None:
    """Return the first setting of the toolkit's file with which no container starts."""
    found = faults(toolkit["config"] or {}, release_of(toolkit["version"]))
    wrong = [fault.words for fault in found if fault.stops]
    if not wrong:
        return None
    return Verdict(
        TOOLKIT,
        False,
        "toolkit_config_invalid",
        f"In the toolkit's configuration {wrong[0]}: no container that NVIDIA's runtime starts "
        "runs.",
        f"/etc/nvidia-container-runtime/config.toml: {'; '.join(wrong)}",
        "Correct it: nvidia_container_toolkit_settings, if the role set it, else the file.",
    )


def _cdi(node: Mapping[str, Any], seen: Seen, wish: Wish) -> Verdict | None:
    """Return what is wrong with the CDI specification, if anything is."""
    toolkit, loaded = node["container_toolkit"], node["driver"]["loaded"]
    spec = toolkit["cdi_spec"]
    again = (
        "Make it again: systemctl restart nvidia-cdi-refresh, or nvidia-ctk cdi generate "
        "--output=/var/run/cdi/nvidia.yaml; the module cdi_specification does it."
    )
    mode = (toolkit["config"] or {}).get("nvidia-container-runtime.mode")
    if spec is None:
        if not wish.cdi and mode != "cdi":
            return None
        why = "the toolkit's mode is cdi" if mode == "cdi" else "one is asked for"
        return Verdict(
            TOOLKIT,
            False,
            "cdi_missing",
            "There is no CDI specification.",
            f"no nvidia.yaml in /etc/cdi and /var/run/cdi; {why}",
            again,
        )
    made = spec["driver_version"]
    if loaded and made and made != loaded:
        return Verdict(
            TOOLKIT,
            False,
            "cdi_stale",
            f"The CDI specification was made for driver {made}, and {loaded} is loaded: containers "
            "that get their devices by CDI will not start.",
            spec["path"],
            again,
        )
    if seen.cdi is None or seen.cdi.rc == 127:
        return None
    if not seen.cdi.ok or not _CDI_DEVICE.search(seen.cdi.stdout):
        return Verdict(
            TOOLKIT,
            False,
            "cdi_invalid",
            f"The CDI specification {spec['path']} has no device of nvidia.com/gpu.",
            end_of(seen.cdi.words()) or "nvidia-ctk cdi list names none",
            again,
        )
    return None


# -- small things -----------------------------------------------------------------------------


def _in(wish: Wish, layer: str) -> bool:
    return layer in wish.layers


def _waits(layer: str, other: Verdict) -> Verdict:
    return Verdict(layer, None, "waits", f"It rests on the layer {other.layer}, which failed.")


def _addresses(gpus: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(gpu["address"]) for gpu in gpus)
