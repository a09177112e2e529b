# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The collection with its own playbooks and roles, and stand-ins for what runs on nodes.

Each module is an action that notes its call in a file and answers from the inventory's variables:
no node is needed, and what the playbooks do with failures and batches is Ansible's own doing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.integration import ansible_process
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures.node_facts import installed, node

TIMEOUT = 600
MODULES = (
    "amd_cdi_specification",
    "cdi_specification",
    "container_toolkit_config",
    "containerd_runtime",
    "crio_runtime",
    "cuda_toolkit",
    "docker_runtime",
    "gpu_cluster_info",
    "gpu_exporter",
    "gpu_host_maintenance",
    "gpu_node_facts",
    "gpu_node_health",
    "gpu_node_verify",
    "gpu_test_pods",
    "node_gpu_label",
    "node_pause",
    "nvidia_driver",
    "nvidia_mig",
    "package_repository",
    "package_set",
    "prometheus_gpu_files",
    "runtime_configuration",
)
# They only look, keep a record, or are about a cluster.
LOOKING = (
    "gpu_cluster_info", "gpu_node_facts", "gpu_node_health", "gpu_node_verify", "node_gpu_label",
    "gpu_node_verify due", "gpu_node_verify passed",
    "runtime_configuration",
)  # fmt: skip
ACTION = """
import json, os
from pathlib import Path
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._lost_connection import (
    lost_connection_fails,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._reading import known_result

NAME, LOOKING = {name!r}, {looking!r}


class ActionModule(ActionBase):
    _requires_connection = False

    @lost_connection_fails
    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        if self._task.timeout:
            raise RuntimeError(f"{{NAME}} has {{self._task.timeout}} s")
        host = task_vars["inventory_hostname"]
        place = Path(os.environ["STANDIN"])
        done = place / "done" / host
        with (place / "calls").open("a") as calls:
            state = self._task.args.get("state")
            marks = NAME == "gpu_node_verify" and state
            name = f"{{NAME}} {{state}}" if marks else NAME
            calls.write(json.dumps([host, name, state]) + "\\n")
        if marks:
            return {{**result, "changed": True, "layers": []}}
        if NAME == "package_set":
            with (place / "packages").open("a") as given:
                how = "check" if self._task.check_mode else ""
                given.write(json.dumps([host, how, self._task.args]) + "\\n")
        known = known_result(task_vars) if NAME == "gpu_node_facts" else None
        if known is not None:
            return {{**result, **known}}
        lost = task_vars.get("standin_lost")
        called = [json.loads(line)[:2] for line in (place / "calls").read_text().splitlines()]
        behind = NAME == "gpu_node_facts" and [host, "nvidia_driver"] in called
        if lost == NAME or (lost == "reboot" and behind):
            raise AnsibleConnectionFailure("No route to host")
        if task_vars.get("standin_fails") in (NAME, f"{{NAME}} {{self._task.args.get('state')}}"):
            parts = {{"cause": "It did not build.", "evidence": "gcc"}}
            return {{**result, "failed": True, "msg": "It did not build.\\nSeen: gcc", **parts}}
        if NAME == "gpu_node_facts":
            after = "after" if done.exists() or task_vars.get("standin_done") else "before"
            facts = json.loads((place / after).read_text())
            facts.update(task_vars.get("standin_facts", {{}}))
            facts["os"].update(task_vars.get("standin_os", {{}}))
            if (place / "done" / f"{{host}}.cuda").exists():
                versions = json.loads((place / "done" / f"{{host}}.cuda").read_text())["versions"]
                # What is on the node after these versions were requested.
                facts["cuda"] = task_vars["standin_cuda"][" ".join(versions)]
            return {{**result, "ansible_facts": {{"gpu_node": facts}}}}
        if NAME == "gpu_node_verify":
            good = not task_vars.get("standin_layer_fails")
            layer = {{"node": host, "layer": "pci", "ok": good, "proof": "one GPU"}}
            texts = ("subject", "code", "cause", "evidence", "next_step")
            layer.update(dict.fromkeys(texts, ""))
            return {{**result, "ok": good, "failed_layers": [], "layers": [layer]}}
        if NAME == "gpu_node_health":
            unseen = [{{"what": "kernel log", "why": "{{{{ 7*7 }}}} is not a number"}}]
            return {{**result, "ok": True, "gpus": [], "findings": [], "events": [],
                    "unseen": unseen}}
        if NAME == "gpu_cluster_info":
            return {{**result, "layers": [], "nodes": {{}}, "node_of": {{}}}}
        if NAME == "node_gpu_label":
            return {{**result, "nodes": {{}}, "labelled": sorted(self._task.args["nodes"])}}
        if NAME == "nvidia_driver" and self._task.args.get("state") == "absent":
            done.unlink(missing_ok=True)
        elif NAME == "nvidia_driver" and self._task.args.get("version") == "previous":
            done.unlink(missing_ok=True)
        elif NAME == "nvidia_driver":
            done.touch()
        elif NAME == "cuda_toolkit" and "standin_cuda" in task_vars:
            (place / "done" / f"{{host}}.cuda").write_text(json.dumps(self._task.args))
        missing, packages = task_vars.get("standin_missing", []), {{}}
        if NAME == "package_set" and self._task.args.get("state") == "saved":
            # What no repository has may be in the cache of the package manager.
            missing = [one for one in missing if one not in task_vars.get("standin_cached", [])]
            packages = {{one: {{}} for one in self._task.args["packages"] if one not in missing}}
        answer = {{"changed": NAME not in LOOKING, "reboot_required": lost == "reboot",
                  "reboot_reason": "", "nodes": {{}},
                  "not_available": missing, "packages": packages, "left": [],
                  "restart_required": [] if NAME == "runtime_configuration" else False}}
        return {{**result, **answer}}
"""


@dataclass(frozen=True)
class Done:
    """A run: exit status, screen, and the calls of modules in their order (host, module, state).

    :param out: what was written to standard output alone.
    """

    status: int
    screen: str
    calls: list[tuple[str, str, str | None]]
    out: str = ""

    def hosts(self, module: str) -> list[str]:
        """Return the hosts on which a module was called, each once, in order."""
        return list(dict.fromkeys(host for host, name, _state in self.calls if name == module))

    def at_once(self) -> int:
        """Return how many nodes were in work at the same time: from their first change to the last.

        Ansible does a task on all hosts of a batch before the next one: this needs no clock.
        """
        spans: dict[str, list[int]] = {}
        for number, (host, name, _state) in enumerate(self.calls):
            if name not in LOOKING:
                spans.setdefault(host, []).append(number)
        return max(
            sum(span[0] <= number <= span[-1] for span in spans.values())
            for number in range(len(self.calls))
        )

    def words(self) -> str:
        """Return the screen as one line, so that wrapped texts can be found."""
        return " ".join(self.screen.split())


class Nodes:
    """Hosts of a playbook, below a folder."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._collections = folder / "collections"
        root = self._collections / "ansible_collections" / "kubegpu" / "nodes"
        (root / "plugins" / "action").mkdir(parents=True)
        for name in ("meta", "playbooks", "roles", "galaxy.yml"):
            (root / name).symlink_to(REPOSITORY / name)
        for path in (REPOSITORY / "plugins").iterdir():
            if path.is_dir() and path.name not in ("action", "__pycache__"):
                (root / "plugins" / path.name).symlink_to(path)
        for path in (REPOSITORY / "plugins" / "action").glob("*.py"):
            if path.stem not in MODULES:
                (root / "plugins" / "action" / path.name).symlink_to(path)
        for name in MODULES:
            text = ACTION.format(name=name, looking=LOOKING)
            (root / "plugins" / "action" / f"{name}.py").write_text(text, encoding="utf-8")
        (folder / "before").write_text(json.dumps(node()), encoding="utf-8")
        loaded = "580.126.09"
        kernels = [{**kernel, "driver": loaded} for kernel in node()["kernels"]]
        after = installed(driver__loaded=loaded, driver__installed=loaded, kernels=kernels)
        (folder / "after").write_text(json.dumps(after), encoding="utf-8")

    def own(self, name: str, plays: list[dict[str, Any]]) -> str:
        """Write a playbook of somebody's own, and return its path for :meth:`play`."""
        path = self._folder / name
        path.write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
        return str(path)

    def play(
        self,
        name: str,
        hosts: Mapping[str, Mapping[str, Any]],
        *arguments: str,
        everywhere: Mapping[str, Any] | None = None,
        binaries: Path | None = None,
        settings: Mapping[str, str] | None = None,
        **variables: Any,
    ) -> Done:
        """Run ``kubegpu.nodes.<name>``, or the playbook of a path.

        :param hosts: variables of each host; they become files in host_vars.
        :param everywhere: variables for all of them, in group_vars.
        :param binaries: where another ansible-core is than that of the tests.
        :param settings: variables of the environment for Ansible's settings.
        :param variables: extra variables.
        """
        inventory = self._folder / "inventory"
        for earlier in (inventory, self._folder / "done"):
            shutil.rmtree(earlier, ignore_errors=True)
        for place, data in {
            "hosts.yml": {"all": {"hosts": dict.fromkeys(hosts)}},
            "group_vars/all.yml": {
                "ansible_connection": "local",
                "ansible_python_interpreter": sys.executable,
                "kubegpu_become": False,
                "kubegpu_verify_file": str(self._folder / "verify.json"),
                **(everywhere or {}),
            },
            **{f"host_vars/{host}.yml": dict(own) for host, own in hosts.items()},
        }.items():
            path = inventory / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        (self._folder / "done").mkdir()
        calls = self._folder / "calls"
        calls.unlink(missing_ok=True)
        program = (binaries or Path(sys.executable).parent) / "ansible-playbook"
        playbook = name if os.path.isabs(name) else f"kubegpu.nodes.{name}"
        argv = [str(program), "-i", str(inventory), playbook, *arguments]
        argv += ["--extra-vars", json.dumps(variables)] if variables else []
        env = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(self._collections),
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_FORKS": "12",
            "COLUMNS": "120",
            "STANDIN": str(self._folder),
            **(settings or {}),
        }
        if binaries is None:
            done = ansible_process.run(argv, env=env, cwd=self._folder, timeout=TIMEOUT)
        else:
            done = subprocess.run(
                argv, env=env, cwd=self._folder, timeout=TIMEOUT,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        lines = calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []
        return Done(
            done.returncode,
            done.stdout + done.stderr,
            [tuple(json.loads(line)) for line in lines],
            done.stdout,
        )
