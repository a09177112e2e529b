# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Request and plan of the exporter of a host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._core.printable import printable
from .._core.steps import Step
from .data import AUTO, IMAGE, VERSION


@dataclass(frozen=True)
class Request:
    """The options of the user. Empty strings, tuples and mappings mean the default.

    :param version: the versions of DCGM and of its exporter, as in the tag of the image.
    :param counters: the text of the exporter's file of counters.
    :param interval: seconds between two readings.
    :param listen: host and port; without a host, all addresses.
    :param expected_gpus: PCI addresses; empty are those that the node has or had.
    :param planned_repositories: addresses of repositories that the same run adds first.
    """

    method: str = AUTO
    version: str = VERSION
    image: str = IMAGE
    digest: str = ""
    counters: str = ""
    profiling: bool = True
    listen: str = ":9400"
    interval: int = 15
    web_config: str = ""
    job_mapping_dir: str = ""
    textfile_directory: str = ""
    expected_gpus: tuple[str, ...] = ()
    beside_others: bool = False
    hold: bool = True
    timeout: int = 120
    manage_repository: bool = True
    repository_name: str = "kubegpu-nvidia-dcgm"
    repository_url: str = ""
    repository_key_url: str = ""
    key_fingerprints: tuple[str, ...] = ()
    planned_repositories: tuple[str, ...] = ()

    @property
    def dcgm(self) -> str:
        return self.version.split("-")[0]

    @property
    def exporter(self) -> str:
        return self.version.split("-")[1]

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def page(self) -> str:
        """Where the exporter's metrics are read on the host itself."""
        host = self.listen.rpartition(":")[0]
        local = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}
        scheme = "https" if self.web_config else "http"
        return f"{scheme}://{local.get(host, host)}:{self.port}/metrics"


@dataclass(frozen=True)
class Setup:
    """The files and units of a method.

    :param files: text by path.
    :param units: units that are enabled and run, in the order of their start.
    :param restart: those that read the files and are restarted after a change of one.
    :param once: a unit that is run once after a change, so that a failure shows at once.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    once: str = ""


@dataclass(frozen=True)
class Plan:
    """The changes for one node.

    :param action: none, change or refuse.
    :param method: the method that the node gets; empty: none.
    :param counters: the text of the exporter's file of counters.
    :param gpus: PCI addresses of the GPUs that the node is expected to have.
    :param scrape: ``port``, ``scheme`` and ``exporter`` of what Prometheus reads, and ``gpus``, how
        many the exporter has to show, if it does not tell it by itself; None: nothing is read.
    """

    action: str = "none"
    method: str = ""
    counters: str = ""
    gpus: tuple[str, ...] = ()
    textfile_directory: str = ""
    packages: Mapping[str, str | None] = field(default_factory=dict)
    optional_packages: Mapping[str, str | None] = field(default_factory=dict)
    obsolete: tuple[str, ...] = ()
    change_packages: bool = False
    remove_packages: bool = False
    repository: Mapping[str, Any] | None = None
    files: tuple[str, ...] = ()
    change_setup: bool = False
    scrape: Mapping[str, Any] | None = None
    change: bool = False
    steps: tuple[Step, ...] = ()
    reasons: tuple[str, ...] = ()
    refusals: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values; texts of the node are printable."""
        values: dict[str, Any] = asdict(self)
        for name in ("reasons", "warnings"):
            values[name] = [printable(text) for text in values[name]]
        for name in ("gpus", "files", "obsolete", "refusals"):
            values[name] = list(values[name])
        values["steps"] = [asdict(step) for step in self.steps]
        values["changes"] = [f"{step.action} {step.detail}" for step in self.steps]
        return values
