# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/variables.md and docs/findings.md, the pages that are made from the code.

``python -m tests.tools.reference`` writes both. ``tests/unit/tools/test_reference.py`` fails if one
of them is out of date.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from plugins.module_utils._diagnosis.data import CAUSES, SWITCH_AND, SWITCH_THEN
from plugins.module_utils._diagnosis.types import LAYERS
from plugins.module_utils._known_faults.rules.tables import FAILURES, SUCCESSES
from plugins.plugin_utils._variables_data import PLAYBOOK_VARIABLES, with_keys
from tests.tools.environments import REPOSITORY, checkout_files

HEAD = """\
<!--
Copyright (c) 2026 kubegpu.nodes contributors
GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
SPDX-License-Identifier: GPL-3.0-or-later
-->

<!-- Written by python -m tests.tools.reference. Do not edit. -->

"""
VARIABLES = """\
# All variables

The variables of the playbooks are valid for all hosts of a run; [playbooks.md](playbooks.md) and
[kubernetes.md](kubernetes.md) explain them. The variables of a role are valid in its plays and in
the playbooks. Set them in `group_vars`, in `host_vars` or with `-e`. The playbooks warn about
unknown variables. `ansible-doc -t role kubegpu.nodes.nvidia_driver` shows those of one role.
"""
FINDINGS = """\
# All findings

A finding has a code, a cause, the evidence (`Seen:`) and the next step. Modules return the code as
`code`; tables and failures show the other three. In this page "..." stands for what was found on
the node.

- *Message* is an example of the text by which the finding is recognised.
- *Fix* is the command or the variables with which `diagnose` answers.
- *Layer* and *explained by*: where the finding is in the diagnosis, and the layers and findings
  whose errors explain it ([how](diagnose.md#how-a-root-cause-is-found)).
"""
# Semantic markup of Ansible's documentation: the text in it is code.
_MARKUP = re.compile(r"\b[A-Z]\(([^)]*)\)")
Value = TypeVar("Value")
_CODE = re.compile(r"[a-z][a-z0-9_]+")
# Keys of a role's mapping that is merged with the playbooks' one, which has the same keys.
_MERGED = re.compile(r"^(?!kubegpu).*_proxy\.")
# Characters of an example of a message.
_LONGEST = 110


def variables_page() -> str:
    """Return docs/variables.md."""
    sections = [HEAD + VARIABLES, f"## Playbooks\n\n{_table(_rows(PLAYBOOK_VARIABLES))}"]
    for role in ROLES:
        link = f"[{role.name}](../roles/{role.name}/README.md)"
        sections.append(f"## Role {link}\n\n{_groups(role)}")
    return "\n".join(sections)


def _groups(role: Path) -> str:
    """Return the tables of a role's variables.

    A group of variables in ``defaults/main.yml`` begins with a comment, which is its title.
    """
    options, tables = _options(role), []
    groups = (role / "defaults" / "main.yml").read_text(encoding="utf-8").split("\n\n")
    for title, *lines in (group.splitlines() for group in groups[1:]):
        names = [line.partition(":")[0] for line in lines if line[0] not in " -"]
        rows = _rows({name: options[name] for name in names})
        tables.append(f"**{title.strip('# ')}**\n\n{_table(rows)}")
    return "\n".join(tables)


def _options(role: Path) -> Mapping[str, Mapping[str, Any]]:
    spec = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    options: Mapping[str, Mapping[str, Any]] = spec["argument_specs"]["main"]["options"]
    return options


def _table(rows: list[str]) -> str:
    head = ["| variable | type | default | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows, ""])


def _rows(options: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        f"| `{name}` | `{option['type']}` | "
        f"{_default(option.get('default', option.get('shown')))} "
        f"| {_meaning(option)} |"
        for name, option in with_keys(options).items()
        if not _MERGED.search(name)
    ]


def _default(value: object) -> str:
    """Return a default as YAML in one line."""
    if value in ("", None):
        return "empty"
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).strip()
    text = f'"{value}"' if "{{" in str(value) else text.removesuffix("...").strip()
    return f"`{text}`".replace("|", "\\|")


def _meaning(option: Mapping[str, Any]) -> str:
    description = option.get("description", "")
    parts = [description] if isinstance(description, str) else description
    text = _MARKUP.sub(r"`\1`", " ".join(" ".join(parts).split())).replace("|", "\\|")
    choices = ", ".join(f"`{choice}`" for choice in option.get("choices", ()))
    return f"{text} One of {choices}." if choices else text


@dataclass(frozen=True)
class Entry:
    """One code, as one place of the code says it."""

    code: str
    cause: str
    next_step: str
    package: str


def _findings() -> dict[str, Entry]:
    """Return all findings by code."""
    found: dict[str, Entry] = {}
    for entry in _entries():
        known = found.get(entry.code)
        # Of several places that say one code, the one that says most.
        if known is None or (not known.cause and entry.cause):
            found[entry.code] = entry
    return found


#: Causes whose text is made of parts, which the source does not have in one place.
_SAID = {
    "grid_driver_on_whole_gpu": "... at ... is a whole GPU, but the driver ... is a GRID driver.",
    "gpu_not_bound": "... at ... is bound to ..., not to the driver that it needs.",
    "cluster_not_asked": "The cluster could not be asked: ....",
    "node_uncertain": "Several nodes of the cluster fit the host, or one node fits several.",
    "pod_failed": "The pod ... ended with an error that is not known.",
}


def findings_page() -> str:
    """Return docs/findings.md."""
    found = _findings()
    for row in FAILURES:
        # A code that the source has under another name.
        if not (row.code in found and found[row.code].cause):
            found[row.code] = Entry(
                row.code, _open(row.cause), _open(row.next_step), "_known_faults"
            )
    for code in CAUSES:
        found.setdefault(code, Entry(code, "", "", "_diagnosis"))
    sections = [HEAD + FINDINGS]
    for package, title in _SUBJECTS.items():
        entries = sorted(
            (entry for entry in found.values() if entry.package == package),
            key=lambda entry: entry.code,
        )
        if entries:
            sections.append("\n".join([f"## {title}", "", *map(_section, entries)]))
    return "\n".join(sections)


def _open(text: str) -> str:
    """Return a text with "..." for the names that a message has."""
    return re.sub(r"\{\w+\}", "...", text)


def _section(entry: Entry) -> str:
    """Return what the page says of one finding."""
    cause = CAUSES.get(entry.code)
    parts = {"Message": _example(entry.code), "Next step": _cell(entry.next_step)}
    if cause:
        fix = cause.fix.replace("{{", "{").replace("}}", "}").replace("{reboot}", "a reboot")
        fix = fix.replace("{limit}", "{host}").replace(SWITCH_THEN, "").replace(SWITCH_AND, "")
        parts["Fix"] = f"`{fix}`" if fix else ""
        parts["Layer"] = "; explained by ".join(
            filter(None, (cause.layer, _because(cause.because)))
        )
    said = _cell(entry.cause or _SAID.get(entry.code, ""))
    lines = [f"- *{title}*: {text}" for title, text in parts.items() if text]
    return "\n".join([f"### `{entry.code}`", "", *([said, ""] if said else []), *lines, ""])


def _because(names: Sequence[str]) -> str:
    """Return what explains a finding; layers that follow one another are named by both ends."""
    layers = [name for name in names if name in LAYERS]
    codes = [f"`{name}`" for name in names if name not in LAYERS]
    if len(layers) > 2 and tuple(layers) == LAYERS[: len(layers)]:
        layers = [f"the layers {layers[0]} to {layers[-1]}"]
    return ", ".join([*layers, *codes])


def _example(code: str) -> str:
    """Return the first line of a text by which a finding is recognised."""
    row = next((row for row in (*FAILURES, *SUCCESSES) if row.code == code), None)
    line = " ".join((row.example if row else "").split())
    return f"`{line[:_LONGEST].rstrip()}{' ...' if len(line) > _LONGEST else ''}`" if line else ""


_SUBJECTS: Mapping[str, str] = {
    "_driver": "Driver",
    "_known_faults": "Driver, container and cluster: known errors",
    "_facts": "Facts: problems of a node",
    "_containerd": "containerd",
    "_monitoring": "Monitoring",
    "_docker": "Docker",
    "_crio": "CRI-O",
    "_mig": "MIG",
    "_exporter": "Exporter of a host",
    "_cuda": "CUDA",
    "_toolkit": "Container toolkit",
    "_labels": "Labels",
    "_device_plugin": "Device plugin",
    "_dra": "DRA driver",
    "_cluster": "Cluster",
    "_kube": "GPU requests of pods",
    "_test_pods": "Test pods",
    "_maintenance": "Maintenance of nodes",
    "_host_maintenance": "Maintenance of hosts without Kubernetes",
    "_upgrade": "Rolling upgrade",
    "_acceptance": "Acceptance of a node",
    "_verify": "Verification of a node",
    "_health": "Health of GPUs",
    "_diagnosis": "Diagnosis",
}


def _cell(text: str) -> str:
    text = re.sub(r"(?:\.\.\.){2,}", "...", " ".join(text.split()))
    return text.replace("{{", "{").replace("}}", "}").replace("|", "\\|").replace("<", "&lt;")


@functools.cache
def _entries() -> tuple[Entry, ...]:
    """Return each call that makes a finding, or a known error, with a code from the source."""
    return tuple(_found())


def _found() -> Iterator[Entry]:
    names = [name for name in checkout_files() if re.match(r"plugins/module_utils/.*\.py$", name)]
    trees = {
        name: ast.parse((REPOSITORY / name).read_text(encoding="utf-8")) for name in sorted(names)
    }
    named = {name: _constants(tree) for name, tree in trees.items()}
    makers_of = {name: _makers(tree) for name, tree in trees.items()}
    for name, tree in trees.items():
        makers = {**_imported(name, tree, makers_of), **makers_of[name]}
        constants = {**_imported(name, tree, named), **named[name]}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                arguments = _bound(call, makers.get(call.func.id, ()))
                texts = {key: _text(value, constants) for key, value in arguments.items()}
                for code in _codes(arguments.get("code"), constants):
                    cause, step = texts.get("cause", ""), texts.get("next_step", "")
                    yield Entry(code, cause, step, name.split("/")[2])


def _codes(value: ast.expr | None, constants: Mapping[str, str]) -> list[str]:
    """Return the codes that an expression can be."""
    if isinstance(value, ast.IfExp):
        return [*_codes(value.body, constants), *_codes(value.orelse, constants)]
    code = _text(value, constants) if value else ""
    return [code] if _CODE.fullmatch(code) else []


def _makers(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return the dataclasses and functions of a file that make a finding of a code and a cause."""
    return {
        one.name: names
        for one in ast.walk(tree)
        if isinstance(one, (ast.ClassDef, ast.FunctionDef))
        and {"code", "cause"} <= set(names := _parameters(one))
    }


def _parameters(one: ast.ClassDef | ast.FunctionDef) -> tuple[str, ...]:
    """Return the fields of a dataclass, or the parameters of a function."""
    if isinstance(one, ast.FunctionDef):
        return tuple(argument.arg for argument in one.args.args)
    return tuple(
        node.target.id
        for node in one.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )


def _bound(call: ast.Call, fields: tuple[str, ...]) -> dict[str, ast.expr]:
    bound = dict(zip(fields, call.args, strict=False))
    if fields:
        bound.update({one.arg: one.value for one in call.keywords if one.arg})
    return bound


def _constants(tree: ast.Module) -> dict[str, str]:
    """Return the texts that a module gives names to."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _text(node.value, found)
            if text:
                found[node.targets[0].id] = text
    return found


def _imported(
    name: str, tree: ast.Module, named: Mapping[str, Mapping[str, Value]]
) -> dict[str, Value]:
    """Return what a module imports by name from another one of module_utils."""
    found: dict[str, Value] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level and node.module:
            folder = name.split("/")[: -node.level]
            there = named.get("/".join((*folder, *node.module.split("."))) + ".py", {})
            found.update(
                (one.asname or one.name, there[one.name]) for one in node.names if one.name in there
            )
    return found


def _text(value: ast.expr, constants: Mapping[str, str]) -> str:
    """Return the text of an expression, with "..." for what only a run knows; '' for no text."""
    if isinstance(value, ast.Constant):
        text = value.value if isinstance(value.value, str) else ""
        return re.sub(r"\{\w*\}", "...", text)
    if isinstance(value, ast.Name):
        return constants.get(value.id, "")
    if isinstance(value, ast.JoinedStr):
        return "".join(_text(part, constants) or "..." for part in value.values)
    if isinstance(value, ast.FormattedValue):
        return _text(value.value, constants)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return _text(value.left, constants) + _text(value.right, constants)
    if isinstance(value, ast.IfExp):
        # The text of the general case.
        return _text(value.orelse, constants)
    return ""


ROLES = sorted(path.parents[1] for path in REPOSITORY.glob("roles/*/meta/argument_specs.yml"))
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/variables.md": variables_page,
    "docs/findings.md": findings_page,
}


def main(folder: Path = REPOSITORY) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m tests.tools.reference", description=__doc__
    ).parse_args()
    main()
