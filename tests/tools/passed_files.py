# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A pytest plugin of the full tier: leaves out files of tests that passed, unless they changed.

A stage takes up to 90 minutes. When one of its test files is repaired, only that file runs again;
when code changes, all files of the stages that the code touches run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tools import passed


def pytest_addoption(parser: Any) -> None:
    """Add the options that noxfile.py sets."""
    group = parser.getgroup("files that passed")
    group.addoption("--passed-folder", type=Path, help="folder of the notes about files")
    group.addoption("--passed-stage", help="stage whose dependencies count")


def pytest_configure(config: Any) -> None:
    """Leave files out in each process; make notes where all results arrive."""
    makes_notes = not hasattr(config, "workerinput")
    folder, stage = config.getoption("passed_folder"), config.getoption("passed_stage")
    notes = Notes(folder, stage, makes_notes=makes_notes)
    config.pluginmanager.register(_LeaveOut(notes))
    if makes_notes:
        config.pluginmanager.register(_TakeNotes(notes))


class Notes:
    """The notes about the test files of one stage.

    :param folder: where the notes are.
    :param stage: the stage.
    :param makes_notes: whether this process makes them; failures of an earlier run go then.

    ``done`` has the files that passed with what they depend on, when this run began.
    """

    def __init__(self, folder: Path, stage: str, *, makes_notes: bool) -> None:
        self._folder = folder
        self._digests = passed.file_digests(stage)
        for old in folder.glob("*.failed") if makes_notes else ():
            old.unlink()
        self.done = {
            file
            for file, digest in self._digests.items()
            if passed.has_passed(folder, _name(file), digest)
        }

    def note(self, file: str) -> None:
        """Remember that all tests of a file passed, with its hash when the run began."""
        if file in self._digests:
            passed.note(self._folder, _name(file), self._digests[file])

    def add_failure(self, file: str, text: str) -> None:
        """Keep the text of a failure, to be read while the stage runs on."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{_name(file)}.failed").open("a", encoding="utf-8") as output:
            output.write(f"{text}\n\n")


class _LeaveOut:
    def __init__(self, notes: Notes) -> None:
        self._done = notes.done

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        gone = [item for item in items if _file(item.nodeid) in self._done]
        if gone:
            config.hook.pytest_deselected(items=gone)
            items[:] = [item for item in items if _file(item.nodeid) not in self._done]

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        # Nothing is left to do where every file passed before.
        if self._done and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._done:
            terminalreporter.write_line(
                f"left out, since they passed with what they depend on: {len(self._done)} files of "
                "tests (AGAIN=1 repeats them)"
            )


class _TakeNotes:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._waiting: dict[str, set[str]] = {}

    def pytest_collection_finish(self, session: Any) -> None:
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        del node
        if not self._waiting:
            self._expect(ids)

    def _expect(self, nodeids: list[str]) -> None:
        for nodeid in nodeids:
            self._waiting.setdefault(_file(nodeid), set()).add(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        file = _file(report.nodeid)
        if report.failed:
            self._waiting.pop(file, None)
            self._notes.add_failure(file, f"{report.nodeid}, {report.when}\n{report.longreprtext}")
        elif report.when == "teardown" and file in self._waiting:
            waiting = self._waiting[file]
            waiting.discard(report.nodeid)
            if not waiting:
                self._notes.note(file)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _name(file: str) -> str:
    return file.removesuffix(".py").replace("/", "-")
