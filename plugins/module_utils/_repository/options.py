# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the module ``package_repository``."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .._core.redact import secrets
from .._distro.os_release import read_os
from .._host.command import Runner
from .._host.files import read_file
from .._host.reader import NodeReader
from .apt import AptFormat
from .rpm import RPM_FORMATS, rpm_format
from .types import Format, Request

_DIRECTORIES = (
    *("sources_directory", "sources_list", "keyring_directory", "configuration_directory"),
)


@dataclass(frozen=True)
class Options:
    """The request, and how the module carries it out.

    ``architecture`` is that of the node in the words of its package manager.
    """

    request: Request
    architecture: str = ""
    key_url: str = ""
    validate: bool = True
    check_mode: bool = False

    def secrets(self) -> tuple[str, ...]:
        """Return the passwords in addresses, which may appear in no log."""
        request = self.request
        return secrets(
            *(request.url, request.http_proxy, request.https_proxy, self.key_url),
            *request.replaces,
        )


def read_options(params: Mapping[str, Any], run: Runner, *, check_mode: bool) -> Options:
    """Return the options from the module's parameters.

    :raises InputError: the package manager of the node is not supported.
    """
    format_, architecture = _find_format(params, run)
    return Options(
        _read_request(params, format_),
        architecture,
        params["key_url"] or "",
        params["validate"],
        check_mode,
    )


def _read_request(params: Mapping[str, Any], format_: Format) -> Request:
    return Request(
        name=params["name"],
        format=format_,
        present=params["state"] == "present",
        url=params["url"] or "",
        suite=format_.suite if params["suite"] is None else params["suite"],
        components=tuple(params["components"]),
        key=params["key"] or "",
        key_fingerprints=tuple(params["key_fingerprints"] or ()),
        keyring=params["keyring"] or "",
        keyring_key=read_file(params["keyring"]).content if params["keyring"] else None,
        http_proxy=params["http_proxy"] or "",
        https_proxy=params["https_proxy"] or "",
        no_proxy=params["no_proxy"] or "",
        ca_file=params["ca_file"] or "",
        replaces=tuple(params["replaces"]),
        check_packages=params["check_packages"],
        check_metadata=params["check_metadata"],
    )


def _find_format(params: Mapping[str, Any], run: Runner) -> tuple[Format, str]:
    """Return the format of the package manager's files, and the node's architecture for it."""
    name = params["format"]
    if name == "auto":
        name = read_os(NodeReader(run=run))["package_manager"] or ""
    directories = {
        option: params[option].rstrip("/") for option in _DIRECTORIES if params[option] is not None
    }
    if name == "apt":
        return AptFormat(**directories), _architecture(run, params["format"])
    if name in RPM_FORMATS:
        unknown = sorted({"configuration_directory", "sources_list"} & set(directories))
        if unknown:
            raise InputError(f"{', '.join(unknown)} is an option for apt alone.")
        return rpm_format(name, **directories), platform.machine()
    raise InputError(
        f"This node installs packages with {name or 'a tool that is not known'}, whose "
        "repositories this release does not set up.",
        next_step="Set up the repository with the module of its package manager "
        "(ansible.builtin.yum_repository, community.general.zypper_repository).",
    )


def _architecture(run: Runner, wanted: str) -> str:
    answer = run(["dpkg", "--print-architecture"])
    if answer.ok:
        return answer.stdout.strip()
    if wanted == "apt":
        return ""
    raise InputError(
        "This node does not use apt, and no other package manager is known to this release.",
        evidence=answer.last_output(),
        next_step="Set up the repository with the module of its package manager "
        "(ansible.builtin.yum_repository, community.general.zypper_repository).",
    )
