# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the fact ``gpu_node``: all that the plans of this collection depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from .._core.errors import KubegpuError
from .._core.finding import Finding
from .._core.redact import redact
from .._cuda.facts import read_cuda
from .._distro.os_release import read_os
from .._distro.upstream import package_base
from .._driver.facts import (
    SERVICES,
    read_checksums,
    read_dkms,
    read_driver,
    read_modules,
    read_state,
)
from .._exporter.data import FOREIGN_UNITS as _EXPORTERS
from .._exporter.data import UNITS as _EXPORTER_UNITS
from .._exporter.facts import read_exporter
from .._exporter.record import RECORD
from .._hardware.pci import count_nvswitches, find_gpus
from .._hardware.vgpu_licence import with_licences
from .._host.bounded import Hang
from .._host.command import NOT_FOUND, Result
from .._mig.boot_paths import BOOT_PATHS
from .._mig.facts import read_setup, with_mig
from .._packages.installed import (
    RPM_FORMAT,
    RPM_PATTERNS,
    Package,
    read_dpkg_status,
    read_rpm_query,
    read_versionlock,
    read_versionlock_toml,
    read_zypp_locks,
)
from .._record.acceptance import read_acceptance
from .._record.converged import cached_report, converged_fingerprints
from .._record.options import STATE_PATH
from .._record.verification import verification_due
from .._toolkit.facts import read_repositories, read_specifications, read_toolkit
from .device_nodes import read_device_nodes, read_errors, read_kernel_drivers
from .hardware import read_bridges, read_functions
from .problems import find_problems
from .runtimes import UNITS, RuntimePaths, read_runtimes
from .system import (
    read_archive,
    read_blocks,
    read_gpudirect,
    read_kernels,
    read_kubelet,
    read_libc,
    read_podman,
    read_python,
    read_secure_boot,
    read_selinux,
    read_units,
)

if TYPE_CHECKING:
    from .._hardware.pci import PciFunction
    from .._host.reader import NodeReader

_DPKG_STATUS = "/var/lib/dpkg/status"
_RPM_DATABASES = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")
_VERSIONLOCK = "/etc/dnf/plugins/versionlock.list"
_VERSIONLOCK_5 = "/etc/dnf/versionlock.toml"
_ZYPP_LOCKS = "/etc/zypp/locks"
# Seconds for the driver to answer.
NVML_SECONDS = 60


def gather(
    reader: NodeReader,
    paths: RuntimePaths,
    state_path: str = STATE_PATH,
    *,
    fresh: bool = False,
    driver_seconds: int = NVML_SECONDS,
    hang: Hang | None = None,
) -> dict[str, Any]:
    """Return the fact. Missing or unreadable files and programs are not errors.

    :param fresh: query container runtimes without a GPU on the node, too, and ignore cached
        results of containerd.
    :param driver_seconds: for the driver to answer.
    :param hang: how the driver hung when it was asked before; then it is not asked again.
    """
    gpus = find_gpus(functions := read_functions(reader))
    system = _read_system(reader)
    kernels = read_kernels(reader, system["kernel"])
    dkms = read_dkms(reader)
    modules = read_modules(reader, [kernel["version"] for kernel in kernels], dkms)
    packages, rpm_error = read_packages(reader, system["family"])
    record = read_state(reader, state_path)
    runtime_reader = reader if gpus or fresh or _is_monitored(record) else reader.files_only()
    units, starts = read_units(runtime_reader, (*UNITS, *SERVICES, *_EXPORTER_UNITS, *_EXPORTERS))
    nvml, nvml_error, hang = read_nvml(reader, gpus, driver_seconds, hang)
    runtimes, runtime_problems = _read_runtimes(
        runtime_reader, units, paths, packages, starts, record, fresh=fresh
    )
    gpus, nvml = with_licences(gpus, nvml)
    node: dict[str, Any] = {
        "os": {**system, "libc": read_libc(reader, packages, system["arch"])},
        "as_root": reader.as_root,
        "python": read_python(reader),
        **_read_hardware(reader, functions, gpus),
        "driver": read_driver(
            *(reader, packages, units, modules.get(system["kernel"]), dkms, record),
            system["package_manager"],
        ),
        "secure_boot": read_secure_boot(reader),
        **read_blocks(reader, gpus),
        "kernels": [{**kernel, "driver": modules[kernel["version"]]} for kernel in kernels],
        "cuda": read_cuda(reader, packages, nvml["cuda_version"] if nvml else None),
        "container_toolkit": read_toolkit(reader, packages),
        "cdi_specifications": read_specifications(reader),
        "podman": read_podman(packages),
        "selinux": read_selinux(reader),
        **_read_amd(reader, packages, record, gpus),
        "repositories": read_repositories(reader),
        "runtimes": runtimes,
        "kubelet": read_kubelet(reader),
        "nvml": None if nvml is None else with_mig(reader, nvml),
        "mig": read_setup(reader, record, read_checksums(reader, BOOT_PATHS)),
        "exporter": read_exporter(reader, units, packages, record),
        **_read_results(record),
        "driver_hang": None if hang is None else asdict(hang),
    }
    found = find_problems(node, nvml_error, rpm_error, _silent(functions))
    found += [*read_errors(reader, gpus), *runtime_problems, *_driver_trouble(reader, node)]
    return {**node, "problems": [problem.as_problem() for problem in found]}


def _silent(functions: Sequence[PciFunction]) -> list[str]:
    """Return the GPUs of NVIDIA's driver that are off the bus."""
    return [one.address for one in functions if one.silent and one.driver == "nvidia"]


def _read_system(reader: NodeReader) -> dict[str, Any]:
    system = read_os(reader)
    return {**system, "archive": read_archive(reader, package_base(system)["codename"])}


def _is_monitored(record: Mapping[str, Any] | None) -> bool:
    """Return whether an exporter is set up here: then its unit counts without a GPU, too."""
    return RECORD in ((record or {}).get("values") or {})


def _read_results(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what earlier runs found out about the node."""
    return {
        "acceptance": read_acceptance(record),
        "verification_due": verification_due(record),
    }


def _read_hardware(
    reader: NodeReader, functions: Sequence[PciFunction], gpus: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the facts of the PCI bus, and of the devices that the kernel made of it."""
    return {
        "gpus": gpus,
        "nvswitches": count_nvswitches(functions),
        "nvswitch_bridges": read_bridges(reader, gpus),
        "kernel_drivers": read_kernel_drivers(reader, gpus),
        "device_nodes": read_device_nodes(reader, functions, gpus),
        "gpudirect_modules": read_gpudirect(reader),
    }


def _driver_trouble(reader: NodeReader, node: Mapping[str, Any]) -> list[Finding]:
    """Return what a loaded driver of NVIDIA lacks; the files of its devices after it was asked."""
    if not node["driver"]["loaded"] or not any(gpu["vendor"] == "nvidia" for gpu in node["gpus"]):
        return []
    # Imported only with a driver: the node compiles each imported file.
    from .driver_trouble import find_driver_trouble  # noqa: PLC0415

    return find_driver_trouble(reader, node["driver"])


def _read_amd(
    reader: NodeReader,
    packages: Sequence[Package],
    record: Mapping[str, Any] | None,
    gpus: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the facts of AMD's packages, None for a node without AMD GPUs."""
    if not any(gpu["vendor"] == "amd" for gpu in gpus):
        return {"amd_container_toolkit": None, "amd_driver": None}
    # Imported only with such a GPU: the node compiles each imported file.
    from .._driver.amd_facts import read_amd_driver  # noqa: PLC0415
    from .._toolkit.amd_facts import read_amd_toolkit  # noqa: PLC0415

    return {
        "amd_container_toolkit": read_amd_toolkit(reader, packages, record),
        "amd_driver": read_amd_driver(reader, packages, record),
    }


def _read_runtimes(
    reader: NodeReader,
    units: Mapping[str, str | None] | None,
    paths: RuntimePaths,
    packages: Sequence[Package],
    starts: Mapping[str, str],
    record: Mapping[str, Any] | None,
    *,
    fresh: bool,
) -> tuple[dict[str, Any], list[Finding]]:
    """Return the fact ``runtimes`` with start times and fingerprints, and its problems."""
    runtimes, problems = read_runtimes(
        *(reader, units, paths, packages, starts),
        None
        if fresh
        else partial(
            cached_report,
            record,
            signature=reader.file_signature,
            process_start=reader.process_start_id,
        ),
    )
    for runtime in runtimes.values():
        if runtime is not None:
            runtime["started"] = starts.get(runtime["unit"])
    for engine in ("containerd", "docker"):
        if runtimes[engine] is not None:
            owner = runtimes[engine].get("distribution") or engine
            runtimes[engine]["converged"] = converged_fingerprints(
                record, engine, owner, reader.file_signature, reader.process_start_id
            )
    return runtimes, problems


def read_packages(reader: NodeReader, family: str | None) -> tuple[tuple[Package, ...], str]:
    """Return the relevant installed packages, and rpm's error if it cannot read its database.

    :param family: debian, rhel or suse.
    """
    if family == "debian" or reader.first(_RPM_DATABASES) is None:
        text = reader.read_text(_DPKG_STATUS)
        return (() if text is None else read_dpkg_status(text)), ""
    answer = reader.run(["rpm", "-qa", "--queryformat", RPM_FORMAT, *RPM_PATTERNS])
    if answer is None or not answer.ok:
        return (), "" if answer is None else redact(answer.last_output())
    locks = (
        *read_versionlock(reader.read_text(_VERSIONLOCK) or ""),
        *read_versionlock_toml(reader.read_text(_VERSIONLOCK_5) or ""),
        *read_zypp_locks(reader.read_text(_ZYPP_LOCKS) or ""),
    )
    return read_rpm_query(answer.stdout, locks), ""


def read_nvml(
    reader: NodeReader,
    gpus: Sequence[Mapping[str, Any]],
    seconds: int = NVML_SECONDS,
    before: Hang | None = None,
) -> tuple[dict[str, Any] | None, str, Hang | None]:
    """Return the fact ``nvml``; what the driver says of a failure; and how it hangs.

    A GPU that is lost fails all of nvidia-smi, or itself only: then there are both.

    :param seconds: for the driver to answer.
    :param before: how it hung when it was asked before; then it is not asked again.
    """
    if before is not None:
        return None, "", before
    if not any(gpu["vendor"] == "nvidia" for gpu in gpus):
        return None, "", None
    # Imported only with a GPU: the node compiles each imported file.
    from .._host.hanging import hanging_smi  # noqa: PLC0415

    left = hanging_smi(reader)
    if left is not None:
        return None, "nvidia-smi of an earlier run hangs", left
    nvml, error, hang = _ask_driver(reader, seconds)
    # A text of the node, which is shown.
    return nvml, redact(error), hang


def _ask_driver(reader: NodeReader, seconds: int) -> tuple[dict[str, Any] | None, str, Hang | None]:
    # Imported only with a GPU: the node compiles each imported file.
    from .._hardware.nvml import (  # noqa: PLC0415
        ERRORS,
        INFOROM_CORRUPT,
        from_nvml,
        from_smi,
        lacks_names,
        with_smi_names,
    )

    library = reader.import_library("pynvml")
    if library is not None:
        try:
            # With a hung driver the call never returns.
            fact = reader.in_child(seconds, partial(from_nvml, library))
            return fact, "; ".join(fact.pop(ERRORS, ())), None
        except TimeoutError:
            error = f"NVML (pynvml) did not answer in {seconds} seconds"
            return None, error, Hang("pynvml", 0, float(seconds), None, None, False)
        except KubegpuError as error:
            return None, error.cause, None
    answer, hang = reader.ask(["nvidia-smi", "-q", "-x"], seconds)
    if hang is not None:
        return None, f"nvidia-smi -q -x did not answer in {seconds} seconds", hang
    if answer is None or answer.rc == NOT_FOUND:
        return None, "", None
    try:
        # With a corrupted infoROM it prints all of its document, and a warning.
        if answer.rc not in (0, INFOROM_CORRUPT):
            return None, _smi_error(answer), None
        fact = from_smi(answer.stdout)
    except ValueError as error:
        return None, str(error), None
    if lacks_names(fact):
        listed, hang = reader.ask(["nvidia-smi", "-L"], seconds)
        fact = with_smi_names(fact, listed.stdout if listed and listed.ok else "")
    return fact, "; ".join(fact.pop(ERRORS, ())), hang


def _smi_error(answer: Result) -> str:
    # nvidia-smi writes errors to its standard output.
    message = answer.stdout.strip() or answer.stderr.strip()
    if message and not message.startswith("<"):
        return message
    # It died, perhaps within its document. A shell reports a signal as 128 plus its number.
    signal = -answer.rc if answer.rc < 0 else answer.rc - 128
    how = f"was ended by signal {signal}" if signal > 0 else f"ended with status {answer.rc}"
    return f"nvidia-smi -q -x {how}. {answer.stderr.strip()}".strip()
