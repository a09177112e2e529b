# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of the module ``package_set``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .types import Lock, Request


@dataclass(frozen=True)
class Options:
    """The module's options. Those of the action plugin alone are the last four.

    ``warn``: reports a warning at once, so that a later failure does not lose it.
    ``run``: identifier of the run that works on the set. ``failure``: output of the package manager
    that failed. ``version_only``: packages that were passed to it for their version alone.
    ``streams``: the streams of modules before this run's change.
    """

    name: str
    request: Request
    present: bool = True
    check_mode: bool = False
    update_cache: bool = True
    repository_expected: bool = True
    lock_timeout: int = 600
    preserve: tuple[str, ...] = ()
    warn: Callable[[str], None] = field(default=lambda _text: None, compare=False)
    run: str = ""
    failure: str = ""
    version_only: tuple[str, ...] = ()
    streams: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return the key of the set's record on the node."""
        return f"package_set:{self.name}"

    def temporary(self, beginning: str) -> str:
        """Return the set's directory for temporary files; empty without a beginning.

        Each set has one: a run that lost its connection can still use that of another set.
        """
        return f"{beginning}-{quote(self.name, safe='')}" if beginning else ""


def read_options(
    params: Mapping[str, Any], *, check_mode: bool, warn: Callable[[str], None]
) -> Options:
    """Return the options from the module's parameters."""
    return Options(
        name=params["name"],
        request=_read_request(params),
        present=params["state"] == "present",
        check_mode=check_mode,
        update_cache=params["update_cache"],
        repository_expected=params["repository_expected"],
        lock_timeout=params["lock_timeout"],
        preserve=tuple(params["preserve"]),
        warn=warn,
        run=params["_run"],
        failure=params["_failure"],
        version_only=tuple(params["_named"]),
        streams=params["_streams"],
    )


def _read_request(params: Mapping[str, Any]) -> Request:
    lock = params["lock"]
    return Request(
        _versions(params["packages"] or {}),
        params["hold"],
        tuple(params["obsolete"]),
        _versions(params["optional"]),
        Lock(tuple(lock["patterns"]), lock["version"]) if lock else None,
        {name: str(stream) for name, stream in params["module_streams"].items()},
    )


def _versions(packages: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: None if version is None else str(version) for name, version in packages.items()}
