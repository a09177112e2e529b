# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of a node, what was seen of it, and how its layers stand. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._core.finding import Finding
    from .._host.command import Result
    from .fabric import Fabric

PCI, MODULE, NVML, TOOLKIT, RUNTIME = "pci", "module", "nvml", "toolkit", "runtime"
NODE_LAYERS = (PCI, MODULE, NVML, TOOLKIT, RUNTIME)
ALLOCATABLE, POD = "allocatable", "pod"
# In the order in which each rests on the one before.
LAYERS = (*NODE_LAYERS, ALLOCATABLE, POD)


@dataclass(frozen=True)
class Trial:
    """One container that was started, or why none was.

    :param way: how, in a few words; shown to the user.
    :param subject: what it was made of.
    :param devices: the GPUs that it was given: ``all``, or their numbers or UUIDs.
    :param counts: whether the lines of ``nvidia-smi -L`` in its output are its GPUs.
    :param bare: whether it has a root file system of ours, and so only what the toolkit puts there.
    :param expect: a regular expression that its output has to have; empty is none.
    :param result: what it answered; None where it was not started.
    :param skipped: why it was not started, and whose fault that is.
    """

    way: str
    subject: str = ""
    command: tuple[str, ...] = ()
    devices: str = "all"
    counts: bool = False
    bare: bool = False
    expect: str = ""
    result: Result | None = None
    skipped: Finding | None = None


@dataclass(frozen=True)
class Engine:
    """A container runtime of the node.

    :param listed: whether it knows the handler; None where it cannot be asked.
    :param how: how it was asked.
    :param fault: what stands before any question: it does not run, or its CRI does not answer.
    :param idle: why it takes no part.
    """

    name: str
    handler: str
    listed: bool | None = None
    handlers: tuple[str, ...] = ()
    default: str | None = None
    how: str = ""
    fault: Finding | None = None
    idle: str = ""
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What was asked of the node beyond its facts; None is 'not asked'.

    :param smi: what ``nvidia-smi -L`` answered, where NVML is not in the facts.
    :param diagnosis: why the driver is not loaded.
    :param runtime: what ``nvidia-container-runtime --version`` answered.
    :param runtime_path: which program that was.
    :param cdi: what ``nvidia-ctk cdi list`` answered.
    :param cli: what ``nvidia-container-cli info`` answered.
    :param config_there: whether the toolkit's configuration file is there.
    :param fabric: how the NVLink fabric stands; None where the node has none.
    """

    smi: Result | None = None
    diagnosis: Finding | None = None
    runtime: Result | None = None
    runtime_path: str = "nvidia-container-runtime"
    cdi: Result | None = None
    cli: Result | None = None
    config_there: bool = False
    fabric: Fabric | None = None
    engines: tuple[Engine, ...] = ()


@dataclass(frozen=True)
class Wish:
    """What the node should be.

    :param gpus: how many GPUs it should have; None is as many as are on the bus.
    :param driver: the driver's exact version; empty is any.
    :param cdi: whether a CDI specification has to be there.
    :param default: the runtimes whose default the handler has to be.
    :param layers: those that are judged.
    """

    gpus: int | None = None
    driver: str = ""
    cdi: bool = False
    default: tuple[str, ...] = ()
    layers: tuple[str, ...] = NODE_LAYERS


@dataclass(frozen=True)
class Verdict:
    """How one layer stands."""

    layer: str
    ok: bool | None
    code: str = ""
    cause: str = ""
    evidence: str = ""
    next_step: str = ""
    proof: str = ""
    subject: str = ""

    def entry(self, node: str) -> dict[str, Any]:
        return {"node": node, **{name: getattr(self, name) for name in self.__dataclass_fields__}}
