# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of the module and the filter of the CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._core.errors import InputError
from .._nvidia.compatibility import nearest, parse_cuda, parse_driver
from .._nvidia.cuda_releases import CudaData, cuda_data
from .._nvidia.driver_branches import driver_data
from .types import LIBRARIES, NO_DEFAULT, SOURCES, Request, Tables


def read_options(options: Mapping[str, Any]) -> tuple[Request, Tables]:
    """Return the request and the data from the options of the filter or the module.

    :raises InputError: the value of an option is invalid.
    """
    data = cuda_data(options.get("data"))
    values = {name: options[name] for name in Request.__dataclass_fields__ if name in options}
    for name in ("versions", "key_fingerprints", "planned_repositories"):
        if name in values:
            values[name] = _texts(name, values[name], data)
    for name in ("runfiles", "libraries"):
        values[name] = _mapping(name, values.get(name))
    request = Request(**values)
    if not isinstance(request.default, str):
        raise InputError(
            f"default is {request.default!r}, which is no text.",
            next_step=_as_text(request.default, data),
        )
    for version in request.versions:
        parse_cuda(version)
    if request.default not in ("", NO_DEFAULT):
        parse_cuda(request.default)
    if request.source not in SOURCES:
        raise InputError(
            f"source is {request.source!r}.", next_step=f"Give one of {', '.join(SOURCES)}."
        )
    unknown = sorted(set(request.libraries) - set(LIBRARIES))
    if unknown:
        raise InputError(
            f"libraries: {', '.join(unknown)} is not known.",
            next_step=f"Name {' or '.join(LIBRARIES)}; install others by package_set.",
        )
    if request.driver_version:
        parse_driver(request.driver_version)
    return request, Tables(data, driver_data(repositories=options.get("repositories")))


def _texts(name: str, value: Any, data: CudaData) -> tuple[str, ...]:
    if value is None:
        return ()
    versions = name == "versions"
    if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
        raise InputError(
            f"{name} is {value!r}, which is no list.",
            next_step=_as_text(value, data, "[{}]") if versions else "Write a list of texts.",
        )
    for item in value:
        if not isinstance(item, str):
            raise InputError(
                f"{name} has {item!r}, which is no text.",
                next_step=_as_text(item, data) if versions else "Put each item in quotes.",
            )
    return tuple(value)


def _as_text(value: Any, data: CudaData, form: str = "{}") -> str:
    """Return how to write the version in ``form``, or the nearest release if it is unknown."""
    text = str(value).strip()
    try:
        parts = parse_cuda(text)
    except InputError:
        return f"Write versions in quotes, such as {form.format(repr('12.9'))}."
    near = nearest(text, data)
    known = any(parts[:2] == parse_cuda(name) for name in near)
    start = ""
    if not known:
        start = (
            f"CUDA {text} is no known release; the nearest known ones are {' and '.join(near)}. "
        )
    advice = f"Write {form.format(repr(text if known else near[0]))}"
    if isinstance(value, float):
        advice += ", with the quotes: without them YAML reads 12.10 as the number 12.1"
    return f"{start}{advice}."


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {value!r}, which is no mapping.")
    for key, item in value.items():
        if not isinstance(key, str):
            raise InputError(f"{name}: put {key!r} in quotes.")
        if name == "runfiles" and not isinstance(item, Mapping):
            raise InputError(
                f"runfiles[{key}] is {item!r}, which is no mapping.",
                next_step="Write {url: ..., checksum: 'sha256:...'}.",
            )
    return dict(value)
