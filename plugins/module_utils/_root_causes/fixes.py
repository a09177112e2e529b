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

# How findings of nodes name a pod or DaemonSet, a variable, a node, and a kernel module.
POD_NAME = re.compile(
    r"(?:pod|plugin|discovery) (?P<namespace>[a-z0-9-]{1,63})/(?P<name>[a-z0-9.-]+)"
)
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
    row = CAUSES.get(root.code)
    if row is None:
        return ""
    fix = row.fix if row.pod_fix is None or not root.subject.pod else row.pod_fix
    host = shlex.quote(root.subject.host)
    node = nodes.get(root.subject.host, "")
    reboot = f"ansible {host} --become -m ansible.builtin.reboot"
    if node:
        # A drain that fails, as for a disruption budget, has to stop the reboot.
        quoted = shlex.quote(node)
        reboot = (
            f"kubectl drain {quoted} --ignore-daemonsets && {reboot} && kubectl uncordon {quoted}"
        )
    namespace, name = _pod(root)
    said = _said(root)
    if any(f"{{{key}}}" in fix and not text for key, text in said.items()):
        return ""
    return fix.format(
        host=host if root.subject.host else "HOST",
        reboot=reboot,
        namespace=shlex.quote(namespace) if namespace else "NAMESPACE",
        name=shlex.quote(name) if name else "POD",
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
