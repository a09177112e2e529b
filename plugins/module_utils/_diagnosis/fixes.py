# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command or the variables that fix a root cause. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from .data import CAUSES
from .types import Observed

#: What stands for a name in a command for several hosts.
HOST, NODE, POD = "HOST", "NODE", "POD"
# How findings of nodes name a pod or DaemonSet, a variable, a node, and a kernel module.
POD_NAME = re.compile(
    r"(?:pod|plugin|discovery) (?P<namespace>[a-z0-9-]{1,63})/(?P<name>[a-z0-9.-]+)"
)
# The packages are installed, so that nothing would install them.
_WITHOUT_PROGRAM = re.compile(r"\bis installed, but its program\b")
_PATTERNS = {
    "vendor": re.compile(r"\b(amd|intel|nvidia)_device_plugin_"),
    "cordoned": re.compile(r"(?:^|; )([a-z0-9.-]+): it is cordoned(?=;|$)"),
    "run": re.compile(r"cordoned by the run ([A-Za-z0-9._-]+) of this collection"),
    "module": re.compile(r"\bmodprobe (amdgpu|i915|xe)\b"),
}


def fix_of(root: Observed, nodes: Mapping[str, str]) -> str:
    """Return the command or the variables that fix a root cause; empty if none does.

    Names come from nodes and clusters, and the command is copied to a shell: they are quoted.

    :param nodes: the name of the node in the cluster of each host.
    """
    host = root.subject.host
    _namespace, pod = _pod(root)
    names = [shlex.quote(name) if name else "" for name in (host, nodes.get(host, ""), pod)]
    return _filled(root, names[0] or HOST, names[1], names[2] or POD)


def general_fix(root: Observed, in_cluster: bool) -> str:
    """Return the same in which words in capitals stand for the host, its node and the pod.

    :param in_cluster: whether the host has a node.
    """
    return _filled(root, HOST, NODE if in_cluster else "", POD, general=True)


def _filled(root: Observed, host: str, node: str, pod: str, general: bool = False) -> str:
    row = CAUSES.get(root.code)
    if row is None:
        return ""
    if row.code == "toolkit_missing" and _WITHOUT_PROGRAM.search(root.cause):
        row = CAUSES["toolkit_broken"]
    fix = row.fix if row.pod_fix is None or not root.subject.pod else row.pod_fix
    reboot = f"ansible {host} --become -m ansible.builtin.reboot"
    if node:
        # A drain that fails, as for a disruption budget, has to stop the reboot.
        reboot = f"kubectl drain {node} --ignore-daemonsets && {reboot} && kubectl uncordon {node}"
    namespace, _name = _pod(root)
    said = _said(root)
    if any(f"{{{key}}}" in fix and not text for key, text in said.items()):
        return ""
    if general:
        said["cordoned"] = NODE
    return fix.format(
        host=host,
        reboot=reboot,
        namespace=shlex.quote(namespace) if namespace else "NAMESPACE",
        name=pod,
        **said,
    )


def _pod(root: Observed) -> tuple[str, str]:
    """Return namespace and name of the pod; for a node those of the plugin that the text names."""
    if root.subject.pod:
        namespace, _slash, name = root.subject.pod.partition("/")
        return namespace, name
    found = POD_NAME.search(f"{root.cause} {root.next_step}")
    return (found["namespace"], found["name"].rstrip(".")) if found else ("", "")


def _said(root: Observed) -> dict[str, str]:
    """Return what the finding names; empty where it names none."""
    texts = {
        "vendor": root.next_step,
        "cordoned": root.evidence,
        "run": root.evidence,
        "module": f"{root.cause} {root.evidence} {root.next_step}",
    }
    found = {key: pattern.search(texts[key]) for key, pattern in _PATTERNS.items()}
    return {key: one[1] if one else "" for key, one in found.items()}
