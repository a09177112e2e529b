# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Killed, locked out, rolled back: the transaction of ``containerd_runtime``.

Validation is the real containerd's; systemd, its journal and a running daemon are stand-ins here
(tests/integration/fleet has the real ones).
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd import prepare
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.apply import (
    ContainerdRuntime,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.host import Dependencies
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.options import Settings
from ansible_collections.kubegpu.nodes.plugins.module_utils._containerd.types import (
    FileEdit,
    Plan,
    Request,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    LockedError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host import files as _files
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._record import store as _state
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime.toml_parser import toml_parser
from tests.integration.engines.containerd_inputs.catalogue import RUNC, fill
from tests.integration.engines.containerd_inputs.judge import Place, binary, runtimes

TEXT = fill("@VERSION@" + RUNC, 2, "")
JOURNAL = "containerd: failed to do its work\nMain process exited, status=1/FAILURE"


class StandinSystem:
    """Runs containerd for real; stands in for systemctl, journalctl, crictl and ctr.

    The 'daemon' is a sleeping process of the test's own, started anew by each restart. A restart
    fails as long as ``broken`` says so of the configuration.
    """

    def __init__(self, place, broken=lambda text: False):
        self.place = place
        self.broken = broken
        self.restarts = 0
        self.daemon = None
        self.loaded = ""
        self.answers = {}
        self.start()

    def start(self):
        self.stop()
        self.loaded = self.place.config.read_text() if self.place.config.exists() else ""
        if self.broken(self.loaded):
            return False
        # A file is never older than a process by less than the clock's grain.
        time.sleep(0.05)
        self.daemon = subprocess.Popen(["sleep", "600"])
        return True

    def stop(self):
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon = None

    def __call__(self, argv, timeout=60, environment=None):
        program, *arguments = argv
        if program == "systemctl":
            return self.systemctl(*arguments)
        if program == "journalctl":
            return Result(0, JOURNAL, "")
        if program == "crictl":
            return Result(127, "", "crictl: no such program")
        if program == "ctr":
            state = "ok" if self.daemon else "error"
            return Result(0, f"io.containerd.grpc.v1 cri linux/amd64 {state}\n", "")
        return self.asked(argv)

    def asked(self, argv):
        """The real containerd's answer; the same question about the same files is asked once."""
        folder = os.path.dirname(argv[2]) if argv[1] == "--config" else None
        files = sorted(Path(folder).rglob("*")) if folder else []
        key = (*argv, *((str(path), path.read_bytes()) for path in files if path.is_file()))
        if key not in self.answers:
            answer = subprocess.run(argv, capture_output=True, text=True, check=False)
            self.answers[key] = Result(answer.returncode, answer.stdout, answer.stderr)
        return self.answers[key]

    def systemctl(self, verb, *arguments):
        if verb == "show":
            pid = self.daemon.pid if self.daemon else 0
            active = "active" if self.daemon else "failed"
            return Result(0, f"LoadState=loaded\nActiveState={active}\nMainPID={pid}\n", "")
        if verb == "restart":
            self.restarts += 1
            return Result(0, "", "") if self.start() else Result(1, "", "Job failed.")
        return Result(0, "", "")


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path, "1.7")
    made.imports.mkdir(parents=True)
    made.config.write_text(TEXT)
    made.config.chmod(0o640)
    return made


@pytest.fixture
def systems():
    made = []
    yield (
        lambda *arguments, **options: made.append(StandinSystem(*arguments, **options)) or made[-1]
    )
    for system in made:
        system.stop()


def run(place, system, *, check=False, state="present", name="nvidia", **settings):
    """One run of the module's transaction."""
    request = Request(
        name=name,
        state=state,
        runtime_path="/bin/true",
        config_path=str(place.config),
        drop_in_path=str(place.drop_in),
    )
    scratch = place.folder / "scratch"
    scratch.mkdir(exist_ok=True)
    dependencies = Dependencies(
        run=system,
        parse=toml_parser(None, str(scratch)),
        store=StateStore(str(place.state)),
        scratch=str(scratch),
        exists=os.path.exists,
    )
    given = Settings(
        distribution="containerd",
        containerd_path=binary(place.containerd),
        restart_timeout=2,
        **settings,
    )
    return ContainerdRuntime(request, given, dependencies)(check)


# -- restart -----------------------------------------------------------------------------------


def test_restart_is_required_until_the_daemon_is_restarted(place, systems):
    system = systems(place)
    assert run(place, system, check=True).restart_required
    assert run(place, system).restart_required
    again = run(place, system)
    assert not again.changed
    assert again.restart_required
    assert "after the running" in again.restart_reason
    system.start()
    settled = run(place, system)
    assert not settled.restart_required
    assert settled.restart_reason is None


def test_daemon_that_does_not_run_is_not_started(place, systems):
    system = systems(place)
    system.stop()
    outcome = run(place, system, restart=True)
    assert outcome.changed
    assert not outcome.restart_required
    assert "not running" in outcome.restart_reason
    assert system.restarts == 0


VOIDING = fill("@VERSION@[@CRI@]\n  max_container_log_line_size = 4096\n", 2, "")


@pytest.mark.parametrize("check", [True, False])
def test_a_restart_that_would_lose_settings_is_refused(place, systems, check):
    place.config.write_text(fill('imports = ["@IMPORTS@/*.toml"]\n' + TEXT, 2, str(place.imports)))
    system = systems(place)
    (place.imports / "50-other.toml").write_text(VOIDING)
    before = place.snapshot()
    with pytest.raises(KubegpuError) as refused:
        run(place, system, check=check, restart=True)
    error = refused.value
    assert "50-other.toml voids CRI settings of other files" in error.cause
    assert "newer than the running containerd" in error.cause
    assert error.evidence == f"{place.config}: containerd.runtimes.runc"
    assert (place.snapshot(), system.restarts) == (before, 0)


def test_settings_that_are_lost_already_are_a_warning(place, systems):
    place.config.write_text(fill('imports = ["@IMPORTS@/*.toml"]\n' + TEXT, 2, str(place.imports)))
    (place.imports / "50-other.toml").write_text(VOIDING)
    system = systems(place)
    outcome = run(place, system, restart=True)
    assert outcome.restarted
    assert any("voids CRI settings" in warning for warning in outcome.warnings)
    # The file is ours to change from here on: an interrupted run is finished.
    (place.imports / "50-other.toml").write_text(
        (place.imports / "50-other.toml").read_text() + "# later\n"
    )
    assert run(place, system, restart=True).restarted


def test_restart_happens_once_and_only_when_needed(place, systems):
    system = systems(place)
    predicted = run(place, system, check=True, restart=True)
    assert system.restarts == 0
    outcome = run(place, system, restart=True)
    assert (outcome.changed, outcome.restarted, outcome.restart_required) == (True, True, False)
    assert (predicted.changed, predicted.restarted, predicted.diff) == (
        True,
        True,
        outcome.diff,
    )
    assert system.restarts == 1
    assert "nvidia" in system.loaded
    assert not run(place, system, restart=True).changed
    # Same bytes, new file: the daemon has them already.
    os.utime(place.config)
    assert not run(place, system, restart=True).changed
    assert system.restarts == 1


def test_run_that_died_between_write_and_restart_is_finished_by_the_next(place, systems):
    system = systems(place)
    run(place, system)
    assert "nvidia" not in system.loaded
    outcome = run(place, system, restart=True)
    assert outcome.diff == []
    assert outcome.changed
    assert outcome.restarted
    assert "nvidia" in system.loaded


def test_removal_of_a_whole_file_also_requires_a_restart(place, systems):
    place.config.unlink()
    system = systems(place)
    run(place, system, restart=True)
    run(place, system, state="absent")
    assert not place.config.exists()
    assert run(place, system, state="absent").restart_required


@pytest.mark.parametrize("name", ["nvidia", "second"])
def test_containerd_that_does_not_come_back_gets_its_old_file_back(place, systems, name):
    before = place.snapshot()
    system = systems(place, broken=lambda text: "runtimes.nvidia" in text)
    if name == "second":
        system.broken = lambda text: "runtimes.second" in text
        run(place, system, restart=True)
        before = place.snapshot()
    restarts = system.restarts
    with pytest.raises(RolledBackError) as caught:
        run(place, system, restart=True, name=name)
    assert place.snapshot() == before
    assert system.restarts == restarts + 2
    assert system.daemon is not None
    assert JOURNAL in caught.value.evidence
    assert "old configuration was restored" in caught.value.cause
    assert "runs again" in caught.value.cause
    assert place.state.exists() == (name == "second")


@pytest.mark.full(why="another sign of the same failure")
def test_cri_that_does_not_answer_counts_as_not_coming_back(place, systems):
    system = systems(place)

    class MuteStandin(StandinSystem):
        def __call__(self, argv, timeout=60, environment=None):
            if argv[0] == "ctr" and "nvidia" in self.loaded:
                return Result(0, "io.containerd.grpc.v1 cri linux/amd64 error\n", "")
            return super().__call__(argv, timeout, environment)

    system.__class__ = MuteStandin
    before = place.snapshot()
    with pytest.raises(RolledBackError, match="did not come back with the handler nvidia"):
        run(place, system, restart=True)
    assert place.snapshot() == before


def test_failed_restart_of_an_earlier_runs_file_puts_back_what_was_before_it(place, systems):
    before = place.snapshot()
    system = systems(place, broken=lambda text: "runtimes.nvidia" in text)
    run(place, system)
    with pytest.raises(RolledBackError):
        run(place, system, restart=True)
    assert place.snapshot() == before
    assert system.daemon is not None


def test_failed_removal_keeps_the_handler(place, systems):
    system = systems(place)
    run(place, system, restart=True)
    present = place.snapshot()
    system.broken = lambda text: "runtimes.nvidia" not in text
    with pytest.raises(RolledBackError):
        run(place, system, restart=True, state="absent")
    assert place.snapshot() == present
    system.broken = lambda text: False
    run(place, system, restart=True, state="absent")
    assert place.config.read_text() == TEXT


# -- kills -------------------------------------------------------------------------------------


def killed_at(place, system, step, **options):
    """Run in a child that kills itself before its ``step``-th system call of interest."""
    child = os.fork()
    if child == 0:
        try:
            _kill_before(step)
            run(place, system, **options)
        finally:
            os._exit(0)
    _pid, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _kill_before(step):
    count = 0

    def counted(function):
        def wrapper(*arguments, **options):
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return wrapper

    for name in ("rename", "unlink", "fsync", "mkdir", "rmdir", "fchmod"):
        setattr(_files.os, name, counted(getattr(os, name)))


@pytest.mark.full("absent", why="the rollback")
@pytest.mark.parametrize("state", ["present", "absent"])
def test_kill_at_any_point_leaves_a_whole_file_and_the_next_run_finishes(place, systems, state):
    system = systems(place)
    before = place.config.read_bytes()
    run(place, system)
    present = place.config.read_bytes()
    run(place, system, state="absent")
    steps = 0
    while True:
        if state == "absent":
            run(place, system)
        steps += 1
        if not killed_at(place, system, steps, state=state):
            break
        assert place.config.read_bytes() in (before, present), f"step {steps}"
        run(place, system, state=state)
        assert place.config.read_bytes() == (present if state == "present" else before)
        assert stat.S_IMODE(place.config.stat().st_mode) == 0o640
        run(place, system, state="absent")
        assert place.config.read_bytes() == before, f"step {steps}"
        left = [path.name for path in place.config.parent.iterdir()]
        assert sorted(left) == ["conf.d", "config.toml"], f"step {steps}"
        assert not place.state.parent.exists(), (
            f"step {steps}: {list(place.state.parent.iterdir())}"
        )
    # Record, backup and file at least, each with several calls.
    assert steps > 8


# -- locks and races ---------------------------------------------------------------------------


def test_second_run_waits_for_the_first_and_then_gives_up_by_name(place, systems):
    system = systems(place)
    with (
        _files.locked(f"{place.state}.lock"),
        pytest.raises(LockedError, match="Another run"),
    ):
        run(place, system, lock_timeout=0.2)
    assert place.config.read_text() == TEXT
    assert run(place, system).changed


def test_concurrent_runs_of_two_handlers_both_arrive(place, systems):
    system = systems(place)
    children = []
    for name in ("one", "two", "three"):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run(place, system, name=name)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert set(runtimes(place.dump())) == {"runc", "one", "two", "three"}


def test_edit_by_somebody_else_during_the_run_is_not_overwritten(place, systems, monkeypatch):
    system = systems(place)
    plan = prepare.plan_present

    def edited_meanwhile(*arguments):
        planned = plan(*arguments)
        place.config.write_text(TEXT + "# mine\n")
        return planned

    monkeypatch.setattr(prepare, "plan_present", edited_meanwhile)
    with pytest.raises(KubegpuError, match="changed by another program"):
        run(place, system)
    assert place.config.read_text() == TEXT + "# mine\n"


def test_file_that_cannot_be_written_leaves_all_as_it_was(place, systems, monkeypatch):
    system = systems(place)
    before = place.snapshot()
    real = _state.write_file

    def full(wanted):
        if wanted.path == str(place.config) and b"nvidia" in (wanted.content or b""):
            raise KubegpuError("No space left.")
        return real(wanted)

    monkeypatch.setattr(_state, "write_file", full)
    with pytest.raises(KubegpuError, match="No space left"):
        run(place, system)
    assert place.snapshot() == before
    assert not place.state.exists()


def test_plan_that_means_something_else_to_containerd_is_refused(place, systems, monkeypatch):
    system = systems(place)
    before = place.snapshot()
    plan = prepare.plan_present

    def wrong(*arguments):
        planned = plan(*arguments)
        edits = tuple(
            FileEdit(
                edit.path,
                edit.before,
                edit.after.replace('BinaryName = "/bin/true"', 'Binaryname2 = "/bin/true"'),
                edit.changes,
            )
            for edit in planned.edits
        )
        return Plan(edits, planned.reasons)

    monkeypatch.setattr(prepare, "plan_present", wrong)
    with pytest.raises(KubegpuError, match="would not mean what it should"):
        run(place, system)
    assert place.snapshot() == before
