# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Types of gpu_host_maintenance: request, record, container, Slurm node, decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._core.finding import Finding
    from .._known_faults.evidence_types import DeviceUser

CORDONED, DRAINED, RELEASED = "cordoned", "drained", "released"
STATES = (CORDONED, DRAINED, RELEASED)

# Schedulers.
AUTO, SLURM, NO_SCHEDULER = "auto", "slurm", "none"
# What becomes of containers; AUTO stops those that Docker restarts.
STOP, WAIT = "stop", "wait"
# As scontrol writes a registration that is refused, and as sinfo does.
_REFUSED = frozenset(("INVALID_REG", "INVAL"))
#: The restart policy of a container that nothing restarts.
NO_POLICY = "no"


@dataclass(frozen=True)
class Request:
    """The options of the module; times in seconds."""

    name: str
    state: str
    run: str
    reason: str = ""
    #: ``gpu`` or ``all``
    pods: str = "gpu"
    #: ``auto``, ``stop`` or ``wait``
    containers: str = AUTO
    #: ``refuse`` or ``delete``
    unmanaged: str = "refuse"
    #: ``auto``, ``slurm`` or ``none``
    scheduler: str = AUTO
    #: The name of the node in Slurm; empty to find it by the host's name.
    slurm_node: str = ""
    #: Whether slurmd is restarted once if Slurm refused the host's registration.
    restart_slurmd: bool = False
    timeout: int = 900
    poll: int = 5
    socket: str = "/run/docker.sock"
    unit: str = "docker"


@dataclass(frozen=True)
class Stopped:
    """A container that was stopped, with the restart policy that it had."""

    id: str
    name: str
    policy: str = NO_POLICY
    #: How often Docker restarts it, for the policy ``on-failure``; 0 for any number.
    retries: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "policy": self.policy,
            "retries": self.retries,
        }


@dataclass(frozen=True)
class Record:
    """What the node's record says of a maintenance that is not finished."""

    run: str
    reason: str = ""
    since: str = ""
    #: The node's name in Slurm; empty without Slurm.
    slurm_node: str = ""
    #: Whether the Slurm node took no jobs before.
    was_drained: bool = False
    #: In the order in which they are started again.
    containers: tuple[Stopped, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "reason": self.reason,
            "since": self.since,
            "slurm_node": self.slurm_node,
            "was_drained": self.was_drained,
            "containers": [one.to_json() for one in self.containers],
        }


@dataclass(frozen=True)
class Container:
    """The parts of a running container that decide what becomes of it."""

    id: str
    name: str
    policy: str = NO_POLICY
    retries: int = 0
    #: Whether Docker removes it when it ends (``--rm``).
    auto_remove: bool = False
    #: Whether a Swarm service owns it.
    swarm: bool = False
    gpu: bool = False
    #: When it was started, in Docker's form, which sorts as text.
    started: str = ""
    #: Seconds that Docker gives it to end; None for Docker's default.
    stop_timeout: int | None = None

    def to_stopped(self) -> Stopped:
        return Stopped(self.id, self.name, self.policy, self.retries)


@dataclass(frozen=True)
class SlurmNode:
    """The parts of ``scontrol show node`` that decide on a node's maintenance."""

    name: str
    #: The state without flags, such as IDLE.
    base: str
    hostname: str = ""
    flags: frozenset[str] = frozenset()
    #: Without the user and the time that Slurm adds.
    reason: str = ""
    allocated: int = 0

    @property
    def drained(self) -> bool:
        """Whether the node takes no new jobs."""
        return "DRAIN" in self.flags or self.base in ("DOWN", "ERROR", "FAIL")

    @property
    def responds(self) -> bool:
        return "NOT_RESPONDING" not in self.flags

    @property
    def registered(self) -> bool:
        """Whether Slurm accepted what slurmd reports; otherwise the node gets no jobs.

        It has fewer GPUs than slurm.conf says, for example. The next registration clears the flag.
        """
        return not _REFUSED & {self.base, *self.flags}

    @property
    def ready(self) -> bool:
        # A rebooted node is down for Slurm until it is resumed.
        return self.responds and self.registered

    @property
    def state(self) -> str:
        return "+".join((self.base, *sorted(self.flags)))

    @property
    def busy(self) -> bool:
        """Whether jobs are on the node."""
        busy = self.base in ("ALLOCATED", "MIXED") or "COMPLETING" in self.flags
        return busy or self.allocated > 0


@dataclass(frozen=True)
class Seen:
    """What uses the host now."""

    containers: tuple[Container, ...] = ()
    slurm: SlurmNode | None = None
    #: IDs of the jobs on the node.
    jobs: tuple[str, ...] = ()
    users: tuple[DeviceUser, ...] = ()


@dataclass(frozen=True)
class Decision:
    """What is stopped, what is waited for, and why the host is refused.

    :param stop: containers in the order in which they are stopped.
    :param waiting: rows with ``namespace`` (slurm, docker or process) and ``name``.
    """

    stop: tuple[Container, ...] = ()
    waiting: tuple[Mapping[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()
