# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judge a node after its upgrade. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._acceptance.checks import judge_health, judge_layers
from .._acceptance.dcgm import judge_diag
from .._core.finding import Finding
from .._core.printable import printable

GATES = ("layers", "health", "pod", "dcgm")
#: Layers of the verification that the cluster shows.
_OF_CLUSTER = ("allocatable", "pod")

# Why a host that responds is not ready.
_NOT_REGISTERED = "slurm_registration_invalid"

# They do not show that the node is worse than before.
_UNPROVEN = frozenset(
    (
        "gate_failed",
        "not_verified",
        "cluster_not_asked",
        "reboot_left",
        "dcgm_not_run",
        "dcgm_nothing_tested",
        "early_hook_failed",
    )
)

# What the rollback restores, by the keys of the record.
_RESTORED = {
    "driver": "driver",
    "kernel_module": "type of the kernel module",
    "toolkit": "container toolkit",
}

Object = Mapping[str, Any]


def judge(
    gates: Sequence[str],
    *,
    row: Object | None,
    layers: Sequence[Object],
    health: Sequence[Object],
    reboot: str = "",
    diag: Object | None = None,
    boot: str = "",
    stay: Object | None = None,
) -> list[Finding]:
    """Return why a node may not take pods again; empty if it may.

    :param gates: which of ``GATES`` are requested.
    :param row: the node as ``gpu_node_maintenance`` or ``gpu_host_maintenance`` sees it; None if
        that was not asked.
    :param layers: the layers of the verification.
    :param health: each health result after the change, with ``new`` since the baseline, or with
        ``findings`` if there was none.
    :param reboot: why the node needs another reboot.
    :param diag: the result of ``dcgmi diag``, by Ansible's ``command``.
    :param boot: the boot of the node, which its kubelet has to report.
    :param stay: the pods that stayed on the node when it was drained, as :func:`result.taken` has
        them.
    """
    found = _judge_node(row, reboot, boot, stay or {})
    if "layers" in gates:
        found += judge_layers([one for one in layers if one["layer"] not in _OF_CLUSTER], "node")
    if "pod" in gates:
        found += judge_layers([one for one in layers if one["layer"] in _OF_CLUSTER], "cluster")
    if "health" in gates:
        found += judge_health(health)
    if "dcgm" in gates:
        found += judge_diag(diag or {})
    return found


def _judge_node(row: Object | None, reboot: str, boot: str, stay: Object) -> list[Finding]:
    found = []
    if reboot:
        holders, step = _pods_with_driver(reboot, stay)
        found.append(
            Finding(
                "reboot_left",
                f"The node needs a reboot: {reboot}",
                holders,
                "Set gpu_upgrade_reboot: auto (for a MIG mode nvidia_mig_reboot: true), or reboot "
                f"the node, and run the upgrade again.{step}",
            )
        )
    refused = [one for one in (row or {}).get("findings") or () if one["code"] == _NOT_REGISTERED]
    if refused:
        found += [Finding(**one) for one in refused]
    elif row is None or not row.get("ready"):
        found.append(
            Finding(
                "node_not_ready",
                "The node is not ready after the change.",
                "",
                "Check the kubelet and the container runtime (journalctl -u kubelet), without "
                "Kubernetes at slurmd.",
            )
        )
    elif boot and row.get("boot_id") not in (None, "", boot):
        found.append(
            Finding(
                "boot_not_reported",
                "The kubelet has not reported the node since its reboot.",
                f"bootID: {row['boot_id']}, the node's: {boot}",
                "Check the kubelet: journalctl -u kubelet.",
            )
        )
    return found


def _pods_with_driver(reboot: str, stay: Object) -> tuple[str, str]:
    """Return the pods that keep the earlier driver loaded, and what to do.

    :param reboot: names the containers whose processes use the driver.
    """
    held = sorted(
        {
            str(pod)
            for container, pod in (stay.get("containers") or {}).items()
            if f"container {container}" in reboot
        }
    )
    if held:
        evidence = f"pods that stayed and use the driver: {', '.join(held)}"
    elif stay.get("without_request") and "in use" in reboot:
        names = [
            f"{pod['namespace']}/{pod['name']} ({pod['sign']})" for pod in stay["without_request"]
        ]
        evidence = f"pods that stayed and may use GPUs without a request: {', '.join(names)}"
    else:
        return "", ""
    return printable(evidence), (
        " Or remove these pods before: gpu_upgrade_pods: all evicts those that are not of a "
        "DaemonSet; a DaemonSet leaves a paused node with a node affinity for kubegpu.nodes/pause "
        "(DoesNotExist)."
    )


def judge_restored(record: Object, versions: Object) -> list[Finding]:
    """Return what of the earlier versions is not there after the rollback.

    What the node did not have before is not removed.

    :param record: what was installed before the first change.
    :param versions: what is installed now, with the same keys.
    """
    missed = [
        (name, str(record[key]), str(versions.get(key) or "none"))
        for key, name in _RESTORED.items()
        if record.get(key)
        and record[key] != versions.get(key)
        # It belongs to a driver.
        and (key != "kernel_module" or record.get("driver"))
    ]
    cuda = [one for one in record.get("cuda") or () if one not in (versions.get("cuda") or ())]
    if cuda:
        now = ", ".join(versions.get("cuda") or ()) or "none"
        missed.append(("CUDA toolkits", ", ".join(cuda), now))
    return [
        Finding(
            "not_restored",
            f"The rollback did not restore the {name}: before the upgrade it was {before}.",
            f"installed now: {now}",
            "Install the earlier version with kubegpu.nodes.site, then release the node with "
            "gpu_upgrade_release=true.",
        )
        for name, before, now in missed
    ]


def calls_for_rollback(findings: Sequence[Object]) -> bool:
    """Return whether the earlier versions could help: something of the node itself is wrong."""
    return any(finding["code"] not in _UNPROVEN for finding in findings)
