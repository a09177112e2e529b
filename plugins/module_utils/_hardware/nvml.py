# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the devices of the driver from NVML (pynvml) or ``nvidia-smi -q -x``.

Memory is in MiB. Values that one of the two lacks are None. The node's programs are not trusted:
texts are cut to :data:`_MOST_TEXT` characters, and a document that declares entities is refused.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .vgpu_licence import licence_of_features, read_licence

#: The status of nvidia-smi that comes with a whole document (NVML_ERROR_CORRUPTED_INFOROM).
INFOROM_CORRUPT = 14
#: Key of the fact for what GPUs say that are lost or have to be reset, while the others answer.
ERRORS = "errors"
# In the place of a handle or of a value. After other errors nothing that follows would be right.
_BROKEN = ("GPU is lost", "GPU requires reset")
# NVML_ERROR_GPU_IS_LOST, NVML_ERROR_RESET_REQUIRED and NVML_ERROR_UNKNOWN.
_NO_HANDLE = (15, 16, 999)
_MIB = 1024 * 1024
_NOT = frozenset({"", "N/A", "[N/A]", "None", "Not Supported", "Unknown Error", "Requested"})
_MAX_MIG = 16
# The longest text of NVML has 96 bytes (NVML_DEVICE_NAME_V2_BUFFER_SIZE, *_UUID_V2_*).
_MOST_TEXT = 256
# The output of nvidia-smi -q -x for 16 GPUs has less than a tenth of it.
_MOST_BYTES = 8 * 1024 * 1024
# 16 GPUs have fewer than 50,000 elements (590.44.01: 2,000 each, most of them clocks).
_MOST_ELEMENTS = 100_000
_MOST_LEVELS = 32
_END = "</nvidia_smi_log>"
# As nvidia-smi -L prints them (seen with 530, 535 and 580; datadog-agent #33120 and
# nvidia-container-toolkit #203 have whole outputs).
_SMI_GPU = re.compile(r"GPU \d+: (?P<name>.+) \(UUID: (?P<uuid>[^)\s]+)\)\s*\Z")
_SMI_MIG = re.compile(
    r"\s+(?P<name>MIG \S+)\s+Device\s+(?P<index>\d+): \(UUID: (?P<uuid>[^)\s]+)\)"
)
# NVML_GPU_FABRIC_STATE_*, as nvidia-smi prints them; 0 is 'not supported'.
_FABRIC_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}


def from_nvml(nvml: Any) -> dict[str, Any]:
    """Return the fact ``nvml`` from the library ``pynvml``.

    :raises Exception: the library's own, where NVML does not start.
    """
    nvml.nvmlInit()
    try:
        version = _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
        handles, errors = _nvml_handles(nvml)
        return {
            "driver_version": _string(_ask(nvml, "nvmlSystemGetDriverVersion")),
            "cuda_version": None
            if version is None
            else f"{version // 1000}.{version % 1000 // 10}",
            "devices": [_nvml_device(nvml, handle) for handle in handles],
            **({ERRORS: errors} if errors else {}),
        }
    finally:
        nvml.nvmlShutdown()


def _nvml_handles(nvml: Any) -> tuple[list[Any], list[str]]:
    """Return the handles of the GPUs, and the errors of those that are lost.

    :raises Exception: the library's own, where no GPU has a handle, or for another reason.
    """
    handles: list[Any] = []
    errors: list[str] = []
    count = nvml.nvmlDeviceGetCount()
    for index in range(count):
        try:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError as error:
            if len(errors) + 1 == count or getattr(error, "value", None) not in _NO_HANDLE:
                raise
            errors.append(f"NVML, GPU of index {index}: {str(error)[:_MOST_TEXT]}")
    return handles, errors


def _nvml_device(nvml: Any, handle: Any) -> dict[str, Any]:
    pci = _ask(nvml, "nvmlDeviceGetPciInfo", handle)
    memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    mig = _ask(nvml, "nvmlDeviceGetMigMode", handle) or (None, None)
    compute = _ask(nvml, "nvmlDeviceGetComputeMode", handle)
    ecc = _ask(nvml, "nvmlDeviceGetEccMode", handle) or (None, None)
    return {
        "address": None if pci is None else bus_address(_string(pci.busId)),
        "uuid": _string(_ask(nvml, "nvmlDeviceGetUUID", handle)),
        "name": _string(_ask(nvml, "nvmlDeviceGetName", handle)),
        "serial": _string(_ask(nvml, "nvmlDeviceGetSerial", handle)),
        "minor_number": _ask(nvml, "nvmlDeviceGetMinorNumber", handle),
        "memory_total": None if memory is None else memory.total // _MIB,
        "persistence_mode": _mode(_ask(nvml, "nvmlDeviceGetPersistenceMode", handle)),
        "compute_mode": {0: "default", 2: "prohibited", 3: "exclusive_process"}.get(compute),
        "ecc_mode": _mode(ecc[0]),
        "mig_mode": _mode(mig[0]),
        "mig_mode_pending": _mode(mig[1]),
        "mig_devices": _nvml_mig(nvml, handle) if mig[0] else [],
        "fabric": _nvml_fabric(nvml, handle),
        "licence": licence_of_features(
            _ask(nvml, "nvmlDeviceGetVirtualizationMode", handle),
            _ask(nvml, "nvmlDeviceGetGridLicensableFeatures", handle),
        ),
    }


def _nvml_fabric(nvml: Any, handle: Any) -> dict[str, Any] | None:
    """Return the state of the GPU in its NVLink fabric; None if it has no fabric."""
    for function, kind in (
        ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfoV_t"),
        ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
    ):
        structure = getattr(nvml, kind, None)
        if structure is None:
            continue
        info = structure()
        place = importlib.import_module("ctypes").byref(info)
        if _ask(nvml, function, handle, place) is not None:
            status = "success" if info.status == 0 else f"error {info.status}"
            return _fabric(_FABRIC_STATES.get(info.state), status)
    return None


def _fabric(state: str | None, status: str | None) -> dict[str, Any] | None:
    # The status is valid only for a completed registration.
    ended = state == "completed"
    return None if state is None else {"state": state, "status": status if ended else None}


def _nvml_mig(nvml: Any, handle: Any) -> list[dict[str, Any]]:
    found = []
    count = _ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle) or 0
    for index in range(min(count, _MAX_MIG)):
        device = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if device is None:
            continue
        memory = _ask(nvml, "nvmlDeviceGetMemoryInfo", device)
        found.append(
            {
                "index": index,
                "uuid": _string(_ask(nvml, "nvmlDeviceGetUUID", device)),
                "name": _string(_ask(nvml, "nvmlDeviceGetName", device)),
                "gpu_instance_id": _ask(nvml, "nvmlDeviceGetGpuInstanceId", device),
                "compute_instance_id": _ask(nvml, "nvmlDeviceGetComputeInstanceId", device),
                "memory_total": None if memory is None else memory.total // _MIB,
            }
        )
    return found


def _ask(nvml: Any, function: str, *arguments: Any) -> Any:
    """Return the result of NVML; None if the device or the library does not support it."""
    try:
        answer = getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError):
        return None
    return answer


def _string(value: Any) -> str | None:
    # Older releases of pynvml return bytes.
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return None if value is None or value in _NOT else str(value)[:_MOST_TEXT]


def _mode(value: Any) -> str | None:
    return None if value is None else ("enabled" if value else "disabled")


def bus_address(bus_id: str | None) -> str | None:
    """Return NVML's ``00000000:3B:00.0`` as sysfs writes it: ``0000:3b:00.0``."""
    if not bus_id:
        return None
    domain, colon, rest = bus_id.lower().partition(":")
    return f"{domain[-4:].zfill(4)}{colon}{rest}"


def from_smi(text: str) -> dict[str, Any]:
    """Return the fact ``nvml`` from the output of ``nvidia-smi -q -x``.

    :raises ValueError: where it is not that.
    """
    # Warnings come before or after the document.
    start, end = text.find("<?xml"), text.rfind(_END)
    log = parse_xml(text[start : end + len(_END)] if 0 <= start < end else text)
    if log.tag != "nvidia_smi_log":
        raise ValueError(f"nvidia-smi printed <{log.tag}>, not <nvidia_smi_log>")
    devices = [(gpu, _smi_device(gpu)) for gpu in log.findall("gpu")]
    errors = [
        f"nvidia-smi, GPU {device['address']}: {text}"
        for gpu, device in devices
        for text in _BROKEN
        if any(text in (element.text or "") for element in gpu.iter())
    ]
    return {
        "driver_version": _field(log, "driver_version"),
        "cuda_version": _field(log, "cuda_version"),
        "devices": [device for _gpu, device in devices],
        **({ERRORS: errors} if errors else {}),
    }


def parse_xml(text: str) -> Any:
    """Return the document's root. Its DTD is not read: expat fetches nothing by itself.

    :raises ValueError: it is no XML, too long or too deep, or declares entities (which may be
        without end).
    """
    if len(text) > _MOST_BYTES:
        raise ValueError(f"nvidia-smi printed {len(text)} characters, more than {_MOST_BYTES}")
    # Slow to import, and rarely needed.
    expat = importlib.import_module("xml.parsers.expat")
    builder = importlib.import_module("xml.etree.ElementTree").TreeBuilder()

    def refuse(name: str, *_rest: Any) -> None:
        raise ValueError(f"nvidia-smi printed XML that declares the entity {name[:_MOST_TEXT]}")

    elements = levels = 0

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal elements, levels
        elements, levels = elements + 1, levels + 1
        if elements > _MOST_ELEMENTS or levels > _MOST_LEVELS:
            raise ValueError("nvidia-smi printed XML with too many elements or levels")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal levels
        levels -= 1
        builder.end(name)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"nvidia-smi printed no XML: {error}") from error
    return builder.close()


def _smi_device(gpu: Any) -> dict[str, Any]:
    compute = _field(gpu, "compute_mode")
    mig_mode = _field(gpu, "mig_mode/current_mig")
    state = _field(gpu, "fabric/state")
    return {
        "address": bus_address(gpu.get("id") or _field(gpu, "pci/pci_bus_id")),
        "uuid": _field(gpu, "uuid"),
        "name": _field(gpu, "product_name"),
        "serial": _field(gpu, "serial"),
        "minor_number": _integer(_field(gpu, "minor_number")),
        "memory_total": _integer(_field(gpu, "fb_memory_usage/total")),
        "persistence_mode": _lower(_field(gpu, "persistence_mode")),
        "compute_mode": None if compute is None else compute.lower().replace(" ", "_"),
        "ecc_mode": _lower(_field(gpu, "ecc_mode/current_ecc")),
        "mig_mode": _lower(mig_mode),
        "mig_mode_pending": _lower(_field(gpu, "mig_mode/pending_mig")),
        "mig_devices": [_smi_mig(device) for device in gpu.findall("mig_devices/mig_device")],
        "fabric": _fabric(
            None if state is None else state.lower().replace(" ", "_"),
            _lower(_field(gpu, "fabric/status")),
        ),
        "licence": smi_licence(gpu, _field),
    }


def smi_licence(gpu: Any, text_of: Callable[[Any, str], str | None]) -> dict[str, Any] | None:
    """Return the licence of a guest's GPU.

    :param gpu: the element ``gpu``.
    :param text_of: returns the text of an element below it.
    """
    product = "vgpu_software_licensed_product"
    return read_licence(
        text_of(gpu, "gpu_virtualization_mode/virtualization_mode"),
        text_of(gpu, f"{product}/licensed_product_name"),
        text_of(gpu, f"{product}/license_status"),
    )


def _smi_mig(device: Any) -> dict[str, Any]:
    return {
        "index": _integer(_field(device, "index")),
        "uuid": _field(device, "uuid"),
        "name": None,
        "gpu_instance_id": _integer(_field(device, "gpu_instance_id")),
        "compute_instance_id": _integer(_field(device, "compute_instance_id")),
        "memory_total": _integer(_field(device, "fb_memory_usage/total")),
    }


def lacks_names(fact: Mapping[str, Any]) -> bool:
    """Return whether MIG devices lack their profile names."""
    return any(mig["name"] is None for device in fact["devices"] for mig in device["mig_devices"])


def with_smi_names(fact: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the fact with the names of MIG devices from the output of ``nvidia-smi -L``.

    ``nvidia-smi -q -x`` has instances and memory of a MIG device, but not its profile.

    :param text: GPUs, and below each its MIG devices; a name is as NVML gives it, ``NVIDIA A100 MIG
        3g.20gb``. What it does not have remains as it is.
    """
    names: dict[tuple[str, int], tuple[str | None, str | None]] = {}
    name = uuid = ""
    for line in text.splitlines():
        gpu, mig = _SMI_GPU.match(line), _SMI_MIG.match(line)
        if gpu:
            name, uuid = gpu["name"], gpu["uuid"]
        elif mig and uuid:
            title = _string(f"{name} {mig['name']}")
            names[uuid, int(mig["index"])] = (title, _string(mig["uuid"]))
    devices = []
    for device in fact["devices"]:
        migs = []
        for mig in device["mig_devices"]:
            listed_name, listed_uuid = names.get((device["uuid"], mig["index"]), (None, None))
            migs.append(
                {**mig, "name": mig["name"] or listed_name, "uuid": mig["uuid"] or listed_uuid}
            )
        devices.append({**device, "mig_devices": migs})
    return {**fact, "devices": devices}


def with_planned_mig(
    node: Mapping[str, Any], planned: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the fact ``gpu_node`` with the MIG mode and devices that the GPUs will have.

    :param planned: the ``devices`` of the MIG plan. Other GPUs stay as they are.
    """
    nvml = node.get("nvml")
    if not nvml or not planned:
        return node
    by_address = {
        one["address"]: {
            "mig_mode": one["mig_mode"],
            "mig_devices": [{"name": f"MIG {profile}"} for profile in one["mig_devices"]],
        }
        for one in planned
    }
    devices = [{**one, **by_address.get(one["address"], {})} for one in nvml["devices"]]
    return {**node, "nvml": {**nvml, "devices": devices}}


def _field(node: Any, path: str) -> str | None:
    return _string((node.findtext(path) or "").strip())


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _integer(text: str | None) -> int | None:
    match = re.match(r"\d+", text or "")
    return int(match.group()) if match else None
