# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Request, state and result of the verification of a node. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._core.finding import ERROR, INFO, Finding

if TYPE_CHECKING:
    from .._host.bounded import Hang
    from .._host.command import Result
    from .fabric import Fabric

PCI, MODULE, NVML, TOOLKIT, RUNTIME = "pci", "module", "nvml", "toolkit", "runtime"
#: Device nodes of AMD and Intel GPUs.
DEVICES = "devices"
NODE_LAYERS = (PCI, MODULE, DEVICES, NVML, TOOLKIT, RUNTIME)
ALLOCATABLE, POD, METRICS = "allocatable", "pod", "metrics"
# Each layer depends on the one before it.
LAYERS = (*NODE_LAYERS, ALLOCATABLE, POD, METRICS)


@dataclass(frozen=True)
class Request:
    """Expected state of the node.

    :param gpus: number of GPUs; None expects as many as there are on the PCI bus.
    :param driver: exact driver version; empty accepts any.
    :param cdi: whether a CDI specification is required.
    :param default: runtimes whose default handler must be the requested one.
    :param layers: layers to judge.
    """

    gpus: int | None = None
    driver: str = ""
    cdi: bool = False
    default: tuple[str, ...] = ()
    layers: tuple[str, ...] = NODE_LAYERS


@dataclass(frozen=True)
class ContainerRun:
    """One test container: its output, or why it was not started.

    :param method: how it is started, such as ``docker run --gpus all``; shown to the user.
    :param subject: the image or root file system; shown to the user.
    :param devices: the GPUs it is given: ``all``, or indices or UUIDs separated by commas.
    :param counts_gpus: whether the ``nvidia-smi -L`` lines of its output are counted as GPUs.
    :param bare: whether it runs in the temporary root file system, which holds no driver files.
    :param expect: regular expression that its output must match; empty matches anything.
    :param result: exit status and output; None if it was not started.
    :param skipped: why it was not started.
    :param manual: a command that starts such a container manually, as root.
    """

    method: str
    subject: str = ""
    command: tuple[str, ...] = ()
    devices: str = "all"
    counts_gpus: bool = False
    bare: bool = False
    expect: str = ""
    result: Result | None = None
    skipped: Finding | None = None
    manual: str = ""


@dataclass(frozen=True)
class RuntimeState:
    """A container runtime of the node.

    :param listed: whether the runtime knows the handler; None if it cannot be queried.
    :param source: where the handlers were read, such as ``crictl info``; shown to the user.
    :param recorded: the files in which an earlier run has configured the handler, which is in none
        of them now.
    :param fault: why it cannot be tested, for example because it does not run.
    :param pending: the restart that it waits for, which explains a container that failed.
    :param idle: why it is not tested, without being at fault.
    """

    name: str
    handler: str
    listed: bool | None = None
    handlers: tuple[str, ...] = ()
    default: str | None = None
    source: str = ""
    recorded: tuple[str, ...] = ()
    fault: Finding | None = None
    pending: Finding | None = None
    idle: str = ""
    containers: tuple[ContainerRun, ...] = ()


@dataclass(frozen=True)
class State:
    """What was read from the node in addition to its facts; None means not read.

    :param smi: result of ``nvidia-smi -L``, if the facts have no NVML data.
    :param hang: how the driver hung when it was asked here.
    :param diagnosis: why the driver is not loaded.
    :param runtime: result of ``nvidia-container-runtime --version``.
    :param runtime_path: the program that ``runtime`` is of.
    :param cdi: result of ``nvidia-ctk cdi list``.
    :param cli: result of ``nvidia-container-cli info``.
    :param config_exists: whether the toolkit's configuration file exists.
    :param fabric: state of the NVLink fabric; None if the node has none.
    """

    smi: Result | None = None
    diagnosis: Finding | None = None
    runtime: Result | None = None
    runtime_path: str = "nvidia-container-runtime"
    cdi: Result | None = None
    cli: Result | None = None
    config_exists: bool = False
    fabric: Fabric | None = None
    runtimes: tuple[RuntimeState, ...] = ()
    hang: Hang | None = None


@dataclass(frozen=True)
class LayerResult(Finding):
    """The finding of one layer: an error if it failed, information with the proof if it is ok.

    A warning is that it was not tried, and why. Its subject is the container runtime, in the layer
    ``runtime``; the vendor, on a node with GPUs of two vendors.
    """

    layer: str = ""

    @property
    def ok(self) -> bool | None:
        """Whether the layer is ok; None if it was not tried."""
        return {ERROR: False, INFO: True}.get(self.severity)

    @property
    def proof(self) -> str:
        """What was shown of a layer that is ok, and how."""
        return self.evidence if self.ok else ""

    def entry(self, node: str) -> dict[str, Any]:
        """Return the result as the module returns it."""
        names = self.named().get("names")
        return {
            "node": node,
            "layer": self.layer,
            "ok": self.ok,
            "code": self.code,
            "cause": self.cause,
            "evidence": "" if self.ok else self.evidence,
            "next_step": self.next_step,
            "proof": self.proof,
            "subject": self.subject.part,
            **({"names": names} if names else {}),
        }
