# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The request of the files for Prometheus, and the reader of its options. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._core.errors import InputError
from .._core.options import argument_spec, read_arguments

_PATH = re.compile(r"/[\w./@+-]*\Z", re.ASCII)
_WORD = re.compile(r"[\w.-]+\Z", re.ASCII)
_TARGET = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}\Z", re.ASCII)


@dataclass(frozen=True)
class Request:
    """The options of the user.

    :param hosts: the hosts of this run; one without targets is taken out.
    :param rules: the text of the file of rules; empty: none is written.
    """

    hosts: Sequence[Mapping[str, Any]] = ()
    rules: str = ""
    config: str = "/etc/prometheus/prometheus.yml"
    rules_file: str = "/etc/prometheus/rules/kubegpu.yml"
    targets_file: str = "/etc/prometheus/file_sd/kubegpu.yml"
    manage_config: bool = True
    job: str = "kubegpu"
    unit: str = "prometheus"

    @property
    def expected_file(self) -> str:
        """Where the rules with the number of GPUs of each host are."""
        start, _dot, end = self.rules_file.rpartition(".")
        return f"{start}-expected.{end}"


_HOST = {
    "host": {"type": "str", "required": True},
    "targets": {"type": "list", "elements": "str", "default": []},
    "job": {"type": "str", "default": ""},
    "scheme": {"type": "str", "choices": ["http", "https"], "default": "http"},
    "gpus": {"type": "int", "default": 0},
}
ARGUMENTS = argument_spec(Request, hosts={"elements": "dict", "options": _HOST})


def read_options(given: Mapping[str, Any]) -> Request:
    """Return the request. An option that is missing or None has its default.

    :raises InputError: an option has a wrong value.
    """
    request = Request(**read_arguments(ARGUMENTS, given))
    for name in ("config", "rules_file", "targets_file"):
        path = getattr(request, name)
        if not _PATH.match(path) or not path.endswith((".yml", ".yaml")):
            raise InputError(
                f"{name} is {path!r}.",
                next_step="Give the absolute path of a file .yml, without blanks and quotes.",
            )
    for name in ("job", "unit"):
        if not _WORD.match(getattr(request, name)):
            raise InputError(f"{name} is {getattr(request, name)!r}.", next_step="Give one word.")
    for host in request.hosts:
        for target in host.get("targets") or ():
            if not _TARGET.match(target):
                raise InputError(
                    f"The target {target!r} of {host['host']} is not an address with a port.",
                    next_step="Set gpu_monitoring_address to the address by which Prometheus "
                    "reaches the host.",
                )
    return request
