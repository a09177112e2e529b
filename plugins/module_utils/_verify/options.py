# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of ``gpu_node_verify``: checked, and read into a request and the options of the probe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .._containerd.distributions import PLAIN
from .._core.checks import check_at_least, check_expression
from .._core.errors import InputError
from .._kube.image import check_reference
from .._nvidia.toolkit_paths import RUNTIME_PATH
from .types import NODE_LAYERS, Request


@dataclass(frozen=True)
class ProbeOptions:
    """How the node is probed; timeouts in seconds. The module documents each option."""

    layers: tuple[str, ...] = NODE_LAYERS
    container: bool = True
    engines: tuple[str, ...] = ("containerd", "docker", "crio")
    handler: str = "nvidia"
    runtime_path: str = RUNTIME_PATH
    image: str = ""
    archive: str = ""
    pull: bool = False
    command: tuple[str, ...] = ()
    expect: str = ""
    devices: tuple[str, ...] = ("all",)
    timeout: int = 60
    image_timeout: int = 600
    fabric: str = "auto"
    fabric_timeout: int = 120
    licence_timeout: int = 60
    driver_timeout: int = 60
    containerd_socket: str = PLAIN.socket


def check_options(params: Mapping[str, Any], is_file: Callable[[str], bool]) -> None:
    """Check what the argument specification cannot.

    :param is_file: whether a path of the node is a file.
    :raises InputError: an option has a wrong value.
    """
    check_expression("expect", params["expect"])
    for name in ("fabric_timeout", "licence_timeout"):
        check_at_least(name, params[name], 0)
    for name in ("timeout", "image_timeout", "driver_timeout"):
        check_at_least(name, params[name])
    if params["image"]:
        check_reference("image", params["image"])
    archive = params["image_archive"]
    if archive and not is_file(archive):
        raise InputError(
            f"image_archive: there is no file {archive} on the node.",
            next_step="Copy it there first, or correct the path.",
        )
    if not params["devices"] or not all(
        re.fullmatch(r"all|[\w./=:-]+(?:,[\w./=:-]+)*", one) for one in params["devices"]
    ):
        raise InputError(
            f"devices is {params['devices']!r}.",
            next_step="Give a list of all, numbers such as '0' or '0,1', or UUIDs.",
        )


def read_probe_options(params: Mapping[str, Any]) -> ProbeOptions:
    return ProbeOptions(
        layers=tuple(params["layers"]),
        container=params["container"],
        engines=tuple(params["engines"]),
        handler=params["name"],
        runtime_path=params["runtime_path"],
        image=params["image"],
        archive=params["image_archive"] or "",
        pull=params["pull"],
        command=tuple(params["command"]),
        expect=params["expect"],
        devices=tuple(params["devices"]),
        timeout=params["timeout"],
        image_timeout=params["image_timeout"],
        fabric=params["fabric"],
        fabric_timeout=params["fabric_timeout"],
        licence_timeout=params["licence_timeout"],
        driver_timeout=params["driver_timeout"],
        containerd_socket=params["containerd_socket"],
    )


def read_request(params: Mapping[str, Any]) -> Request:
    return Request(
        gpus=params["gpus"],
        driver=params["driver_version"],
        cdi=params["cdi"],
        default=tuple(params["require_default"]),
        layers=tuple(params["layers"]),
    )
