# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of the driver's filter and module, read into a request. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .._core.errors import InputError
from .._core.options import truth
from .._nvidia.driver_branches import is_date
from .plan.config_files import gridd, options
from .plan.memory_mode import check as check_memory
from .types import Request

_CHOICES = {
    "state": ("present", "absent"),
    "kernel_module": ("auto", "open", "proprietary"),
    "source": ("auto", "distro", "nvidia", "runfile"),
    "dkms": ("auto", "true", "false"),
    "coherent_memory": ("auto", "driver", "numa"),
    "fabric": ("auto", "true", "false"),
    "imex": ("auto", "true", "false"),
}
# The request's part of the module's argument spec.
REQUEST_ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": list(_CHOICES["state"]), "default": "present"},
    "branch": {"type": "str", "default": "auto"},
    "version": {"type": "str", "default": ""},
    "kernel_module": {
        "type": "str",
        "choices": list(_CHOICES["kernel_module"]),
        "default": "auto",
    },
    "source": {
        "type": "str",
        "choices": list(_CHOICES["source"]),
        "default": "auto",
    },
    "runfile": {
        "type": "dict",
        "options": {
            "url": {"type": "str"},
            "path": {"type": "str"},
            "checksum": {"type": "str"},
            "version": {"type": "str"},
            "remote": {"type": "bool", "default": False},
        },
    },
    "hold": {"type": "bool", "default": True},
    "load": {"type": "bool", "default": True},
    "replace_source": {"type": "bool", "default": False},
    "dkms": {"type": "str", "choices": list(_CHOICES["dkms"]), "default": "auto"},
    "compute_only": {"type": "bool", "default": False},
    "module_options": {"type": "dict", "default": {}},
    "coherent_memory": {
        "type": "str",
        "choices": list(_CHOICES["coherent_memory"]),
        "default": "auto",
    },
    "persistence": {"type": "bool", "default": True},
    "fabric": {"type": "str", "choices": list(_CHOICES["fabric"]), "default": "auto"},
    "imex": {"type": "str", "choices": list(_CHOICES["imex"]), "default": "auto"},
    "imex_nodes": {"type": "list", "elements": "str", "default": []},
    "licence": {"type": "dict", "default": {}},
    "repository_name": {"type": "str", "default": "kubegpu-nvidia-driver"},
    "repository_url": {"type": "str", "default": ""},
    "repository_key_url": {"type": "str", "default": "", "no_log": False},
    "key_fingerprints": {
        "type": "list",
        "elements": "str",
        "default": [],
        "no_log": False,
    },
    "manage_repository": {"type": "bool", "default": True},
    "branches": {"type": "dict", "default": {}},
    "gpus": {"type": "dict", "default": {}},
    "repositories": {"type": "dict", "default": {}},
}
_BRANCH = re.compile(r"(?:auto|\d{3,})\Z")
_VERSION = re.compile(r"(?:previous|\d{3,}\.\d+(?:\.\d+)?)?\Z")
# An IPv4 or IPv6 address, or a host name.
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*\Z")
_RUNFILE_KEYS = ("url", "path", "checksum", "version", "remote")


def read_request(given: Mapping[str, Any]) -> Request:
    """Return the request. An option that is missing or None has its default.

    :raises InputError: an option has a value that is not valid.
    """
    wishes: dict[str, Any] = {}
    for name, known in Request.__dataclass_fields__.items():
        value = given.get(name)
        if value is None:
            continue
        if isinstance(known.default, bool):
            wishes[name] = _boolean(name, value)
        elif name in ("key_fingerprints", "imex_nodes"):
            texts = [value] if isinstance(value, str) else value
            wishes[name] = tuple(str(text) for text in texts)
        elif name in ("runfile", "module_options", "licence"):
            if not isinstance(value, Mapping):
                raise _wrong(name, value, "a mapping")
            wishes[name] = dict(value)
        else:
            wishes[name] = str(value).strip()
    request = Request(**wishes)
    return _checked(
        replace(
            request,
            # YAML reads true as a boolean; here it is a choice.
            dkms=request.dkms.lower(),
            fabric=request.fabric.lower(),
            imex=request.imex.lower(),
            runfile=request.runfile or None,
        )
    )


def _checked(request: Request) -> Request:
    for name, choices in _CHOICES.items():
        if getattr(request, name) not in choices:
            raise _wrong(name, getattr(request, name), f"one of {', '.join(choices)}")
    if not _BRANCH.match(request.branch):
        raise _wrong("branch", request.branch, "auto or a number such as 580")
    if not _VERSION.match(request.version):
        raise _wrong(
            "version",
            request.version,
            "a driver's version such as 580.126.09 (without the package's revision), or previous",
        )
    if request.today and not is_date(request.today):
        raise _wrong("today", request.today, "a date as YYYY-MM-DD")
    wrong = [one for one in request.imex_nodes if not _ADDRESS.match(one)]
    if wrong:
        raise _wrong("imex_nodes", wrong, "a list of addresses or names")
    if request.runfile is not None:
        unknown = sorted(str(key) for key in request.runfile if key not in _RUNFILE_KEYS)
        if unknown:
            raise _wrong("runfile", ", ".join(unknown), f"made of {', '.join(_RUNFILE_KEYS)}")
        if bool(request.runfile.get("url")) == bool(request.runfile.get("path")):
            raise _wrong("runfile", dict(request.runfile), "given with either url or path")
        version = str(request.runfile.get("version") or "")
        if version == "previous" or not _VERSION.match(version):
            raise _wrong("runfile.version", version, "a driver's version such as 580.126.09")
    if request.runfile is None and request.source == "runfile" and request.version == "previous":
        raise _wrong("runfile", None, "given: the earlier file may not be on the node any more")
    if request.manage_repository and not request.repository_name.startswith("kubegpu-"):
        raise _wrong(
            "repository.name",
            request.repository_name,
            "a name that begins with kubegpu-, by which the facts know our own file",
        )
    # Only to validate them; the texts are built where they are needed.
    options(request.module_options, debian=False)
    check_memory(request)
    gridd(request.licence)
    return request


def _boolean(name: str, value: Any) -> bool:
    found = truth(value)
    if found is None:
        raise _wrong(name, value, "true or false")
    return found


def _wrong(name: str, value: Any, words: str) -> InputError:
    return InputError(f"nvidia_driver_{name} has to be {words}.", evidence=f"{name}: {value!r}")
