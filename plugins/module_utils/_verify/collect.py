# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read from a GPU node what its facts do not have, and run a test container in each runtime.

All commands have time limits. What a run creates is removed at its end, or by the next run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._driver.facts import read_state
from .._facts.gather import read_nvml
from .._host.bounded import Hang
from .._host.command import Result
from .._host.reader import NodeReader
from .._known_faults.codes import UNKNOWN
from .._known_faults.evidence import collect
from .._known_faults.licence import wait_for_licence
from .._known_faults.on_node import diagnose
from .._record.options import STATE_PATH
from .containerd import ContainerdProbe
from .containers import QUICK, ContainerTests, Dependencies, is_nvidia
from .crio import probe_crio
from .docker import DockerProbe
from .fabric import Fabric, wait_for_fabric
from .options import ProbeOptions
from .types import RUNTIME, RuntimeState, State

_TOOLKIT_CONFIG = "/etc/nvidia-container-runtime/config.toml"
# The fact of each runtime that has its handlers.
_HANDLERS = (("containerd", "handlers"), ("docker", "runtimes"), ("crio", "runtimes"))


class Collector:
    """Collects the state that :func:`._verify.judge.judge_node` judges."""

    def __init__(self, dependencies: Dependencies, options: ProbeOptions, check: bool) -> None:
        self.dependencies = dependencies
        self.options = options
        self.check = check
        self._tests = ContainerTests(dependencies, options, check)
        self._containerd = ContainerdProbe(self._tests)
        self._docker = DockerProbe(self._tests)
        # How the driver hung when it was asked here; then it is not asked again.
        self._hang: Hang | None = None

    def collect(self, node: Mapping[str, Any]) -> State:
        """Return the state of the node; test containers are run for it."""
        run, reader, layers = self.dependencies.run, self.dependencies.reader, self.options.layers
        loaded = node["driver"]["loaded"]
        diagnosis = None
        if not loaded and node["driver"]["installed"] and "module" in layers:
            finding = diagnose(collect(reader, node), node)
            diagnosis = None if finding.code == UNKNOWN else finding
        spec = node["container_toolkit"]["cdi_spec"]
        path = self._runtime_path(node)
        # A driver that hangs is not asked again.
        hangs = node.get("driver_hang") is not None
        smi = self._smi() if loaded and not node["nvml"] and not hangs else None
        fabric = self._fabric(node) if "nvml" in layers and not hangs else None
        if self._hang is not None:
            # A container would hang, too.
            self._leave_containers_out()
        tell = node["nvml"] and not hangs and self._hang is None
        return State(
            smi=smi,
            hang=self._hang,
            diagnosis=diagnosis,
            runtime=run([path, "--version"], timeout=QUICK),
            runtime_path=path,
            cdi=run(["nvidia-ctk", "cdi", "list"], timeout=QUICK) if spec else None,
            cli=run(["nvidia-container-cli", "info"], timeout=60) if tell else None,
            config_exists=reader.exists(_TOOLKIT_CONFIG),
            fabric=fabric,
            runtimes=tuple(self._runtimes(node)) if RUNTIME in layers else (),
        )

    def starts_containers(self) -> bool:
        return not self.check and self.options.container and RUNTIME in self.options.layers

    def clean(self) -> None:
        """Remove all that this run, or a run that was killed, has created."""
        self._containerd.clean()
        self._docker.clean()
        self.dependencies.root.remove()

    def _smi(self) -> Result | None:
        reader, seconds = self.dependencies.reader, self.options.driver_timeout
        answer, self._hang = reader.ask(["nvidia-smi", "-L"], seconds)
        return answer

    def _leave_containers_out(self) -> None:
        self.options = replace(self.options, container=False)
        self._tests = ContainerTests(self.dependencies, self.options, self.check)
        self._containerd = ContainerdProbe(self._tests)
        self._docker = DockerProbe(self._tests)

    def _fabric(self, node: Mapping[str, Any]) -> Fabric | None:
        def devices() -> Sequence[Mapping[str, Any]]:
            if self._hang is not None:
                return ()
            reader, seconds = self.dependencies.reader, self.options.driver_timeout
            nvml, _complaint, self._hang = read_nvml(reader, node["gpus"], seconds)
            return nvml["devices"] if nvml else ()

        return wait_for_fabric(
            node,
            self.dependencies.run,
            devices,
            self.options.fabric_timeout,
            time.monotonic,
            time.sleep,
            self.options.fabric,
        )

    def _runtime_path(self, node: Mapping[str, Any]) -> str:
        """Return the path of NVIDIA's runtime: the handler's, or the option's."""
        for name, field in _HANDLERS:
            known = (node["runtimes"][name] or {}).get(field) or {}
            path = (known.get(self.options.handler) or {}).get("path")
            if path and path.startswith("/") and is_nvidia(path, self.options.runtime_path):
                return str(path)
        return self.options.runtime_path

    def _runtimes(self, node: Mapping[str, Any]) -> Iterator[RuntimeState]:
        record = read_state(self.dependencies.reader, STATE_PATH)
        for found in self._probed(node):
            field = dict(_HANDLERS)[found.name]
            known = node["runtimes"][found.name].get(field) or {}
            files = () if found.handler in known else recorded_files(record, found)
            yield replace(found, recorded=files)

    def _probed(self, node: Mapping[str, Any]) -> Iterator[RuntimeState]:
        runtimes = node["runtimes"]
        containerd, docker = runtimes["containerd"], runtimes["docker"]
        if containerd:
            yield self._left_out("containerd") or self._containerd.probe(node, containerd, docker)
        if docker:
            other = bool(containerd and containerd["cri_enabled"] is not False)
            yield self._left_out("docker") or self._docker.probe(node, docker, other)
        if runtimes["crio"]:
            yield self._left_out("crio") or probe_crio(self._tests, runtimes["crio"])

    def _left_out(self, name: str) -> RuntimeState | None:
        if name in self.options.engines:
            return None
        return RuntimeState(name, self.options.handler, idle=f"{name} is left out, as requested.")


def await_licences(
    reader: NodeReader, node: Mapping[str, Any], options: ProbeOptions
) -> Hang | None:
    """Wait until the virtual GPUs have their licences; return how the driver hung meanwhile.

    After a boot the daemon needs some seconds for it.
    """
    hangs: list[Hang] = []

    def devices() -> Sequence[Mapping[str, Any]]:
        nvml, _complaint, hang = read_nvml(reader, node["gpus"], options.driver_timeout)
        hangs.extend([hang] if hang else [])
        return nvml["devices"] if nvml else ()

    wait_for_licence(devices, options.licence_timeout, time.monotonic, time.sleep)
    return hangs[-1] if hangs else None


def recorded_files(record: Mapping[str, Any] | None, runtime: RuntimeState) -> tuple[str, ...]:
    """Return the files in which an earlier run has configured the handler of a runtime."""
    found = []
    for key, entry in ((record or {}).get("files") or {}).items():
        module, _colon, rest = key.partition(":")
        # Docker has one record of a file for all names.
        name, _colon, path = rest.partition(":")
        if runtime.name == "docker":
            names = ((entry or {}).get("details") or {}).get("names") or {}
            name, path = (runtime.handler if runtime.handler in names else ""), rest
        if module == f"{runtime.name}_runtime" and name == runtime.handler:
            found.append(path)
    return tuple(sorted(found))


@contextlib.contextmanager
def cleaned(collector: Collector) -> Iterator[None]:
    """Remove what a killed run left behind, and at the end, in any case, what this run created."""
    if not collector.starts_containers():
        yield
        return
    dependencies = collector.dependencies
    # Under the lock, all that has our name is left over from a run that was killed.
    with dependencies.lock():
        try:
            if dependencies.root.exists():
                collector.clean()
            # The directory marks a run that has not cleaned up yet.
            dependencies.root.record("")
            yield
        finally:
            dependencies.before_cleanup()
            collector.clean()
