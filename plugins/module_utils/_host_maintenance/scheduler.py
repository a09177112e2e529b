# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host's node in Slurm, through the programs of Slurm on the host."""

from __future__ import annotations

from .._core.errors import KubegpuError
from .._host.command import Result, Runner
from .slurm import find_nodes, not_found, read_nodes, reason_of
from .types import SlurmNode

# slurmctld answers in seconds. Slurm's programs try again for about a minute if it does not.
_TIMEOUT = 90


class Scheduler:
    """Requests to slurmctld about one node.

    :param name: the node's name; empty to find it by the host's name.
    """

    def __init__(self, run: Runner, name: str, hostname: str) -> None:
        self._run = run
        self._name = name
        self._hostname = hostname

    def node(self) -> SlurmNode:
        """Return the node.

        :raises KubegpuError: Slurm does not answer, or does not know the host.
        """
        argv = ["scontrol", "--oneliner", "show", "nodes"]
        nodes = read_nodes(self._do([*argv, self._name] if self._name else argv).stdout)
        if not self._name:
            nodes = find_nodes(nodes, self._hostname)
        if len(nodes) != 1:
            raise not_found(self._hostname, nodes).error()
        self._name = nodes[0].name
        return nodes[0]

    def jobs(self, node: SlurmNode) -> tuple[str, ...]:
        """Return the IDs of the jobs on the node."""
        argv = ["squeue", "--noheader", f"--nodelist={node.name}", "--format=%A"]
        answer = self._do([*argv, "--states=RUNNING,SUSPENDED,COMPLETING,STOPPED,CONFIGURING"])
        return tuple(dict.fromkeys(answer.stdout.split()))

    def drain(self, node: SlurmNode, run: str) -> None:
        """Keep new jobs off the node."""
        self._update(node, "DRAIN", f"Reason={reason_of(run)}")

    def resume(self, node: SlurmNode) -> None:
        """Let the node take jobs again."""
        self._update(node, "RESUME")

    def _update(self, node: SlurmNode, state: str, *more: str) -> None:
        self._do(["scontrol", "update", f"NodeName={node.name}", f"State={state}", *more])

    def _do(self, argv: list[str]) -> Result:
        answer = self._run(argv, timeout=_TIMEOUT)
        if not answer.ok:
            raise KubegpuError(
                "Slurm was not asked, or refused.",
                evidence=f"{' '.join(argv)}: {answer.last_output()}",
                next_step="See that scontrol works as root on this host: scontrol ping. If Slurm "
                "does not manage it, set the scheduler to none (gpu_upgrade_scheduler).",
                code="slurm_not_asked",
            )
        return answer
