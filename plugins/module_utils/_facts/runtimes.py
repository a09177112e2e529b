# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the container runtimes of a node: versions and effective configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._containerd.distributions import (
    DISTRIBUTIONS,
    PLAIN,
    Distribution,
    expand_variables,
    find_distribution,
    find_unread_template,
    unit_in_use,
)
from .._containerd.dump import read_effective
from .._core.finding import Finding
from .._core.redact import redact_data
from .._core.versions import find_version
from .._formats.toml_read import read_toml
from .._known_faults.answers import is_unreadable
from .._packages.installed import CONTAINERD_PACKAGES, DOCKER_PACKAGES, Package, select

if TYPE_CHECKING:
    from .._host.reader import NodeReader

CONTAINERD_CONFIG = PLAIN.config_path
DOCKER_CONFIG = "/etc/docker/daemon.json"

_BINARY_FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/bin")
_PACKAGED = ("/usr/bin/", "/usr/sbin/")
_UNPACK_SECONDS = 60
_NOTHING: dict[str, Any] = {
    "handlers": None,
    "default_handler": None,
    "cri_enabled": None,
    "cdi_enabled": None,
}
_DOCKER_SOCKETS = ("/run/docker.sock", "/var/run/docker.sock")


UNITS = (
    "containerd",
    "docker",
    "crio",
    *(unit for distribution in DISTRIBUTIONS for unit in distribution.units),
)


@dataclass(frozen=True)
class RuntimePaths:
    """The configuration files of plain containerd and Docker."""

    containerd: str = CONTAINERD_CONFIG
    docker: str = DOCKER_CONFIG


def read_runtimes(
    reader: NodeReader,
    units: Mapping[str, str | None] | None,
    paths: RuntimePaths,
    packages: Sequence[Package] = (),
    starts: Mapping[str, str] | None = None,
    cached_report: Callable[[str, str, Sequence[str]], Mapping[str, Any] | None] | None = None,
) -> tuple[dict[str, Any], list[Finding]]:
    """Return the fact ``runtimes`` and the problems of the runtimes.

    :param starts: the start times of the active units, in UTC.
    :param cached_report: returns the cached output of a runtime, from its name, its owner's name
        and the files that it depends on; None if the runtime has to be queried.
    """
    containerd, problems = _containerd(reader, units, paths.containerd, packages, cached_report)
    docker, docker_problems = _docker(reader, units, paths.docker, packages)
    crio, crio_problems = _crio(reader, units, starts or {})
    return (
        {"containerd": containerd, "docker": docker, "crio": crio},
        [*problems, *docker_problems, *crio_problems],
    )


def _binary(reader: NodeReader, name: str) -> str | None:
    return reader.first([f"{folder}/{name}" for folder in _BINARY_FOLDERS])


def _version(
    reader: NodeReader, binary: str | None, packages: Sequence[Package] = ()
) -> str | None:
    """Return the version of a binary: that of its package, or else the one that it reports.

    Starting these large programs takes longer than all other facts.
    """
    for package in packages:
        if binary and binary.startswith(_PACKAGED) and _untouched(reader, binary, package.name):
            return find_version(package.version.partition(":")[2] or package.version)
    answer = reader.run([binary, "--version"], timeout=10) if binary else None
    return find_version(answer.stdout) if answer and answer.ok else None


def _untouched(reader: NodeReader, binary: str, package: str) -> bool:
    """Return whether the binary is unchanged since dpkg unpacked it."""
    listed = reader.times(f"/var/lib/dpkg/info/{package}.list")
    times = reader.times(binary)
    # The change time, as archives set the modification time.
    return bool(listed and times and times[1] <= listed[0] + _UNPACK_SECONDS)


def _active(units: Mapping[str, str | None] | None, unit: str) -> bool | None:
    return None if units is None else units.get(unit) in ("active", "reloading")


def _containerd(
    reader: NodeReader,
    units: Mapping[str, str | None] | None,
    plain_config: str,
    packages: Sequence[Package],
    cached_report: Callable[[str, str, Sequence[str]], Mapping[str, Any] | None] | None,
) -> tuple[dict[str, Any] | None, list[Finding]]:
    distribution, _sign = find_distribution(lambda path: reader.first((path,)) is not None)
    if distribution is PLAIN:
        binary = _binary(reader, "containerd")
        config_path, unit, name = plain_config, "containerd", "containerd"
        if binary is None:
            return None, []
    else:
        binary = reader.first(distribution.binaries)
        config_path, name = distribution.config_path, distribution.name
        states = units or {}
        known = {
            item: bool(_active(states, item)) for item in distribution.units if states.get(item)
        }
        unit = unit_in_use(known) or distribution.units[0]
    text = reader.read_text(config_path)
    report = None
    if cached_report and binary:
        report = cached_report("containerd", name, (binary, config_path))
    if report is None:
        effective, problems = _containerd_effective(reader, binary, config_path, text, distribution)
        version = _version(reader, binary, select(packages, CONTAINERD_PACKAGES))
    else:
        effective = {item: report.get(item) for item in _NOTHING}
        version = find_version(str(report.get("version")))
        problems = [] if effective["cri_enabled"] else [_cri_disabled(config_path)]
    config = None if text is None else config_version(text)
    unread = find_unread_template(distribution, reader.read_text, config, effective["handlers"])
    problems = [*problems, *([unread] if unread else [])]
    return (
        {
            "version": version,
            "distribution": name,
            "config_path": config_path,
            "config_version": config,
            "unit": unit,
            "active": _active(units, unit),
            "control_plane": unit in distribution.control_plane_units,
            **effective,
        },
        problems,
    )


def _containerd_effective(
    reader: NodeReader,
    binary: str | None,
    config_path: str,
    text: str | None,
    distribution: Distribution,
) -> tuple[dict[str, Any], list[Finding]]:
    """Return handlers, default handler and state of CRI from ``containerd config dump``."""
    nothing = dict(_NOTHING)
    exists = not reader.absent(config_path)
    if binary is None or (exists and text is None):
        return nothing, []
    # A file passed with --config must exist, the default file need not.
    choice = ["--config", config_path] if exists else []
    answer = reader.run([binary, *choice, "config", "dump"])
    if answer is None:
        return nothing, []
    try:
        if answer.ok:
            effective = read_effective(expand_variables(answer.stdout, distribution.variables))
            return effective, ([_cri_disabled(config_path)] if not effective["cri_enabled"] else [])
        message = answer.last_output()
    except ValueError as error:
        message = str(error)
    if is_unreadable(message):
        return nothing, []
    return nothing, [
        Finding(
            "containerd_config_invalid",
            f"containerd cannot load {config_path}: it will not come back from a restart.",
            message,
            f"Correct it, then check: containerd --config {config_path} config dump",
        )
    ]


def _cri_disabled(config_path: str) -> Finding:
    return Finding(
        "cri_disabled",
        "containerd's CRI plugin is disabled: Kubernetes cannot use it, and its runtime handlers "
        "have no effect.",
        f'disabled_plugins holds "cri" (containerd --config {config_path} config dump)',
        "Where Kubernetes is to use this containerd: containerd_runtime with enable_cri: true. "
        "Where only Docker does, leave it.",
    )


def config_version(text: str) -> int | None:
    """Return the version that a configuration file of containerd declares; the default is 1."""
    try:
        version = read_toml(text).get("version", 1)
    except ValueError:
        # A template (k3s) or an invalid file: read the line itself.
        match = re.search(r"^version[ \t]*=[ \t]*(\d+)", text, re.M)
        return int(match.group(1)) if match else None
    return version if isinstance(version, int) else None


def _docker(
    reader: NodeReader,
    units: Mapping[str, str | None] | None,
    config_path: str,
    packages: Sequence[Package],
) -> tuple[dict[str, Any] | None, list[Finding]]:
    binary = _binary(reader, "dockerd")
    if binary is None:
        return None, []
    problems = []
    text = reader.read_text(config_path)
    configured: dict[str, Any] | None = None
    if text is not None:
        try:
            configured = read_daemon_json(text)
        except ValueError as error:
            problems.append(
                Finding(
                    "docker_config_invalid",
                    f"dockerd cannot load {config_path}: it will not come back from a restart.",
                    str(error),
                    f"Correct it, then check: dockerd --validate --config-file={config_path}",
                )
            )
    elif reader.absent(config_path):
        configured = read_daemon_json("")
    active = _active(units, "docker")
    running = _query_docker(reader, active)
    version = running.pop("version", None) or _version(
        reader, binary, select(packages, DOCKER_PACKAGES)
    )
    return (
        {
            "version": version,
            "config_path": config_path,
            "unit": "docker",
            "active": active,
            "runtimes": None,
            "default_runtime": None,
            "live_restore": None,
            "containers_running": None,
            **(configured or {}),
            **running,
        },
        problems,
    )


def _query_docker(reader: NodeReader, active: bool | None) -> dict[str, Any]:
    # Connecting to the socket of a stopped unit would start it.
    if active is False or (active is None and not reader.exists("/run/docker.pid")):
        return {}
    for path in _DOCKER_SOCKETS:
        body = reader.ask_http(path, "/info")
        if body is not None:
            return read_docker_info(body)
    return {}


def read_docker_info(body: bytes) -> dict[str, Any]:
    """Return the facts from the body of Docker's ``/info``; empty if it is not valid."""
    try:
        info = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(info, dict) or not isinstance(info.get("Runtimes"), dict):
        return {}
    return {
        "version": find_version(str(info.get("ServerVersion"))) or info.get("ServerVersion"),
        "runtimes": _docker_runtimes(info["Runtimes"]),
        "default_runtime": info.get("DefaultRuntime"),
        "live_restore": info.get("LiveRestoreEnabled"),
        "containers_running": info.get("ContainersRunning"),
    }


def read_daemon_json(text: str) -> dict[str, Any]:
    """Return the same facts from ``daemon.json``; empty text and ``null`` are valid.

    :raises ValueError: dockerd would refuse the file.
    """
    text = text.lstrip("\ufeff").strip()
    try:
        data = json.loads(text) if text else {}
    except RecursionError as error:
        raise ValueError("values are nested too deep") from error
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise ValueError("daemon.json is not an object")
    runtimes = data.get("runtimes") or {}
    if not isinstance(runtimes, dict) or isinstance(data.get("runtimes"), list):
        raise ValueError("runtimes is not an object")
    return {
        "runtimes": _docker_runtimes(runtimes),
        "default_runtime": data.get("default-runtime") or "runc",
        "live_restore": bool(data.get("live-restore", False)),
    }


def _docker_runtimes(runtimes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "path": table.get("path"),
            "args": redact_data(table.get("runtimeArgs") or []),
            "type": table.get("runtimeType"),
        }
        for name, table in runtimes.items()
        if isinstance(table, dict)
    }


def _crio(
    reader: NodeReader, units: Mapping[str, str | None] | None, starts: Mapping[str, str]
) -> tuple[dict[str, Any] | None, list[Finding]]:
    binary = _binary(reader, "crio")
    if binary is None:
        return None, []
    # Few nodes have CRI-O: the others do not compile this file.
    from .._crio.facts import CONFIG, DROP_IN, read_crio  # noqa: PLC0415

    active = _active(units, "crio")
    configured, problems = read_crio(reader, active, starts.get("crio"))
    return (
        {
            "version": _version(reader, binary),
            "config_path": CONFIG,
            "drop_in_path": DROP_IN,
            "unit": "crio",
            "active": active,
            **configured,
        },
        problems,
    )
