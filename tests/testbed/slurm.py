# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Slurm on one node, which is its own controller.

slurmctld, slurmd, munge and their commands are the real ones. Jobs run without cgroups, which a
node container does not have to itself, and without GPUs: the drain does not look at them.
"""

from __future__ import annotations

from tests.testbed import debs
from tests.testbed.fleet import Node
from tests.testbed.nodes import execute

# What the node is called in Slurm: neither its name in the inventory nor its own.
NAME = "slurm-0"
_PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
_CONFIG = """\
ClusterName=testbed
SlurmctldHost={host}
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmUser=slurm
ReturnToService=1
SlurmctldTimeout=30
SlurmdTimeout=30
NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={name} Default=YES MaxTime=INFINITE State=UP
"""


def install(node: Node) -> None:
    """Install Slurm, and wait until the node takes jobs."""
    debs.install(node, debs.downloaded("slurm", node.release, *_PACKAGES))
    host = execute(node, "hostname").strip()
    execute(node, "tee", "/etc/slurm/slurm.conf", stdin=_CONFIG.format(host=host, name=NAME))
    script = (
        "grep -q cgroup/v1 /etc/slurm/cgroup.conf 2>/dev/null || "
        "printf 'CgroupPlugin=cgroup/v1\\n' > /etc/slurm/cgroup.conf; "
        "systemctl restart munge && systemctl restart slurmctld slurmd && "
        f"for try in $(seq 90); do sinfo -h -n {NAME} -o %T 2>/dev/null | grep -q idle && exit; "
        "sleep 1; done; journalctl -n 40 -u munge -u slurmctld -u slurmd; sinfo; exit 1"
    )
    execute(node, "sh", "-c", script)


def purge(node: Node) -> None:
    """Remove Slurm with all that it wrote."""
    execute(node, "sh", "-c", "systemctl stop slurmd slurmctld munge", check=False)
    debs.purge(node, debs.downloaded("slurm", node.release, *_PACKAGES))
    execute(node, "rm", "-rf", "/etc/slurm", "/var/lib/slurm", "/var/log/slurm")
