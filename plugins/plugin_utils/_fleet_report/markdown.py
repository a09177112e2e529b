# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as Markdown (GitHub's, with tables). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import titled

from .words import STATE_WORDS, alike, by_node, inventory, limited, nothing

_SPECIAL = re.compile(r"([\\`*_\[\]#|~])")


def render(report: Mapping[str, Any]) -> str:
    """Return the report as Markdown."""
    nodes = report["nodes"]
    return "\n".join(
        [
            f"# {_text(report['title'])}",
            "",
            f"**{_text(report['summary']['sentence'])}**",
            "",
            f"{_text(report['generated'])} · kubegpu.nodes {_text(report['collection'])}",
            "",
            *_actions(report["actions"]),
            *_changes(report),
            *_drift(report["drift"]),
            *_inventory(nodes),
            *_details(nodes),
            *_unseen(report),
            *_text_lines(nothing(report)),
        ]
    )


def _text(value: Any) -> str:
    """Return a text in which nothing is markup."""
    shown = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", shown).replace("\n", "<br>")


def _table(titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join(titles)} |",
        f"| {' | '.join('---' for _title in titles)} |",
        *(f"| {' | '.join(_text(cell) or '-' for cell in row)} |" for row in rows),
        "",
    ]


def _changes(report: Mapping[str, Any]) -> list[str]:
    if not report["changes"]:
        return []
    lines = [f"## Changes since {_text(report['previous']['generated'])}", ""]
    for node, texts in by_node(report["changes"]):
        lines += [f"- **{_text(node)}** {'; '.join(map(_text, texts))}"]
    return [*lines, ""]


def _actions(actions: Sequence[Mapping[str, Any]]) -> list[str]:
    if not actions:
        return []
    rows = []
    for one in actions:
        names = dict.fromkeys(node["node"] for node in one["nodes"] if node["node"])
        subjects = dict.fromkeys(node["subject"] for node in one["nodes"])
        which = limited(list(names) or list(filter(None, subjects)))
        what = one["next_step"] + (f"\n{one['fix']}" if one["fix"] else "")
        rows.append((one["severity"], len(names), one["cause"], what, which))
    return ["## To do", "", *_table(("Severity", "Nodes", "Cause", "Next step", "Which"), rows)]


def _drift(drift: Sequence[Mapping[str, Any]]) -> list[str]:
    if not drift:
        return []
    rows = []
    for one in drift:
        values = [
            f"{value['value']}: {len(value['nodes'])}"
            + (f" ({limited(value['nodes'])})" if value["minority"] else "")
            for value in one["values"]
        ]
        rows.append((one["kind"], one["what"], "\n".join(values)))
    return ["## Configuration drift", "", *_table(("Kind", "What", "Values and nodes"), rows)]


def _inventory(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    table = inventory(nodes)
    titles = ("Node", "State", *(title for title, _cells in table.columns))
    rows = (
        (
            node["name"],
            STATE_WORDS[node["state"]],
            *(cells[number] for _title, cells in table.columns),
        )
        for number, node in enumerate(nodes)
    )
    common = [f"All nodes: {_text(alike(table.common))}", ""] if table.common else []
    return ["## Inventory", "", *common, *_table(titles, rows)]


def _details(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with, or was decided for, each node of which there is something."""
    lines = ["## Nodes", ""]
    for node in nodes:
        texts = [_cause(one) for one in node["causes"]]
        texts += [
            f"- {_text(one['change'])}: {_text(one['why'])}"
            for one in node["decisions"]
            if one["change"]
        ]
        texts += [
            f"- {title}: {_text(node[key])}"
            for key, title in (("upgrade", "Upgrade"), ("acceptance", "Acceptance"))
            if node[key]
        ]
        texts += [f"- {_text(note)}" for note in node["notes"]]
        if texts:
            title = f"### {_text(node['name'])}: {STATE_WORDS[node['state']]}"
            lines += [title, "", *texts, ""]
    return lines if len(lines) > 2 else [*lines, "All nodes match the request.", ""]


def _cause(one: Mapping[str, Any]) -> str:
    subject = f" ({_text(one['subject'])})" if one["subject"] else ""
    parts = [f"- **{one['severity']}**{subject}: {_text(one['cause'])}"]
    parts += [f"{title}: {_text(text)}" for title, text in titled(one)]
    return "<br>".join(parts)


def _unseen(report: Mapping[str, Any]) -> list[str]:
    rows = [("", one["what"], one["why"]) for one in report["unseen"]]
    rows += [
        (node["name"], one["what"], one["why"])
        for node in report["nodes"]
        for one in node["unseen"]
    ]
    return ["## Not checked", "", *_table(("Node", "What", "Why"), rows)] if rows else []


def _text_lines(texts: Iterable[str]) -> list[str]:
    shown = " ".join(map(_text, texts))
    return [shown, ""] if shown else []
