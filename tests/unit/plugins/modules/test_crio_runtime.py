# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRI-O's drop-in. No CRI-O is here: what its files come to is worked out as its source does it."""

from __future__ import annotations

import json
import os
import subprocess
import time
import tomllib

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import (
    KubegpuError,
    RolledBackError,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio import apply as crio_apply
from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.types import Request
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._runtime import module as shared
from ansible_collections.kubegpu.nodes.plugins.modules import crio_runtime
from tests.unit.fixtures.crio import PACKAGED
from tests.unit.fixtures.documented import documented_options
from tests.unit.module_process import predicted, run_module

CTK = """\
[crio.runtime.runtimes.nvidia]
runtime_path = "/bin/true"
runtime_type = "oci"
"""
# As the packages had it before they used conmonrs.
CONMON = """\
[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
monitor_path = "/usr/libexec/crio/conmon"
allowed_annotations = [
    "io.containers.trace-syscall",
]
"""
WITHOUT_MONITOR = """\
[crio.runtime.runtimes.runc]
runtime_path = "/usr/sbin/runc"
runtime_type = "oci"
"""
JOURNAL = "crio: validating runtime config: runtime validation"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "crio.conf.d"
    place.mkdir()
    (place / "10-crio.conf").write_text(PACKAGED)
    (tmp_path / "crio.conf").write_text("[crio]\n")
    return tmp_path


@pytest.fixture
def arguments(folder):
    return {
        "runtime_path": "/bin/true",
        "config_path": str(folder / "crio.conf"),
        "drop_in_path": str(folder / "crio.conf.d" / "99-nvidia.toml"),
        "state_path": str(folder / "var" / "state.json"),
        "unit": "kubegpu-test-no-such-unit",
    }


def own(folder):
    return folder / "crio.conf.d" / "99-nvidia.toml"


def handler(folder, name="nvidia"):
    return tomllib.loads(own(folder).read_text())["crio"]["runtime"]["runtimes"][name]


def run(arguments, **options):
    answer = predicted(crio_runtime.main, {**arguments, **options})
    assert not answer.get("failed"), answer
    return answer


@pytest.mark.parametrize("check", [True, False])
def test_an_image_that_does_not_keep_etc_is_refused(arguments, folder, monkeypatch, check):
    system = {"id": "cos", "version": "121", "image": "ID=cos in os-release", "image_system": "cos"}
    monkeypatch.setattr(shared, "read_os", lambda _reader: system)
    answer = run_module(crio_runtime.main, arguments, check=check)
    assert answer["failed"] and "cos 121 (Container-Optimized OS) is an image" in answer["cause"]
    assert (answer["evidence"], own(folder).exists()) == ("ID=cos in os-release", False)
    monkeypatch.setattr(shared, "read_os", lambda _: {**system, "image_system": "rpm-ostree"})
    assert run_module(crio_runtime.main, arguments, check=check)["changed"]


def test_present_again_absent_and_absent_again(arguments, folder):
    first = run(arguments)
    assert first["changed"]
    assert handler(folder) == {
        "runtime_path": "/bin/true",
        "runtime_root": "/run/crun",
        "runtime_type": "pod",
        "monitor_path": "/usr/libexec/crio/conmonrs",
        "allowed_annotations": ["io.containers.trace-syscall"],
    }
    assert first["handlers"]["nvidia"] == {"type": "pod", "path": "/bin/true"}
    assert first["default_runtime"] == "crun"
    again = run(arguments)
    assert (again["changed"], again["diff"]) == (False, [])
    assert run(arguments, state="absent")["changed"]
    assert not own(folder).exists()
    assert not (folder / "var").exists()
    assert (folder / "crio.conf.d" / "10-crio.conf").read_text() == PACKAGED
    assert not run(arguments, state="absent")["changed"]


def test_default_comes_and_goes(arguments, folder):
    assert run(arguments, set_default=True)["default_runtime"] == "nvidia"
    assert not run(arguments, set_default=True)["changed"]
    back = run(arguments)
    assert (back["changed"], back["default_runtime"]) == (True, "crun")
    assert "default_runtime" not in own(folder).read_text()


def test_what_somebody_adds_stays(arguments, folder):
    run(arguments)
    text = own(folder).read_text() + "\n[crio.metrics]\nenable_metrics = true\n"
    own(folder).write_text(text)
    assert not run(arguments)["changed"]
    run(arguments, state="absent")
    data = tomllib.loads(own(folder).read_text())
    assert data["crio"]["metrics"] == {"enable_metrics": True}
    assert "nvidia" not in own(folder).read_text().replace("kubegpu", "")


def test_packages_that_change_their_runtime_are_followed(arguments, folder):
    run(arguments)
    packaged = folder / "crio.conf.d" / "10-crio.conf"
    packaged.write_text(PACKAGED.replace("conmonrs", "conmon").replace('"pod"', '"oci"'))
    assert run(arguments)["changed"]
    assert handler(folder)["monitor_path"] == "/usr/libexec/crio/conmon"
    assert handler(folder)["runtime_type"] == "oci"


@pytest.mark.parametrize(
    ("text", "inherited"),
    [
        ("", {"runtime_type": "oci"}),
        ('[crio.runtime]\ndefault_runtime = "kata"\n[crio.runtime.runtimes.kata]\n'
         'runtime_type = "vm"\n[crio.runtime.runtimes.runc]\nruntime_root = "/r"\n',
         {"runtime_root": "/r"}),
        ('[crio.runtime.runtimes.nvidia]\nruntime_path = "/old"\nruntime_root = "/x"\n',
         {"runtime_type": "oci"}),
    ],
)  # fmt: skip
def test_what_is_inherited(arguments, folder, text, inherited):
    (folder / "crio.conf.d" / "10-crio.conf").write_text(text)
    run(arguments)
    assert handler(folder) == {"runtime_path": "/bin/true", **inherited}


@pytest.mark.parametrize(
    ("packaged", "text"),
    [
        (PACKAGED, CTK + 'monitor_path = "/usr/libexec/crio/conmon"\n'),
        # All handlers of the type oci get this monitor.
        (PACKAGED, CTK + '[crio.runtime]\nconmon = "/usr/libexec/crio/conmon"\n'),
        # Nor has the node's own runtime a monitor: conmon is in PATH.
        (WITHOUT_MONITOR, CTK),
        (WITHOUT_MONITOR, CTK + 'platform_runtime_paths = {"linux/amd64" = "/bin/true"}\n'),
    ],
)
def test_a_complete_handler_of_somebody_else_is_left_alone(arguments, folder, packaged, text):
    (folder / "crio.conf.d" / "10-crio.conf").write_text(packaged)
    (folder / "crio.conf.d" / "50-operator.conf").write_text(text)
    answer = run(arguments)
    assert not answer["changed"]
    assert any("not by us" in reason for reason in answer["reasons"])
    assert not own(folder).exists()


@pytest.mark.parametrize(
    ("packaged", "text", "lacks", "expected"),
    [
        # As nvidia-ctk writes it: NVIDIA/nvidia-container-toolkit#681.
        (CONMON, CTK, "monitor_path",
         {"runtime_type": "oci", "monitor_path": "/usr/libexec/crio/conmon"}),
        # conmonrs goes with the type pod.
        (PACKAGED, CTK + 'runtime_root = "/run/nvidia"\n', "monitor_path",
         {"runtime_type": "pod", "monitor_path": "/usr/libexec/crio/conmonrs",
          "runtime_root": "/run/nvidia"}),
        (PACKAGED, CTK + 'monitor_path = "/usr/libexec/crio/conmonrs"\n', "runtime_type",
         {"runtime_type": "pod", "monitor_path": "/usr/libexec/crio/conmonrs"}),
        # The monitor of all handlers is not that of the type pod.
        (PACKAGED, CTK.replace("oci", "pod") + '[crio.runtime]\nconmon = "/usr/bin/conmon"\n',
         "monitor_path", {"runtime_type": "pod", "monitor_path": "/usr/libexec/crio/conmonrs"}),
        (CONMON, CTK + 'monitor_path = "/my/conmon"\ninherit_default_runtime = true\n',
         "inherit_default_runtime", {"runtime_type": "oci", "monitor_path": "/my/conmon"}),
        (WITHOUT_MONITOR, CTK + 'platform_runtime_paths = {"linux/amd64" = "/bin/crun"}\n',
         "platform_runtime_paths", {"runtime_type": "oci"}),
        (WITHOUT_MONITOR, CTK.replace("oci", "vm") + 'runtime_config_path = "/x"\n',
         "runtime_config_path", {"runtime_type": "oci"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["crio.conf", "crio.conf.d/99-nvidia.conf", "crio.conf.d/5/a"])
def test_an_incomplete_handler_is_completed_in_a_later_file(
    arguments, folder, packaged, text, lacks, expected, place
):
    (folder / "crio.conf.d" / "10-crio.conf").write_text(packaged)
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).write_text(text)
    answer = run(arguments)
    assert answer["changed"]
    assert any(place in reason and lacks in reason for reason in answer["reasons"])
    inherited = tomllib.loads(packaged)["crio"]["runtime"]["runtimes"].get("crun", {})
    assert handler(folder) == {**inherited, "runtime_path": "/bin/true", **expected}
    assert not run(arguments)["changed"]
    assert (folder / place).read_text() == text
    assert run(arguments, state="absent")["changed"]
    assert not own(folder).exists()


def test_an_incomplete_handler_in_a_later_file_is_named(arguments, folder):
    (folder / "crio.conf.d" / "99-operator.conf").write_text(CTK)
    answer = predicted(crio_runtime.main, arguments)
    assert answer["failed"]
    assert "99-operator.conf sets the handler nvidia with other settings" in answer["cause"]
    assert "monitor_path (CRI-O searches conmon in PATH" in answer["cause"]
    assert "Correct it there" in answer["next_step"]
    assert not own(folder).exists()


def test_what_this_module_cannot_write_is_named(arguments, folder):
    (folder / "crio.conf").write_text(CTK + "default_annotations = {a = 'b'}\n")
    answer = predicted(crio_runtime.main, arguments)
    assert answer["failed"] and "default_annotations" in answer["cause"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('[crio.runtime.runtimes.nvidia]\nruntime_path = "/other"\n', {}),
        ('[crio.runtime]\ndefault_runtime = "crun"\n', {"set_default": True}),
    ],
)
def test_a_later_file_has_the_last_word(arguments, folder, text, options):
    (folder / "crio.conf.d" / "99-operator.conf").write_text(text)
    answer = predicted(crio_runtime.main, {**arguments, **options})
    assert answer["failed"]
    assert "99-operator.conf" in answer["cause"]
    assert not own(folder).exists()


def test_missing_program_is_planned_but_not_written(arguments, folder):
    options = {**arguments, "runtime_path": str(folder / "not-there")}
    assert run_module(crio_runtime.main, options, check=True)["changed"]
    assert run_module(crio_runtime.main, options)["failed"]
    assert not own(folder).exists()


@pytest.mark.parametrize("name", ["", "runc", "crun", "a.b", "a b", "-x", "x" * 64])
def test_names_are_validated(arguments, folder, name):
    assert predicted(crio_runtime.main, {**arguments, "name": name})["failed"]
    assert not own(folder).exists()


def test_broken_files_are_named_with_crio_own_check(arguments, folder):
    (folder / "crio.conf.d" / "10-crio.conf").write_text("[crio\n")
    answer = predicted(crio_runtime.main, arguments)
    assert answer["failed"]
    assert "10-crio.conf is not valid TOML, so CRI-O" in answer["cause"]
    assert "crio config" in answer["next_step"]


@pytest.mark.parametrize(
    ("program", "warned"),
    [("/usr/libexec/crio/crun", True), ("/usr/bin/crun", False), ("crun", False)],
)
def test_a_program_that_nvidias_runtime_would_not_find_is_warned_of(
    arguments, folder, program, warned
):
    text = PACKAGED.replace("/usr/libexec/crio/crun", program)
    (folder / "crio.conf.d" / "10-crio.conf").write_text(text)
    reasons = " ".join(run(arguments)["reasons"])
    assert ("nvidia-container-runtime.runtimes" in reasons) is warned


def test_no_crio_is_told_with_the_next_step(arguments, folder):
    (folder / "crio.conf").unlink()
    answer = predicted(crio_runtime.main, arguments)
    assert answer["failed"]
    assert "not installed" in answer["cause"]


def test_a_second_handler_needs_a_file_of_its_own(arguments, folder):
    run(arguments)
    assert predicted(crio_runtime.main, {**arguments, "name": "gpu"})["failed"]
    other = str(folder / "crio.conf.d" / "98-gpu.toml")
    assert run(arguments, name="gpu", drop_in_path=other)["changed"]
    assert not run(arguments)["changed"]


def test_documented_options_are_the_real_ones():
    documented = documented_options(crio_runtime)
    assert set(documented) == set(crio_runtime.ARGUMENTS)
    for name, option in crio_runtime.ARGUMENTS.items():
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name].get("choices") == option.get("choices"), name
        assert documented[name]["type"] == option["type"], name


# -- restarts ------------------------------------------------------------------------------------


class StandinSystem:
    """Stands in for systemd and CRI-O: a sleeping process that starts if the files please it."""

    def __init__(self, folder, broken=False):
        self.folder = folder
        self.broken = broken
        self.info = None
        self.restarts = 0
        self.daemon = None
        self.start()

    def start(self):
        self.stop()
        if self.broken and (own(self.folder).exists() or self.broken == "always"):
            return False
        time.sleep(0.05)
        self.daemon = subprocess.Popen(["sleep", "600"])
        return True

    def stop(self):
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()
        self.daemon = None

    def __call__(self, argv, timeout=60, environment=None):
        if argv[:2] == ["systemctl", "show"]:
            pid = self.daemon.pid if self.daemon else 0
            state = "active" if self.daemon else "failed"
            return Result(0, f"LoadState=loaded\nActiveState={state}\nMainPID={pid}\n", "")
        if argv[:2] == ["systemctl", "restart"]:
            self.restarts += 1
            return Result(0, "", "") if self.start() else Result(1, "", "Job failed.")
        if argv[0] == "journalctl":
            return Result(0, JOURNAL, "")
        if argv[0] == "crictl" and self.info is not None:
            return Result(0, json.dumps(self.info), "")
        return Result(127, "", "no such program") if argv[0] == "crictl" else Result(0, "", "")


@pytest.fixture
def system(folder):
    made = StandinSystem(folder)
    yield made
    made.stop()


def transaction(folder, system, state="present", **settings):
    request = Request(
        state=state,
        runtime_path="/bin/true",
        config_path=str(folder / "crio.conf"),
        drop_in_path=str(own(folder)),
    )
    dependencies = crio_apply.Dependencies(
        run=system,
        parse=tomllib.loads,
        store=StateStore(str(folder / "var" / "state.json")),
        exists=os.path.exists,
    )
    options = crio_apply.Settings(restart_timeout=1, **settings)
    return crio_apply.CrioRuntime(request, options, dependencies)(False)


def test_restart_is_required_until_it_is_done(folder, system):
    assert transaction(folder, system).restart_required
    assert transaction(folder, system).restart_required
    done = transaction(folder, system, restart=True)
    assert (done.changed, done.restarted, done.restart_required) == (True, True, False)
    assert not transaction(folder, system, restart=True).restarted
    assert system.restarts == 1
    gone = transaction(folder, system, state="absent", restart=True)
    assert (gone.restarted, system.restarts) == (True, 2)
    assert not own(folder).exists()


def test_old_bytes_come_back_where_crio_does_not(folder, system):
    system.broken = True
    with pytest.raises(RolledBackError) as failure:
        transaction(folder, system, restart=True)
    assert JOURNAL in str(failure.value)
    assert not own(folder).exists()
    assert system.daemon is not None
    with pytest.raises(KubegpuError):
        transaction(folder, system, restart=True)


def test_what_a_killed_run_wrote_is_taken_back_where_crio_does_not_start_with_it(folder, system):
    transaction(folder, system)  # killed between write and restart
    system.broken = True
    with pytest.raises(RolledBackError) as failure:
        transaction(folder, system, restart=True)
    assert "The old configuration was restored; CRI-O runs again" in str(failure.value)
    assert not own(folder).exists()
    assert system.daemon is not None
    # Nor does a record stay.
    assert not (folder / "var").exists()


def test_a_file_that_crio_had_loaded_stays_where_another_one_breaks_it(folder, system):
    transaction(folder, system, restart=True)
    text = own(folder).read_text()
    time.sleep(0.05)
    (folder / "crio.conf").write_text("[crio]\n# edited\n")
    system.broken = True
    with pytest.raises(KubegpuError) as failure:
        transaction(folder, system, restart=True)
    assert not isinstance(failure.value, RolledBackError)
    assert "This run changed no file" in failure.value.next_step
    assert JOURNAL in failure.value.evidence
    assert own(folder).read_text() == text


def test_a_failed_restart_after_an_undo_has_a_next_step(folder, system):
    transaction(folder, system, restart=True)
    system.broken = "always"
    with pytest.raises(KubegpuError) as failure:
        transaction(folder, system, state="absent", restart=True)
    assert str(own(folder)) in failure.value.next_step
    assert "systemctl restart crio" in failure.value.next_step
    assert not own(folder).exists()


def test_absent_waits_for_no_handler(folder, system):
    """Nothing of ours is there; CRI-O is only restarted as its files are newer."""
    time.sleep(0.05)
    (folder / "crio.conf").write_text("[crio]\n# edited\n")
    system.info = {
        "status": {"conditions": [{"type": "RuntimeReady", "status": True}]},
        "runtimeHandlers": [{"name": "crun"}],
    }
    assert transaction(folder, system, state="absent", restart=True).restarted


def test_the_diff_comes_with_diff_mode_alone(arguments):
    for check in (True, False):
        answer = run_module(crio_runtime.main, arguments, check=check, diff=False)
        assert answer["changed"] and "diff" not in answer
