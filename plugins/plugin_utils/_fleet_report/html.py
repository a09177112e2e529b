# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as one HTML page without requests.

The page is not rendered by Ansible's templar: values of nodes are data, and everything is escaped.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .words import STATE_WORDS, alike, by_node, inventory, limited, nothing

_FOLDER = Path(__file__).parent / "templates"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(by_node=by_node, limited=limited)
    return environment


def render(report: Mapping[str, Any]) -> str:
    """Return the report as HTML. Its policy allows its own style and script, by their hashes."""
    environment = _environment()
    style, script = (
        # Of this package, without values of nodes.
        Markup(environment.get_template(name).render())
        for name in ("report.css.j2", "report.js.j2")
    )
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    nodes = report["nodes"]
    table = inventory(nodes)
    unseen: dict[tuple[str, str], list[str]] = {
        (one["what"], one["why"]): [] for one in report["unseen"]
    }
    for node in nodes:
        for one in node["unseen"]:
            unseen.setdefault((one["what"], one["why"]), []).append(node["name"])
    return environment.get_template("report.html.j2").render(
        report=report,
        policy=policy,
        style=style,
        script=script,
        states=STATE_WORDS,
        order={state: place for place, state in enumerate(STATE_WORDS)},
        # Names of hosts are no names of parts of a page.
        ids={node["name"]: f"node-{place}" for place, node in enumerate(nodes, 1)},
        table=table,
        alike=alike(table.common),
        nothing=nothing(report),
        unseen=unseen,
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
