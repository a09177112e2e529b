# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Show rows of all hosts as one table on the controller's screen."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible import constants
from ansible.utils.display import Display

from ansible_collections.kubegpu.nodes.plugins.plugin_utils._controller_action import (
    ControllerAction,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._command_line import complete
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._files import (
    FORMS,
    Form,
    check_file,
    object_form,
    rows_form,
    trusted,
    write_text,
)
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.builders import ROWS, asked
from ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.table import (
    TABLES,
    Column,
    merged,
    notes,
    paragraph,
    render,
)

_FALLBACK_WIDTH = 120
# These import what explains messages, which the other tables do not need.
_STAGES = (
    *("upgrade_plan", "upgrade", "acceptance_plan", "acceptance"),
    *("diagnosis", "diagnosis_nodes"),
)
_STAGES_FILE = "ansible_collections.kubegpu.nodes.plugins.plugin_utils._report.stages"
# Their report is returned, as tasks after the table read it.
_MAKE_REPORTS = ("upgrade", "acceptance")
# The table of all hosts of a run, of which many are equal.
_MERGED = "plan"
# A stdout callback whose output a program reads, or that prints nothing.
_QUIET = "null"
_FOR_PROGRAMS = "json"


class ActionModule(ControllerAction):
    """Runs on the controller only."""

    spec: Mapping[str, Any] = {
        "title": {"type": "str", "default": ""},
        "table": {"type": "str", "choices": list(TABLES)},
        "columns": {
            "type": "list",
            "elements": "dict",
            "options": {
                "key": {"type": "str", "required": True, "no_log": False},
                "title": {"type": "str", "required": True},
                "paired": {"type": "bool", "default": False},
                "below": {"type": "list", "elements": "str", "default": []},
                "optional": {"type": "bool", "default": False},
            },
        },
        "rows": {"type": "list", "elements": "dict"},
        "hosts": {"type": "list", "elements": "str"},
        "stop": {"type": "str", "default": ""},
        "key": {"type": "str", "default": "", "no_log": False},
        "notes": {"type": "str"},
        "dest": {"type": "path"},
        "content": {"type": "dict"},
    }
    rules: Mapping[str, Any] = {
        "required_one_of": [("table", "columns"), ("rows", "hosts", "content")],
        "required_by": {"hosts": "table"},
        "mutually_exclusive": [("rows", "hosts")],
    }

    def work(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        if options["rows"] is None:
            options = {**options, **self._built(options, variables)}
        rows = complete(options["rows"])
        known, key = TABLES.get(options["table"], ((), None))
        key = options["notes"] or key
        columns = [
            Column(
                column["key"],
                column["title"],
                column["paired"],
                tuple(column["below"]),
                column["optional"],
            )
            for column in options["columns"] or ()
        ] or list(known)
        dest = options["dest"] or ""
        form = _form(options["content"], columns[0].key)
        if dest:
            # A path that a node chose, or that is not of this collection: in check mode, too.
            check_file(trusted(dest, variables), form)
        width = shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns
        shown = merged(columns, rows) if options["table"] == _MERGED else rows
        table = render(columns, shown, width, options["title"])
        keys = (key, f"{key}_last") if key else ()
        texts = [text for one in keys for text in notes(rows, one, columns[0].key)]
        below = [paragraph(text, width) for text in texts]
        text = "\n".join([table, *(["", *below] if below else [])])
        Display().display(f"\n{text}\n", stderr=_is_for_programs(constants.DEFAULT_STDOUT_CALLBACK))
        # Check mode writes nothing, and that is no change of a node.
        if dest and not self._task.check_mode:
            data = options["rows"] if options["content"] is None else options["content"]
            _write_json(dest, data, form)
        # The table is on the screen already: -v would repeat it as JSON.
        content = {"content": options["content"]} if options["table"] in _MAKE_REPORTS else {}
        return {"table": text.splitlines(), **content, "_ansible_verbose_override": True}

    def _built(self, options: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        """Return the rows of the hosts or of the content, and the content with which they go."""
        table, content = options["table"], options["content"]
        given = asked(options, variables, checked=bool(self._task.check_mode))
        if table not in _STAGES:
            return {"rows": list(ROWS[table](given)), "content": content}
        stages = importlib.import_module(_STAGES_FILE)
        if table in _MAKE_REPORTS:
            content = stages.REPORTS[table](given)
            given = replace(given, content=content)
        return {"rows": list(stages.ROWS[table](given)), "content": content}


def _is_for_programs(callback: str) -> bool:
    """Return whether standard output belongs to a program: the table would break its format.

    :param callback: the stdout callback, such as ``ansible.posix.jsonl``.
    """
    name = str(callback).rpartition(".")[2]
    return name == _QUIET or _FOR_PROGRAMS in name


def _form(content: dict[str, Any] | None, key: str) -> Form:
    """Return what an earlier file is: of the same kind, or with the same keys."""
    if content is None:
        return rows_form(key)
    text = json.dumps(content).encode()
    for name in ("upgrade", "diagnosis", "acceptance"):
        if FORMS[name].fits(text):
            return FORMS[name]
    return object_form(content)


def _write_json(dest: str, data: Any, form: Form) -> None:
    write_text(dest, json.dumps(data, indent=2, sort_keys=True) + "\n", form)
