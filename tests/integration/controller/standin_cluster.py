# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stand-ins of what speaks to a cluster, and of nodes with a driver that is to be upgraded.

Hosts without a cluster answer for themselves, as the nodes of the cluster do.

The cluster is a file: who holds which node, and whether it is cordoned. It outlives a run, so that
a second run finds what a killed one left.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.filter.nvidia_driver_plan import nvidia_driver_plan
from tests.integration.controller.standin_nodes import Nodes
from tests.integration.printed import report_of
from tests.unit.fixtures.node_facts import installed, node

OLD, NEW = "550.163.01", "580.126.09"
ACTION = """
import fcntl, json, os, signal
from pathlib import Path
from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.module_utils._cluster.options import read_expected
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible.errors import AnsibleConnectionFailure

NAME = {name!r}
PROBLEM = {{"code": "pdb_blocks", "cause": "The budget web does not let the pod ml/web go.",
           "evidence": "", "next_step": "Give its workload one more replica."}}
LOST = {{"code": "gpu_lost", "severity": "error", "address": "0000:00:05.0",
        "cause": "A GPU does not answer.", "evidence": "Xid 79", "next_step": "Check it."}}


def node_of(state, name):
    return state.setdefault(name, {{"unschedulable": False, "held_by": "", "was": False}})


class ActionModule(ActionBase):
    _requires_connection = False

    @lost_connection_fails
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        args, place = self._task.args, Path(os.environ["STANDIN"])
        host = task_vars["inventory_hostname"]
        for name in args.get("nodes", [host]):
            with (place / "calls").open("a") as calls:
                how = [args.get("state"), "check"] if self._task.check_mode else [args.get("state")]
                calls.write(json.dumps([name, NAME, " ".join(filter(None, how)) or None]) + "\\n")
        # Hosts without a cluster ask side by side.
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            answer = getattr(self, NAME)(args, place, task_vars)
        return {{**result, "changed": False, **answer}}

    def gpu_node_health(self, args, place, task_vars):
        host = task_vars["inventory_hostname"]
        done = (place / "done" / host).exists()
        if done and task_vars.get("standin_lost_after"):
            raise AnsibleConnectionFailure("No route to host")
        sick = [LOST] if task_vars.get("standin_sick") and done else []
        base = args.get("baseline")
        if base and done and task_vars.get("standin_sick_later"):
            # Well when it is first compared with the health before the change.
            first = place / "done" / f"{{host}}.compared"
            sick = [LOST] if first.exists() else []
            first.touch()
        return {{"ok": not sick, "findings": sick, "gpus": [], "boot_id": "a",
                "new": sick if base else None}}

    def gpu_host_maintenance(self, args, place, task_vars):
        nodes = {{task_vars["inventory_hostname"]: {{}}}}
        return self.gpu_node_maintenance({{**args, "nodes": nodes}}, place, task_vars)

    def gpu_node_maintenance(self, args, place, task_vars):
        path = place / "cluster.json"
        state = json.loads(path.read_text()) if path.exists() else {{}}
        rows, hostvars = {{}}, task_vars["hostvars"]
        for name in args["nodes"]:
            one, findings = node_of(state, name), []
            if one["held_by"] not in ("", args["run"]):
                findings = [{{**PROBLEM, "code": "held_by_other"}}]
            elif args["state"] == "released":
                if one["held_by"]:
                    one.update(unschedulable=one["was"], held_by="", was=False)
            else:
                if args["state"] == "drained" and hostvars[name].get("standin_blocked"):
                    findings = [PROBLEM]
                if not self._task.check_mode and not one["held_by"]:
                    one.update(was=one["unschedulable"], unschedulable=True, held_by=args["run"])
            rows[name] = {{"node": name, "ok": not findings, "ready": not one.get("down", False),
                          "unschedulable": one["unschedulable"], "held_by": one["held_by"],
                          "was_unschedulable": one["was"], "findings": findings, "waiting": [],
                          "evicted": [{{"namespace": "ml", "name": f"web-{{name}}"}}]
                          if args["state"] == "drained" and not findings else []}}
            kill = hostvars[name].get("standin_kill")
            if kill == args["state"] and not self._task.check_mode:
                path.write_text(json.dumps(state))
                # The controller dies; this process is its child.
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(1)
        if not self._task.check_mode:
            path.write_text(json.dumps(state))
        bad = any(row["findings"] for row in rows.values())
        return {{"nodes": rows, "ok": not bad, "failed": bad, "msg": "not all"}}

    def gpu_cluster_info(self, args, place, task_vars):
        # As the module: what it does not know is an error.
        read_expected(args["expected"])
        layers = [layer("allocatable", name) for name in args["expected"]]
        path = place / "cluster.json"
        state = json.loads(path.read_text()) if path.exists() else {{}}
        nodes = {{name: {{"name": name, "labels": one.get("labels", {{}}),
                         "ready": not one.get("down"),
                         "held": one.get("held_by") or None,
                         "resources": one.get("resources", {{}})}}
                 for name, one in state.items() if args.get("all_nodes") or "resources" in one}}
        node_of = {{name: name for name in args["expected"] if name in nodes}}
        return {{"layers": layers, "nodes": nodes, "node_of": node_of}}

    def gpu_test_pods(self, args, place, task_vars):
        return {{"layers": [layer("pod", name) for name in args["nodes"]]}}


def layer(name, host):
    return {{"layer": name, "node": host, "ok": True, "code": "", "cause": "", "evidence": "",
            "next_step": "", "proof": "", "subject": ""}}
"""
SPEAKERS = (
    "gpu_cluster_info", "gpu_host_maintenance", "gpu_node_health", "gpu_node_maintenance",
    "gpu_test_pods",
)  # fmt: skip


PREVIOUS = {
    "version": OLD, "branch": "550", "source": "nvidia", "kernel_module": "proprietary",
}  # fmt: skip


def facts(version: str, previous: dict[str, str] | None) -> dict[str, Any]:
    """Return the facts of a node on which this driver is installed as the role does it."""
    plan = nvidia_driver_plan(node(), branch=version.partition(".")[0])
    files = {
        path: hashlib.sha256(text.encode()).hexdigest() for path, text in plan["files"].items()
    }
    return installed(
        driver__loaded=version,
        driver__installed=version,
        driver__userland=version,
        driver__source=plan["source"],
        driver__kernel_module=plan["kernel_module"],
        driver__packages=dict.fromkeys(plan["packages"], f"{version}-1"),
        driver__held=True,
        driver__configuration=files,
        driver__recorded_files=list(files),
        driver__previous=previous,
        driver__managed=True,
        kernels=[{**kernel, "driver": version, "headers": True} for kernel in node()["kernels"]],
    )


class Upgrades(Nodes):
    """Nodes with an earlier driver, in a cluster."""

    def __init__(self, folder: Path, speakers: tuple[str, ...] = SPEAKERS):
        super().__init__(folder)
        actions = self._collections / "ansible_collections/kubegpu/nodes/plugins/action"
        for name in speakers:
            path = actions / f"{name}.py"
            path.unlink(missing_ok=True)
            path.write_text(ACTION.format(name=name), encoding="utf-8")
        (folder / "before").write_text(json.dumps(facts(OLD, None)), encoding="utf-8")
        (folder / "after").write_text(json.dumps(facts(NEW, PREVIOUS)), encoding="utf-8")

    def upgrade(self, hosts: dict[str, Any], *arguments: str, **variables: Any):
        """Run the playbook; return the run and the report, None if there is none."""
        report = self._folder / "upgrade.json"
        report.unlink(missing_ok=True)
        given = {
            "nvidia_driver_branch": "580",
            "nvidia_container_toolkit_cdi": False,
            "kubegpu_kube": {"kubeconfig": "/dev/null"},
            "gpu_upgrade_file": str(report),
            "gpu_upgrade_soak": 0,
            **variables,
        }
        # An extra variable, because the role's own is stronger than that of an inventory.
        folder = f"{self._folder}/records/{{{{ inventory_hostname }}}}"
        if "--check" in arguments:
            arguments = (*arguments, "-v")
        run = self.play("upgrade", hosts, *arguments, everywhere=given, __gpu_upgrade_folder=folder)
        assert not (report.exists() and "--check" in arguments)
        return run, report_of(run.screen, "__gpu_upgrade_report", report)

    def have(self, facts: dict[str, Any]) -> None:
        """Set the facts of all nodes, before and after a change."""
        for name in ("before", "after"):
            (self._folder / name).write_text(json.dumps(facts), encoding="utf-8")

    def cluster(self, **nodes: Any) -> None:
        """Set the state of nodes, by name; the others are as new."""
        (self._folder / "cluster.json").write_text(json.dumps(nodes), encoding="utf-8")

    def held(self) -> dict[str, Any]:
        """Return the nodes that are cordoned, with who holds them."""
        state = json.loads((self._folder / "cluster.json").read_text(encoding="utf-8"))
        return {name: one["held_by"] for name, one in state.items() if one["unschedulable"]}

    def records(self) -> list[str]:
        """Return the hosts that have a record of an unfinished upgrade."""
        return sorted(path.parent.name for path in self._folder.glob("records/*/upgrade.json"))

    def record(self, host: str, text: str) -> None:
        """Write the record of an unfinished upgrade."""
        path = self._folder / "records" / host / "upgrade.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
