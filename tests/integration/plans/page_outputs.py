# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables in the pages in Markdown: ``python -m tests.integration.plans.write_guides`` writes them.

Such a table is a block below a comment with its name::

    <!-- output: machine-result -->

Rows and tables are made by the code of the collection from facts and answers of modules. The other
outputs of these pages were recorded, and the pages say when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._driver.apply.loading import (
    ModuleState,
    decide_loading,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.gather import gather
from ansible_collections.kubegpu.nodes.plugins.module_utils._facts.runtimes import RuntimePaths
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.plan import plan_node
from ansible_collections.kubegpu.nodes.plugins.module_utils._plan.types import Run
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.plan import plan_toolkit
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.evidence import works
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.nodes import (
    node_plan,
    node_result,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    TABLES,
    notes,
    paragraph,
    render,
)
from tests.integration.plans.guide_outputs_machines import A10, NOUVEAU
from tests.integration.plans.guides import having, verified
from tests.tools.environments import REPOSITORY
from tests.unit.fixtures.make_tree import make_machine
from tests.unit.fixtures.node_facts import P4, installed, node

DOCS = REPOSITORY / "docs"
WIDTH = 120
_BLOCK = re.compile(r"(?m)^<!-- output: (\S+) -->\n\n```\n(?:(?!```).*\n)*```$")
_DONE = {
    "changed": True, "handlers": {"nvidia": {}, "runc": {}}, "default_runtime": "runc",
}  # fmt: skip
_LAYERS = ("pci", "module", "nvml", "toolkit", "runtime")
_INSTALLS = {"action": "install", "branch": "580", "version": "580.178.04", "reboot": {}}


def _table(kind: str, rows: Iterable[Mapping[str, Any]], title: str = "") -> str:
    columns, below = TABLES[kind]
    known = list(rows)
    texts = [paragraph(text, WIDTH) for text in notes(known, str(below), "node")]
    shown = render(columns, known, WIDTH, title or kind.title())
    return "\n".join([shown, *(["", *texts] if texts else [])])


def _loaded(version: str, kind: str) -> dict[str, Any]:
    return {
        "driver__loaded": version, "driver__installed": version, "driver__kernel_module": kind,
    }  # fmt: skip


def _row(
    name: str, before: dict[str, Any], after: dict[str, Any], results: Mapping[str, Any],
    plans: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Return the row of a node whose toolkit was installed."""
    toolkit = plan_toolkit(before, Request()).to_json()
    done = {**results, "containerd": _DONE}
    return node_result(name, {**plans, "toolkit": toolkit}, done, after, toolkit_changed=True)


def machine_plan() -> str:
    """Return the plan of a machine with containerd and Docker, on which nothing runs."""
    with TemporaryDirectory() as folder:
        make_machine(Path(folder), having(A10, NOUVEAU))
        facts = gather(NodeReader(folder), RuntimePaths())
    facts["runtimes"] = node()["runtimes"]
    run = Run(controller="2.19.0", today="2026-11-28")
    plans = plan_node(facts, {}, ["nvidia_driver", "nvidia_container_toolkit"], run)
    # What the modules answer in check mode.
    changes = {"changed": True, "file_changed": True}
    answers = {
        "containerd": {**changes, "restarted": True}, "docker": {**changes, "reloaded": True},
    }  # fmt: skip
    parts = {"driver": plans["nvidia_driver"], "toolkit": plans["nvidia_container_toolkit"]}
    return _table("plan", [node_plan("localhost", facts, parts, answers)], "Planned changes")


def machine_result() -> str:
    """Return the result of a machine whose driver was loaded, and its verification."""
    known = _loaded("580.178.04", "open")
    results = {"driver": {"changed": True}, "docker": _DONE}
    plans = {"driver": _INSTALLS}
    shown = _table("result", [_row("localhost", node(**known), installed(**known), results, plans)])
    return f"{shown}\n\n{verified({'localhost': [works(one, '') for one in _LAYERS]}, _LAYERS)}"


def machine_reboot() -> str:
    """Return the result of a machine on which nouveau is in use."""
    known: dict[str, Any] = {
        "driver__loaded": None, "driver__installed": "580.178.04", "driver__kernel_module": None,
    }  # fmt: skip
    reason = decide_loading(True, ModuleState(nouveau=1), {}).reboot
    results = {
        "driver": {"changed": True, "reboot_required": True, "reboot_reason": reason},
        "docker": _DONE,
    }
    return _table(
        "result",
        [_row("localhost", node(**known), installed(**known), results, {"driver": _INSTALLS})],
    )


def _instance(profile: str, start: int, size: int) -> dict[str, Any]:
    parts = [{"profile": profile}]
    return {
        "id": start, "profile": profile, "start": start, "size": size, "compute_instances": parts,
    }  # fmt: skip


def _divided(address: str) -> dict[str, Any]:
    found = [("2g.20gb", 0, 2), ("1g.10gb", 2, 1), ("1g.10gb", 3, 1), ("3g.40gb", 4, 4)]
    return {
        "address": address, "uuid": f"GPU-{address}", "name": "NVIDIA H100 80GB HBM3",
        "mig_mode": "enabled", "gpu_instances": [_instance(*one) for one in found],
    }  # fmt: skip


def fleet_result() -> str:
    """Return the result of two nodes of a fleet: GPUs that were divided, and a T4."""
    addresses = ["0000:18:00.0", "0000:2a:00.0"]
    h100 = {
        **_loaded("580.178.04", "proprietary"),
        "gpus": [{**P4, "address": one, "device_id": "2330"} for one in addresses],
        "runtimes__docker": None,
    }
    nvml = {"devices": [_divided(one) for one in addresses], "driver_version": "580.178.04"}
    # The layouts are read from the facts.
    planned = {"before": "", "after": "", "reboot_reason": ""}
    mig = {"devices": [{"index": index, **planned} for index in range(len(addresses))]}
    t4 = {**_loaded("580.95.05", "proprietary"), "runtimes__docker": None}
    results = {"mig": {"changed": True}}
    return _table(
        "result",
        [
            _row("kube-h100", node(**h100), _with(installed(), nvml=nvml, **h100), results,
                 {"mig": mig}),
            _row("kube-t4", node(**t4), _with(installed(), **t4), {}, {}),
        ],
    )  # fmt: skip


def _with(facts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the facts with changes after those of an installation."""
    for name, value in changes.items():
        *path, last = name.split("__")
        place = facts
        for key in path:
            place = place[key]
        place[last] = value
    return facts


OUTPUTS: Mapping[str, Callable[[], str]] = {
    "machine-plan": machine_plan,
    "machine-result": machine_result,
    "machine-reboot": machine_reboot,
    "fleet-result": fleet_result,
}


def pages() -> dict[Path, str]:
    """Return the text of each page by its file."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}


def outputs(text: str) -> list[str]:
    """Return the names of the outputs in a page."""
    return re.findall(r"(?m)^<!-- output: (\S+) -->$", text)


def written(text: str) -> str:
    """Return a page with its outputs."""

    def block(found: re.Match[str]) -> str:
        lines = "\n".join(line.rstrip() for line in OUTPUTS[found[1]]().strip("\n").splitlines())
        return f"<!-- output: {found[1]} -->\n\n```\n{lines}\n```"

    return _BLOCK.sub(block, text)
