# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Standard output with the tables, changes and failures of a run only."""

from __future__ import annotations

DOCUMENTATION = r"""
name: tables
type: stdout
short_description: Print tables, changes and failures only
version_added: 0.1.0
author:
  - kubegpu.nodes contributors (@kubegpu)
description:
  - Prints the tables of the playbooks, a line for each change of a host, the progress of long
    tasks, each failure once with cause, evidence and next step, and one line at the end. Plays and
    tasks that change nothing are left out.
  - In check mode a change is C(would change). Predictions of a run that is not in check mode are in
    its tables only.
  - With C(-v) and more, it prints what P(ansible.builtin.default#callback) does. The options
    O(display_skipped_hosts), O(display_ok_hosts) and O(display_included_hosts) have an effect only
    then.
  - Unprintable characters of results are shown as escapes.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - "set as stdout in configuration: C(stdout_callback=kubegpu.nodes.tables)"
seealso:
  - plugin: ansible.builtin.default
    plugin_type: callback
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ansible import constants, context
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.message import (
    ABOVE,
    message,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.printable import printable

_INDENT = "  "
_CENSORED = "censored"
_TABLE = "kubegpu.nodes.fleet_table"
# Of a failed task, the first that has a text; those of a command and of a module that crashed.
_TEXTS = ("msg", "stderr", "stdout", "module_stderr", "module_stdout")
_EMPTY = ("", "MODULE FAILURE")
_NO_HOST = (
    "No host: the inventory is empty, or no play is for one of its hosts.",
    "Next step: Run it in the folder of the inventory, or name the inventory with -i.",
)


class CallbackModule(Default):
    """The default callback, without what went well."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "kubegpu.nodes.tables"

    def __init__(self) -> None:
        super().__init__()
        self._changed: set[str] = set()
        self._failed: set[str] = set()
        self._is_below_table = False

    @property
    def _is_long(self) -> bool:
        return bool(self._display.verbosity > 0)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play
        if self._is_long:
            super().v2_playbook_on_play_start(play)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._is_long:
            super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        if self._is_long:
            super().v2_playbook_on_no_hosts_remaining()

    def v2_playbook_on_include(self, included_file: Any) -> None:
        if self._is_long:
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_start(self, playbook: Any) -> None:
        if self._is_long:
            super().v2_playbook_on_start(playbook)

    def _task_start(self, task: Any, prefix: str | None = None) -> None:
        if self._is_long:
            super()._task_start(task, prefix)

    def _print_task_banner(self, task: Any) -> None:
        """Name the task of a difference or a warning; each line of a result names it itself."""
        self._last_task_banner = task._uuid
        if self._is_long:
            super()._print_task_banner(task)

    def v2_runner_on_ok(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_on_ok(result)
            return
        self._handle_warnings_and_exception(result)
        if result.task.action == _TABLE:
            self._is_below_table = True
        elif result.result.get("_ansible_verbose_always"):
            # A task that is there to show something.
            self._show_lines(_texts(result.result.get("msg")))
        elif not (result.task.loop and "results" in result.result):
            self._show_change(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_item_on_ok(result)
        else:
            self._handle_warnings_and_exception(result)
            self._show_change(result, f" ({self._get_item_label(result.result)})")

    def v2_runner_on_skipped(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_on_skipped(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_item_on_skipped(result)
        else:
            self._handle_warnings_and_exception(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if self._is_long:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        self._handle_warnings(result.result)
        if result.task.loop and "results" in result.result:
            # Each item that failed was shown.
            return
        how = "ignored" if ignore_errors else "failed"
        self._show_failure(result, how, constants.COLOR_ERROR)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_item_on_failed(result)
            return
        self._handle_warnings(result.result)
        label = f" ({self._get_item_label(result.result)})"
        self._show_failure(result, "failed", constants.COLOR_ERROR, label)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        if self._is_long:
            super().v2_runner_on_unreachable(result)
        elif not result.task.ignore_unreachable:
            self._show_failure(result, "unreachable", constants.COLOR_UNREACHABLE)

    def v2_on_file_diff(self, result: Any) -> None:
        if not self._is_long:
            given = result.result
            results = given.get("results") or () if result.task.loop else (given,)
            if any(one.get("diff") and one.get("changed") for one in results):
                self._show_lines([f"[{self.host_label(result)}] {_name(result.task)}"])
        super().v2_on_file_diff(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if self._is_long:
            super().v2_playbook_on_stats(stats)
            return
        ended = {host: stats.summarize(host) for host in sorted(stats.processed)}
        if not ended:
            self._show_lines(_NO_HOST, constants.COLOR_ERROR)
            return
        # Ansible counts predictions of a run that is not in check mode as changes, too.
        changed = "would be changed" if context.CLIARGS.get("check") else "changed"
        counted = {
            changed: sorted(self._changed),
            "failed": [host for host, numbers in ended.items() if numbers["failures"]],
            "unreachable": [host for host, numbers in ended.items() if numbers["unreachable"]],
        }
        texts = (
            f"{word}: {len(hosts)}" + (f" ({', '.join(hosts)})" if hosts else "")
            for word, hosts in counted.items()
        )
        bad = counted["failed"] or counted["unreachable"]
        color = constants.COLOR_ERROR if bad else constants.COLOR_OK
        self._show_lines([f"Hosts: {len(ended)}, {', '.join(texts)}"], color)
        if stats.custom and self.get_option("show_custom_stats"):
            self._show_lines([f"{name}: {self._dump_results(stats.custom[name])}"
                              for name in sorted(stats.custom)])  # fmt: skip

    def _show_change(self, result: Any, item: str = "") -> None:
        if not result.result.get("changed"):
            return
        predicted = bool(result.task.check_mode)
        if predicted and not context.CLIARGS.get("check"):
            return
        self._changed.add(result.host.get_name())
        how = "would change" if predicted else "changed"
        line = f"{how}: [{self.host_label(result)}] {_name(result.task)}{item}"
        self._show_lines([line], constants.COLOR_CHANGED)

    def _show_failure(self, result: Any, how: str, color: str, item: str = "") -> None:
        first = f"{how}: [{self.host_label(result)}] {_name(result.task)}{item}"
        lines = [f"{_INDENT}{line}" for line in failure_lines(result.result)]
        host = result.host.get_name()
        if host in self._failed and lines[-1].endswith(ABOVE):
            return
        self._failed.add(host)
        self._show_lines([first, *lines], color, error=self.get_option("display_failed_stderr"))

    def _show_lines(
        self, lines: Iterable[str], color: str | None = None, *, error: bool = False
    ) -> None:
        # An empty line parts it from the table above.
        for line in ["", *lines] if self._is_below_table else lines:
            self._display.display(printable(line), color=color, stderr=error)
        self._is_below_table = False

    def _dump_results(self, *arguments: Any, **options: Any) -> str:
        return printable(super()._dump_results(*arguments, **options))

    def _get_item_label(self, result: Any) -> Any:
        label = super()._get_item_label(result)
        return None if label is None else printable(str(label))

    def _get_diff(self, difflist: Any) -> str:
        # The difference gets its colours here: only what nodes have written is escaped.
        many = difflist if isinstance(difflist, list) else [difflist]
        return super()._get_diff([_clean(one) for one in many])


def failure_lines(result: Mapping[str, Any]) -> list[str]:
    """Return cause, evidence and next step of a failed result, or the text that it has."""
    if _CENSORED in result:
        return _texts(result[_CENSORED])
    if isinstance(result.get("cause"), str):
        return message(result).splitlines()
    texts = [str(result.get(name) or "").strip() for name in _TEXTS]
    first, *others = texts if texts[0] not in _EMPTY else [*filter(None, texts[1:]), "", ""]
    # The message of a command says only that it failed.
    shown = [first, *[text for text in others if text][:1]] if "rc" in result else [first]
    lines = [line for text in shown if text for line in text.splitlines()]
    return lines or ["The task returned no message."]


def _name(task: Any) -> str:
    """Return the name of a task without that of its role."""
    return str(task.get_name().strip().rpartition(" : ")[2])


def _texts(value: Any) -> list[str]:
    items = value if isinstance(value, (list, tuple)) else [value]
    return [line for item in items for line in str(item).splitlines()]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {key: _clean(one) for key, one in value.items()}
    return value
