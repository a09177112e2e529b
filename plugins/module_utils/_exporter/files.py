# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The texts of the files of each method: program, units and counters. Pure."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.collection import COLLECTION
from .._hardware.vendors import container_gpus
from . import program
from .data import (
    CONTAINER,
    CONTAINER_PATH,
    CONTAINER_UNIT,
    COUNTERS_PATH,
    DCGM_UNIT,
    DROP_IN_PATH,
    EXPORTER_UNIT,
    IMAGE_SUFFIX,
    OUTPUT,
    PACKAGES,
    PROGRAM_PATH,
    SERVICE_PATH,
    STATE_FOLDER,
    STATE_PATH,
    TEXTFILE_UNIT,
    TIMER_PATH,
)
from .types import Request, Setup

_HEAD = "# Written by kubegpu.nodes.gpu_exporter.\n"
_ENGINE = "localhost:5555"
# Seconds for nvidia-smi, and for the whole program, which also waits for a process to be killed.
_SMI_SECONDS = 10
_PROGRAM_SECONDS = 45
# nvidia-smi needs its device files. The others keep a program that parses texts of a driver from
# all but reading the node and writing one folder.
_HARDENING = """\
ProtectSystem=strict
ProtectHome=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
PrivateTmp=yes
PrivateNetwork=yes
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_SYSLOG CAP_SYS_ADMIN
UMask=0022
MemoryMax=512M
TasksMax=64
"""


def setup(method: str, request: Request, node: Mapping[str, Any], gpus: Sequence[str]) -> Setup:
    """Return files and units of a method; nothing for an empty one.

    :param node: the fact ``gpu_node``.
    :param gpus: PCI addresses of the expected GPUs.
    """
    if method == PACKAGES:
        files = {COUNTERS_PATH: _counters(request), DROP_IN_PATH: _drop_in(request)}
        return Setup(files, (DCGM_UNIT, EXPORTER_UNIT), (EXPORTER_UNIT,))
    if method == CONTAINER:
        files = {COUNTERS_PATH: _counters(request), CONTAINER_PATH: _container(request)}
        return Setup(files, (CONTAINER_UNIT,), (CONTAINER_UNIT,))
    if not method:
        return Setup()
    return Setup(
        {
            PROGRAM_PATH: program_text(),
            SERVICE_PATH: _service(request, node, gpus),
            TIMER_PATH: _timer(request.interval),
        },
        (f"{TEXTFILE_UNIT}.timer",),
        (f"{TEXTFILE_UNIT}.timer",),
        f"{TEXTFILE_UNIT}.service",
    )


def program_text() -> str:
    """Return the source of the program, also from the archive in which Ansible sends modules."""
    return inspect.getsource(program)


def textfile_directory(request: Request, node: Mapping[str, Any]) -> str:
    """Return where node_exporter reads text files; empty if that is not known."""
    found: Sequence[str] = node["exporter"]["textfile_directories"]
    return request.textfile_directory.rstrip("/") or next(iter(found), "")


def output_path(directory: str) -> str:
    """Return the file that the program writes."""
    return f"{directory}/{OUTPUT}"


def _counters(request: Request) -> str:
    return f"{_HEAD}{request.counters.rstrip()}\n"


def _exporter_arguments(request: Request) -> list[str]:
    arguments = ["--collectors", COUNTERS_PATH, "--address", request.listen]
    arguments += ["--collect-interval", str(request.interval * 1000)]
    if request.web_config:
        arguments += ["--web-config-file", request.web_config]
    if request.job_mapping_dir:
        arguments += ["--hpc-job-mapping-dir", request.job_mapping_dir]
    return arguments


def _drop_in(request: Request) -> str:
    """Return the settings over those of NVIDIA's unit.

    Its log file is never rotated, and without the host engine's address the exporter would start a
    second engine next to nvidia-dcgm.
    """
    command = ["/usr/bin/dcgm-exporter", *_exporter_arguments(request)]
    command += ["--remote-hostengine-info", _ENGINE]
    return (
        f"{_HEAD}[Unit]\nRequires={DCGM_UNIT}.service\n\n[Service]\nExecStart=\n"
        f"ExecStart={_line(command)}\nRestart=always\nRestartSec=10\n"
        "StandardOutput=journal\nStandardError=journal\n"
    )


def image(request: Request) -> str:
    """Return the image of the exporter."""
    if request.digest:
        return f"{request.image}@{request.digest}"
    return f"{request.image}:{request.version}{IMAGE_SUFFIX}"


def _container(request: Request) -> str:
    run = ["/usr/bin/docker", "run", "--rm", "--name", CONTAINER_UNIT, "--gpus", "all"]
    # The profiling counters of the driver are for administrators only.
    run += ["--cap-add", "SYS_ADMIN"] if request.profiling else []
    run += ["--network", "host", "--volume", f"{COUNTERS_PATH}:{COUNTERS_PATH}:ro"]
    if request.web_config:
        folder = request.web_config.rpartition("/")[0] or "/"
        # With the certificate and key that it names by their paths.
        run += ["--volume", f"{folder}:{folder}:ro"]
    if request.job_mapping_dir:
        run += ["--volume", f"{request.job_mapping_dir}:{request.job_mapping_dir}:ro"]
    remove = ["/usr/bin/docker", "rm", "--force", CONTAINER_UNIT]
    return (
        f"{_HEAD}[Unit]\nDescription=DCGM exporter in a container\n"
        "After=docker.service network-online.target\nWants=network-online.target\n"
        "Requires=docker.service\n\n[Service]\n"
        f"ExecStartPre=-{_line(remove)}\n"
        f"ExecStart={_line([*run, image(request), *_exporter_arguments(request)])}\n"
        f"ExecStop={_line(['/usr/bin/docker', 'stop', CONTAINER_UNIT])}\n"
        f"ExecStopPost=-{_line(remove)}\n"
        "Restart=always\nRestartSec=15\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def _service(request: Request, node: Mapping[str, Any], gpus: Sequence[str]) -> str:
    directory = textfile_directory(request, node)
    command = [node["exporter"]["python"], PROGRAM_PATH, "--output", output_path(directory)]
    command += ["--state", STATE_PATH, "--release", COLLECTION]
    if container_gpus(node):
        command += ["--nvidia-smi", "nvidia-smi", "--timeout", str(_SMI_SECONDS)]
    for address in gpus:
        command += ["--gpu", address]
    return (
        f"{_HEAD}[Unit]\nDescription=Metrics of the GPUs for node_exporter\n"
        f"ConditionPathIsDirectory={directory}\n\n[Service]\nType=oneshot\n"
        f"ExecStart={_line(command)}\nTimeoutStartSec={_PROGRAM_SECONDS}\n"
        f"RuntimeDirectory={STATE_FOLDER}\nRuntimeDirectoryPreserve=yes\n"
        f"ReadWritePaths={directory}\n{_HARDENING}"
    )


def _timer(interval: int) -> str:
    return (
        f"{_HEAD}[Unit]\nDescription=Metrics of the GPUs for node_exporter\n\n"
        f"[Timer]\nOnActiveSec=1\nOnUnitInactiveSec={interval}\nAccuracySec=1\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )


def _line(words: Sequence[str]) -> str:
    """Return a command of a unit; the options allow no blanks and quotes in what users give."""
    return " ".join(shlex.quote(word).replace("%", "%%") for word in words)
