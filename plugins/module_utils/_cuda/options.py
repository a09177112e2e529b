# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the options of the module and the filter of the CUDA toolkits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._core.checks import of_variable
from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments
from .._nvidia.compatibility import nearest, parse_cuda, parse_driver
from .._nvidia.cuda_releases import CudaData, cuda_data
from .._nvidia.driver_branches import driver_data
from .types import LIBRARIES, NO_DEFAULT, SOURCES, Request, Tables

#: The prefix of the role's variables.
PREFIX = "cuda_toolkit_"
_TABLES = ("data", "repositories")
#: The options of the filter.
ARGUMENTS = {
    **argument_spec(
        Request,
        # Not converted: YAML reads 12.10 as the number 12.1.
        versions={"type": "raw"},
        default={"type": "raw"},
        source={"choices": list(SOURCES)},
        repository_key_url={"no_log": False},
        key_fingerprints={"no_log": False},
    ),
    **{name: {"type": "dict", "default": {}} for name in _TABLES},
}
#: Those of the module, which knows the controller by itself.
MODULE_ARGUMENTS = {name: rule for name, rule in ARGUMENTS.items() if name != "controller"}


def read_options(given: Mapping[str, Any]) -> tuple[Request, Tables]:
    """Return the request and the data. An option that is missing or None has its default.

    :raises InputError: an option has a wrong value; the message names the role's variable.
    """
    values = read_arguments(ARGUMENTS, given, PREFIX)
    data, repositories = (values.pop(name) for name in _TABLES)
    _parsed("data", cuda_data, data)
    tables = Tables(cuda_data(data), driver_data(repositories=repositories))
    values["versions"] = _versions(values["versions"], tables.cuda)
    request = Request(**values)
    _check(request, tables.cuda)
    return request, tables


def _check(request: Request, data: CudaData) -> None:
    if not isinstance(request.default, str):
        raise InputError(
            f"{PREFIX}default is {request.default!r}, which is not text.",
            next_step=_as_text(request.default, data),
        )
    default = () if request.default in ("", NO_DEFAULT) else (request.default,)
    for name, versions in (("versions", request.versions), ("default", default)):
        for version in versions:
            _parsed(name, parse_cuda, version)
    if request.driver_version:
        _parsed("driver_version", parse_driver, request.driver_version)
    unknown = sorted(set(request.libraries) - set(LIBRARIES))
    if unknown:
        raise InputError(
            f"{PREFIX}libraries: {', '.join(map(str, unknown))} is not known.",
            next_step=f"Name {' or '.join(LIBRARIES)}; install others by package_set.",
        )
    for key, item in request.runfiles.items():
        if not isinstance(key, str):
            raise InputError(f"{PREFIX}runfiles: put {key!r} in quotes.")
        if not isinstance(item, Mapping):
            raise InputError(
                f"{PREFIX}runfiles[{key}] is not a mapping.",
                next_step="Write {url: ..., checksum: 'sha256:...'}.",
            )


def _parsed(name: str, parse: Callable[[Any], object], version: Any) -> None:
    """Check a version or a table, and name the variable in the error."""
    try:
        parse(version)
    except InputError as error:
        raise of_variable(f"{PREFIX}{name}", error) from error


def _versions(value: Any, data: CudaData) -> tuple[str, ...]:
    if isinstance(value, str):
        # As Ansible reads a list.
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, (list, tuple)):
        raise InputError(
            f"{PREFIX}versions is {value!r}, which is not a list.",
            next_step=_as_text(value, data, "[{}]"),
        )
    for item in value:
        if not isinstance(item, str):
            raise InputError(
                f"{PREFIX}versions has {item!r}, which is not text.",
                next_step=_as_text(item, data),
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
            f"CUDA {text} is not a known release; the nearest known ones are {' and '.join(near)}. "
        )
    advice = f"Write {form.format(repr(text if known else near[0]))}"
    if isinstance(value, float):
        advice += ", with the quotes: without them YAML reads 12.10 as the number 12.1"
    return f"{start}{advice}."
