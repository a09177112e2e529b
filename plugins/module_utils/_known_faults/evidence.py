# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Collect the evidence of why a driver does not work, limited in size.

Reader and runner are passed in. Missing and unreadable sources are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.redact import redact
from .._nvidia.runfile import LOG
from .build import log_kernel
from .common import evidence_of_node
from .device_users import find_holders, find_users
from .evidence_types import DkmsBuild, Evidence
from .kernel_lines import kernel_lines

if TYPE_CHECKING:
    from .._host.reader import NodeReader

_MOST_LOG = 32 * 1024 * 1024
_MOST_OUTPUT = 64 * 1024
_LOG_PATH = re.compile(r"(/var/lib/dkms/\S+/make\.log)")
_MOK_KEYS = ("/var/lib/shim-signed/mok/MOK.der", "/var/lib/dkms/mok.pub")
_FRAMEWORK = re.compile(r"^\s*mok_certificate\s*=\s*[\"']?([^\"'\s#]+)", re.M)
_SYS_MODULE = 16


@dataclass(frozen=True)
class Environment:
    """Whether kernel modules can be loaded here; None is unknown."""

    container: str | None = None
    capable: bool | None = None
    disabled: bool = False

    @property
    def may_load(self) -> bool | None:
        return False if self.disabled else self.capable

    @property
    def why_not(self) -> str:
        """Return why no module can be loaded here, or an empty string."""
        if self.disabled:
            return "kernel.modules_disabled is 1 until the next boot"
        if self.container:
            return f"this is a container ({self.container}): modules belong to its host"
        if self.capable is False:
            return "the capability CAP_SYS_MODULE is not there (not root?)"
        return ""


def read_environment(reader: NodeReader) -> Environment:
    """Return whether this is a container, and whether modules may be loaded."""
    status = reader.read_text("/proc/self/status") or ""
    match = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", status, re.M)
    return Environment(
        _container(reader),
        bool(int(match[1], 16) >> _SYS_MODULE & 1) if match else None,
        reader.read_line("/proc/sys/kernel/modules_disabled") == "1",
    )


def _container(reader: NodeReader) -> str | None:
    named = reader.read_line("/run/systemd/container")
    if named:
        return named
    variables = (reader.read_bytes("/proc/1/environ", _MOST_OUTPUT) or b"").split(b"\0")
    for variable in variables:
        if variable.startswith(b"container="):
            return variable[len(b"container=") :].decode("ascii", "replace") or "container"
    if reader.exists("/.dockerenv"):
        return "docker"
    return "podman" if reader.exists("/run/.containerenv") else None


def uptime(reader: NodeReader) -> float | None:
    """Return the seconds since boot, to be passed as ``since`` after an attempt."""
    match = re.match(r"\d+\.\d+", reader.read_line("/proc/uptime") or "")
    return float(match.group()) if match else None


def collect(
    reader: NodeReader,
    node: Mapping[str, Any],
    *,
    wanted: str | None = None,
    kernel_module: str | None = None,
    grid: bool | None = None,
    modprobe: str = "",
    output: str = "",
    since: float | None = None,
) -> Evidence:
    """Return the evidence on the node.

    :param node: the fact ``gpu_node``, read after the attempt.
    :param wanted: the planned version.
    :param kernel_module: the planned type of modules: open or proprietary.
    :param grid: whether that is a GRID driver for vGPU guests; None: read it from the node.
    :param modprobe: the output of modprobe or rmmod.
    :param output: the output of the package manager or the installer.
    :param since: the uptime in seconds before which lines of the kernel's log are left out.
    """
    key = mok_key(reader)
    environment = read_environment(reader)
    headers = _headers(node, node["os"]["kernel"])
    return evidence_of_node(
        node,
        wanted=wanted,
        kernel_module=kernel_module or node["driver"]["kernel_module"],
        grid=_grid(reader) if grid is None else grid,
        secure_boot=node["secure_boot"],
        mok_key=key,
        mok_enrolled=mok_enrolled(reader, key) if node["secure_boot"] else None,
        headers=headers,
        headers_packages=_headers_packages(reader, node["os"]["kernel"] or "")
        if headers is False
        else (),
        dkms=builds(reader, node["driver"]["dkms"], output),
        modprobe=_shorten(modprobe),
        output=_shorten(output),
        installer_log=_installer_log(reader, output),
        nvml=_nvml(reader),
        on_disk=_on_disk(node, node["os"]["kernel"]),
        dmesg=kernel_lines(reader, since),
        users=find_users(reader),
        holders=find_holders(reader),
        container=environment.container,
        may_load=environment.may_load,
    )


def _headers(node: Mapping[str, Any], kernel: str | None) -> bool | None:
    return next((entry["headers"] for entry in node["kernels"] if entry["version"] == kernel), None)


def _on_disk(node: Mapping[str, Any], kernel: str | None) -> bool | None:
    """Return whether the running kernel has a module of the driver; None without its folder."""
    running: Mapping[str, Any] = next(
        (entry for entry in node["kernels"] if entry["version"] == kernel), {}
    )
    return bool(running.get("driver")) if running.get("on_disk") else None


def _headers_packages(reader: NodeReader, kernel: str) -> tuple[str, ...]:
    """Return the packages of this kernel's headers that dpkg has unpacked."""
    found = []
    for name in reader.list_dir("/var/lib/dpkg/info"):
        match = re.fullmatch(r"(\w+-headers-)([^:]+?)(-common)?(?::\w+)?\.list", name)
        if match and (kernel == match[2] or kernel.startswith(f"{match[2]}-")):
            found.append(f"{match[1]}{match[2]}{match[3] or ''}")
    return tuple(sorted(found))


def _grid(reader: NodeReader) -> bool | None:
    """Return whether the driver is a GRID driver: only that has the licence daemon."""
    if not reader.first(("/usr/bin/nvidia-smi", "/usr/bin/nvidia-installer")):
        return None
    return reader.exists("/usr/bin/nvidia-gridd")


def _installer_log(reader: NodeReader, output: str) -> str:
    """Return the log of the runfile's installer, if the output names it."""
    if LOG not in output:
        return ""
    return (reader.read_bytes(LOG, _MOST_LOG) or b"").decode("utf-8", "replace")


def _shorten(text: str) -> str:
    """Return the end of the text, without secrets."""
    return redact(text)[-_MOST_OUTPUT:]


def _nvml(reader: NodeReader) -> str:
    result = reader.run(["nvidia-smi", "-L"], timeout=30)
    if result is None or result.rc == 127:
        return ""
    # Some errors are written to stdout, with any exit status.
    return _shorten(f"{result.stdout}\n{result.stderr}".strip())


def builds(
    reader: NodeReader, dkms: Sequence[Mapping[str, Any]], output: str = ""
) -> tuple[DkmsBuild, ...]:
    """Return the builds of DKMS, the failed ones with their log."""
    complete = {
        (entry["version"], entry["kernel"])
        for entry in dkms
        if entry["state"] in ("built", "installed")
    }
    found: list[DkmsBuild] = []
    for path, log in _logs(reader, output):
        name, version = path.split("/")[4:6]
        kernel = log_kernel(log)
        # A log may remain from an earlier attempt or from the other type of modules.
        if path in output or (version, kernel) not in complete:
            found.append(DkmsBuild(version, kernel, "failed", name, path, log))
    reported = {(build.version, build.kernel) for build in found}
    for entry in dkms:
        if entry["state"] != "failed":
            found.append(DkmsBuild(entry["version"], entry["kernel"], entry["state"]))
        elif (entry["version"], entry["kernel"]) not in reported:
            found.append(DkmsBuild(entry["version"], entry["kernel"], "failed"))
    return tuple(found)


def _logs(reader: NodeReader, output: str) -> list[tuple[str, str]]:
    """Return path and text of the logs of failed builds."""
    paths = [path for path in _LOG_PATH.findall(output) if "/nvidia" in path]
    for module in reader.list_dir("/var/lib/dkms"):
        if module.startswith("nvidia"):
            base = f"/var/lib/dkms/{module}"
            # DKMS removes the folder of a successful build.
            paths.extend(f"{base}/{version}/build/make.log" for version in reader.list_dir(base))
    found = []
    for path in dict.fromkeys(paths):
        content = reader.read_bytes(path, _MOST_LOG)
        if content is not None:
            found.append((path, content.decode("utf-8", "replace")))
    return found


def mok_key(reader: NodeReader) -> str | None:
    """Return the certificate of DKMS's signing key, or None."""
    texts = [reader.read_text("/etc/dkms/framework.conf") or ""]
    folder = "/etc/dkms/framework.conf.d"
    for name in reader.list_dir(folder):
        if name.endswith(".conf"):
            texts.append(reader.read_text(f"{folder}/{name}") or "")
    named = [match for text in texts for match in _FRAMEWORK.findall(text) if "$" not in match]
    return reader.first((*reversed(named), *_MOK_KEYS))


def mok_enrolled(reader: NodeReader, key: str | None) -> bool | None:
    """Return whether the firmware trusts the key, according to mokutil; None is unknown."""
    if key is None:
        return None
    result = reader.run(["mokutil", "--test-key", key], timeout=30)
    if result is None or result.rc == 127:
        return None
    text = f"{result.stdout}\n{result.stderr}"
    if "is already enrolled" in text:
        return True
    # Enrolment is pending, or the firmware does not have the key.
    return False if "is not enrolled" in text or "enrollment request" in text else None
