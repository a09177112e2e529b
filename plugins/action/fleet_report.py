# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write a report of all hosts on the controller."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.changed_parts import changed_parts
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import InputError
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._command_line import complete
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._files import (
    FORMS,
    check_file,
    check_report,
    trusted,
    write_text,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report import html, markdown
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.build import (
    build,
    content,
    dump,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.sources import (
    host_sources,
    others,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._fleet_report.types import (
    HIDDEN,
    Request,
)

_JSON = "report.json"
_FILES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "report.html": html.render,
    _JSON: dump,
    "report.md": markdown.render,
}


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "hosts": {"type": "list", "elements": "str", "required": True},
        "dest": {"type": "path", "required": True},
        "title": {"type": "str", "default": "GPU fleet"},
        "generated": {"type": "str", "default": ""},
        "previous": {"type": "path"},
        "hide": {"type": "list", "elements": "str", "choices": HIDDEN, "default": []},
        "applied": {"type": "bool", "default": False},
        "diagnosis": {"type": "dict", "default": {}},
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        there, previous = _earlier(options["dest"], options["previous"], variables)
        request = Request(options["title"], options["generated"], tuple(options["hide"]))
        sources = host_sources(
            options["hosts"],
            variables["hostvars"],
            options["diagnosis"],
            options["applied"],
        )
        rest = others(options["hosts"], options["diagnosis"])
        report = build(sources, request, previous, rest)
        files = {os.path.join(options["dest"], name): render for name, render in _FILES.items()}
        changed = content(there) != content(json.loads(dump(report)))
        changed = changed or not all(map(os.path.exists, files))
        if not self._task.check_mode:
            for path, render in files.items():
                # People copy commands from the pages; what a program compares is alike in all runs.
                shown = report if path.endswith(_JSON) else complete(report)
                write_text(path, render(shown), FORMS[os.path.basename(path)])
        diff = {"diff": _diff(options["dest"], there, report)} if self._task.diff else {}
        parts = {key: report[key] for key in ("summary", "changes", "actions", "drift")}
        return {**parts, **diff, "changed": changed, "files": list(files)}


def _earlier(dest: str, previous: str | None, variables: dict[str, Any]) -> tuple[Any, Any]:
    """Return the report in the folder and the one to compare with; None if there is none.

    :raises InputError: the folder cannot have a report, or the file to compare with is none.
    """
    form = FORMS[_JSON]
    check_report(trusted(dest, variables))
    content = check_file(os.path.join(dest, _JSON), form)
    there = json.loads(content) if content else None
    if not previous:
        return there, there
    content = check_file(trusted(previous, variables), form, "previous")
    if content is None:
        raise InputError(
            f"previous: there is no file {previous}.",
            next_step="Name a report.json of an earlier run, or leave the option out.",
        )
    return there, json.loads(content) if content else {}


def _diff(dest: str, before: Any, report: Mapping[str, Any]) -> dict[str, str]:
    """Return the change of the Markdown, without the time and what it was compared with."""
    texts = []
    same = {key: report[key] for key in ("generated", "previous", "changes")}
    for one in (before, report):
        try:
            texts.append(markdown.render({**content(one), **same}))
        except (AttributeError, KeyError, TypeError):
            # There is none, or not of this form.
            texts.append("")
    old, new = changed_parts(*texts)
    name = os.path.join(dest, "report.md")
    return {"before_header": name, "after_header": name, "before": old, "after": new}
