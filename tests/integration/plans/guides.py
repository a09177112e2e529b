# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The outputs in the guides: ``python -m tests.integration.plans.write_guides`` writes them.

A guide has an output in a block of the language ``text``, below a comment with its name::

    .. output: docker-plan

    .. code-block:: text

The tables ``guide_outputs_*.py`` say how each is made: by a plan of machines that are trees of
files, with the inventory and the variables that the guide itself shows, or by the function that
makes the text. ``test_guides.py`` compares.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Union

import yaml

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.finding import Finding
from ansible_collections.kubegpu.nodes.plugins.module_utils._formats.openpgp import read_keys
from ansible_collections.kubegpu.nodes.plugins.module_utils._verify.types import LayerResult
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._command_line import complete
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report import verification
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    TABLES,
    Column,
    merged,
    notes,
    paragraph,
    render,
)
from tests.integration.plans import machines, playbook
from tests.tools.environments import REPOSITORY, collections
from tests.unit.fixtures.keys import ED25519
from tests.unit.fixtures.machines import Machine

GUIDES = REPOSITORY / "docs" / "docsite" / "rst"
WIDTH = 96
_BLOCK = r"(?m)^\.\. code-block:: %s\n\n((?:   .*\n|\n)+)"
_TEXT = re.compile(r"(?m)^(?:\.\. output: (\S+)\n\n)?" + (_BLOCK % "text")[4:])
_YAML = re.compile(_BLOCK % "yaml")
# The first line of a block that is a file of the inventory.
_FILE = re.compile(r"# ((?:inventory|(?:group|host)_vars/[\w.-]+)\.yml)\b")


@dataclass(frozen=True)
class Plan:
    """What ``kubegpu.nodes.plan`` prints.

    :param machines: the tree of each host that is shown, by its name in the guide's inventory.
    :param variables: what the commands of the guide set with ``-e``, or a mistake to show.
    :param files: files of the controller that are there, relative to the inventory.
    :param only: what of the plan's JSON is shown instead of the table: keys with dots, such as
        ``driver.reasons``; several with a comma between them are a line for each host.
    """

    machines: Mapping[str, Machine]
    variables: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[str] = ()
    only: str = ""


def having(machine: Machine, files: Mapping[str, str]) -> Machine:
    """Return the machine with more files, such as the program of a runtime."""
    return replace(machine, files={**machine.files, **files})


Output = Union[Plan, Callable[[], str]]


def outputs(text: str) -> list[str]:
    """Return the names of the outputs in a guide; an empty one for a block without a name."""
    return [found[1] or "" for found in _TEXT.finditer(text)]


def without_outputs(text: str) -> str:
    """Return what a guide itself says."""
    return _TEXT.sub("", text)


def files_of(text: str) -> dict[str, str]:
    """Return the files of the inventory that a guide shows; a file may be shown in parts."""
    files: dict[str, str] = {}
    for block in _YAML.findall(text):
        content = textwrap.dedent(block)
        named = _FILE.match(content)
        if named:
            files[named[1]] = files.get(named[1], "---\n") + content
    return files


def variables_of(text: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the variables of each host in the guide's inventory, as Ansible reads it."""
    for name, content in files_of(text).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    done = playbook.ansible("ansible-inventory", "-i", str(folder / "inventory.yml"), "--list")
    read = json.loads(done.stdout)
    hosts = {host for group in read.values() for host in group.get("hosts", ())}
    found = read["_meta"]["hostvars"]
    # How a host is reached, and its cluster, are not those of a tree.
    return {
        host: {
            name: value
            for name, value in found.get(host, {}).items()
            if not name.startswith("ansible_") and name != "kubegpu_kube"
        }
        for host in hosts
    }


def make(wanted: Mapping[str, Output], texts: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the outputs by their names. Plans share a run, in which a host has a longer name.

    :param texts: the guide of each output.
    """
    own: dict[str, Machine] = {}
    variables: dict[str, dict[str, Any]] = {}
    made = {}
    read: dict[str, dict[str, dict[str, Any]]] = {}
    for name, output in wanted.items():
        if not isinstance(output, Plan):
            made[name] = output()
            continue
        place = folder / name
        place.mkdir()
        known = read.get(texts[name]) or variables_of(texts[name], place)
        read[texts[name]] = known
        its = {host: {**known[host], **output.variables} for host in output.machines}
        _expect_standins(its.values(), output.files)
        for file in output.files:
            for root in (folder, place):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                # A key where one is expected; an empty token is refused as well.
                (root / file).write_bytes(ED25519)
        longer = {f'"{host}"': f'"{name}.{host}"' for host in output.machines}
        for host, machine in output.machines.items():
            own[f"{name}.{host}"] = machine
            variables[f"{name}.{host}"] = json.loads(_replaced(json.dumps(its[host]), longer))
    run = playbook.run(machines.write(folder, own, variables), kubegpu_unknown_variables="fail")
    for name, output in wanted.items():
        if name not in made and isinstance(output, Plan):
            rows = [run.rows[f"{name}.{host}"] for host in output.machines]
            # Where a person has the inventory, and where the run was started.
            short = {f"{name}.": "", str(folder): "/home/ops/site", str(collections()): "/home/ops"}
            made[name] = _planned(json.loads(_replaced(json.dumps(rows), short)), output.only)
    return made


def _expect_standins(hosts: Iterable[dict[str, Any]], files: Sequence[str]) -> None:
    """Let the plans expect the key that stands for a publisher's, and for a runfile."""
    # A guide shows a checksum that nobody has.
    digest = hashlib.sha256(ED25519).hexdigest()
    expected = {"key_fingerprints": list(read_keys(ED25519).fingerprints)}
    for values in hosts:
        for name, given in values.items():
            if name.endswith("_repository") and given.get("key_file") in files:
                values[name] = {**expected, **given}
            elif name == "nvidia_driver_runfile" and given.get("path") in files:
                values[name] = {**given, "checksum": digest}


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def _planned(rows: Sequence[Mapping[str, Any]], only: str) -> str:
    if only:
        return "\n".join(line for row in rows for line in _values(row, only.split(", ")))
    plays = yaml.safe_load(
        (REPOSITORY / "playbooks" / "parts" / "plan_nodes.yml").read_text(encoding="utf-8")
    )
    (shown,) = [
        task["kubegpu.nodes.fleet_table"]
        for play in plays
        for task in play.get("tasks", ())
        if task.get("kubegpu.nodes.fleet_table", {}).get("table") == "plan"
    ]
    columns, below = TABLES["plan"]
    return table(shown["title"], columns, rows, str(below))


def _values(row: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    found = []
    for key in keys:
        value: Any = row
        for part in key.split("."):
            value = value[part]
        found.append(value)
    if isinstance(found[0], dict):
        return sorted(found[0])
    if isinstance(found[0], list):
        # A plan has the lines of its reasons, of which some belong to the one before.
        text = re.sub(r"\0(?=Seen: |Next step: )", "\n", "\0".join(found[0]))
        return [paragraph(f"{row['node']}: {one}", WIDTH) for one in text.split("\0")]
    return ["  ".join([row["node"], *found])]


def message(finding: Finding | KubegpuError) -> str:
    """Return what a failed task says of a finding."""
    text = finding.message if isinstance(finding, Finding) else str(finding)
    return paragraph(text, WIDTH)


def table(
    title: str, columns: Sequence[Column], rows: Sequence[Mapping[str, Any]], below: str
) -> str:
    """Return what ``fleet_table`` prints.

    :param below: the key of the texts below the table.
    """
    rows = complete(rows, ["-i", "inventory.yml"])
    shown = merged(columns, rows) if columns == TABLES["plan"][0] else rows
    texts = [paragraph(text, WIDTH) for text in notes(rows, below, "node")]
    return "\n".join([render(columns, shown, WIDTH, title), *(["", *texts] if texts else [])])


def verified(results: Mapping[str, Iterable[LayerResult]], layers: Sequence[str]) -> str:
    """Return what ``kubegpu.nodes.verify`` prints of layers that a judge has judged."""
    entries = [one.entry(host) for host, judged in results.items() for one in judged]
    titles = {"pci": "PCI", "nvml": "NVML"}
    columns = [Column(key, titles.get(key, key.title())) for key in ("node", *layers)]
    rows = verification.rows(entries, list(results), layers)
    return table("Verification", columns, rows, "notes")


def written(text: str, made: Mapping[str, str]) -> str:
    """Return a guide with its outputs."""

    def block(found: re.Match[str]) -> str:
        if not found[1]:
            return found[0]
        content = textwrap.indent(made[found[1]].strip("\n"), "   ")
        lines = "\n".join(line.rstrip() for line in content.splitlines())
        return f".. output: {found[1]}\n\n.. code-block:: text\n\n{lines}\n\n"

    return _TEXT.sub(block, text).rstrip("\n") + "\n"


def guides() -> dict[Path, str]:
    """Return the text of each guide by its file."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(GUIDES.glob("*.rst"))}


def current(wanted: Mapping[str, Output], folder: Path) -> dict[Path, str]:
    """Return each guide as it has to be now."""
    texts = {name: text for text in guides().values() for name in outputs(text) if name}
    made = make({name: wanted[name] for name in texts}, texts, folder)
    return {path: written(text, made) for path, text in guides().items()}
