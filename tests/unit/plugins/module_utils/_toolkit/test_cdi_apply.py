# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._core.errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._record.store import StateStore
from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit import cdi_apply

# Shape of nvidia-ctk 1.20.0's output, shortened to what is read.
SPEC = """cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
containerEdits:
  mounts:
    - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{0}
      containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{0}
"""
NEW = SPEC.format("580.95.05")


class Commands:
    """Stand-in for the node's commands: the service's and nvidia-ctk's answers.

    With ``modules``, a file, the service is NVIDIA's 1.20.0: it starts where that has the module.
    """

    def __init__(self, spec=NEW, service=None, modules=None):
        self.spec, self.service, self.modules, self.calls = spec, service, modules, []
        self.result = "success"

    def starts(self):
        return self.modules is None or "/nvidia.ko" in self.modules.read_text()

    def __call__(self, argv, timeout=60, environment=None):
        self.calls.append(argv[:2])
        if argv[0] == "nvidia-ctk":
            return Result(0 if self.spec else 1, self.spec or "", "" if self.spec else "no NVML")
        if argv[:2] == ["systemctl", "show"]:
            if not self.service:
                return Result(0, "LoadState=not-found\nResult=success\nConditionResult=no\n", "")
            text = f"LoadState=loaded\nResult={self.result}\nConditionResult=yes\n"
            if self.modules:
                shell = f'/usr/bin/grep -qE "/(nvidia|nvidia-current)[.]ko" {self.modules}'
                text += f"ExecCondition={{ path=/bin/sh ; argv[]=/bin/sh -c {shell} || "
                text += "[ -e /dev/dxg ] ; ignore_errors=no ; code=(null) ; status=0/0 }\n"
            return Result(0, text, "")
        if argv[:2] == ["systemctl", "restart"] and self.service:
            # A unit that is left out is no failure to systemctl.
            self.result = "success" if self.starts() else "exec-condition"
            if not self.starts():
                return Result(0, "", "")
            self.service.parent.mkdir(exist_ok=True)
            self.service.write_text(self.spec)
        return Result(0, "", "")


def request(params):
    names = cdi_apply.CdiRequest.__dataclass_fields__
    return cdi_apply.CdiRequest(**{name: params[name] for name in names})


def dependencies(params, run):
    return cdi_apply.Dependencies(
        run, lambda: StateStore(params["state_path"]), os.path.exists, os.path.realpath
    )


def present(params, run, check_mode):
    return cdi_apply.present(request(params), dependencies(params, run), check_mode)


def absent(params, check_mode):
    return cdi_apply.absent(request(params), dependencies(params, Commands()), check_mode)


@pytest.fixture
def params(tmp_path):
    return {
        "state": "present",
        "driver_version": "580.95.05",
        "previous_driver_version": None,
        "method": "auto",
        "path": str(tmp_path / "etc-cdi" / "nvidia.yaml"),
        "service_path": str(tmp_path / "run-cdi" / "nvidia.yaml"),
        "service_expected": False,
        "toolkit_removed": False,
        "outdated": "",
        "state_path": str(tmp_path / "kubegpu" / "state.json"),
    }


def everything(tmp_path):
    return sorted(str(path) for path in tmp_path.rglob("*"))


def test_create_again_absent_absent_again(params, tmp_path):
    run = Commands()
    predicted = present(params, run, check_mode=True)
    assert everything(tmp_path) == []
    done = present(params, run, check_mode=False)
    assert done == predicted
    assert done["changed"] and done["method"] == "generate"
    assert done["diff"]["after"] == "nvidia.com/gpu for driver 580.95.05\n"
    again = present(params, run, check_mode=False)
    assert not again["changed"] and again["diff"]["before"] == again["diff"]["after"]

    before = everything(tmp_path)
    predicted = absent(params, check_mode=True)
    assert everything(tmp_path) == before
    gone = absent(params, check_mode=False)
    assert gone == predicted and gone["changed"]
    assert everything(tmp_path) == []
    assert not absent(params, check_mode=False)["changed"]


def test_specification_of_another_driver_is_made_again_and_comes_back(params, tmp_path):
    old = tmp_path / "etc-cdi" / "nvidia.yaml"
    old.parent.mkdir()
    old.write_text(SPEC.format("535.104.05"))
    done = present(params, Commands(), check_mode=False)
    assert done["reasons"] == ["it was made for driver 535.104.05, not 580.95.05"]
    assert "580.95.05" in old.read_text()
    absent(params, check_mode=False)
    assert old.read_text() == SPEC.format("535.104.05")


def test_specification_that_somebody_made_since_stays(params):
    present(params, Commands(), check_mode=False)
    with open(params["path"], "a", encoding="utf-8") as handle:
        handle.write("# mine\n")
    assert not absent(params, check_mode=False)["changed"]
    with open(params["path"], encoding="utf-8") as handle:
        assert handle.read().endswith("# mine\n")


def test_service_is_used_where_the_toolkit_brings_it(params, tmp_path):
    run = Commands(service=tmp_path / "run-cdi" / "nvidia.yaml")
    done = present(params, run, check_mode=False)
    assert done["method"] == "service" and done["path"] == params["service_path"]
    assert ["systemctl", "restart"] in run.calls and ["nvidia-ctk", "cdi"] not in run.calls


def test_play_that_installs_first_predicts_what_it_reports(params, tmp_path):
    run = Commands(service=tmp_path / "run-cdi" / "nvidia.yaml")
    params.update(previous_driver_version="", service_expected=True)
    run.service = None
    predicted = present(params, run, check_mode=True)
    run.service = tmp_path / "run-cdi" / "nvidia.yaml"
    run(["systemctl", "restart", "by the package itself"])
    calls = len(run.calls)
    assert present(params, run, check_mode=False) == predicted
    assert ["systemctl", "restart"] not in run.calls[calls:]


# Debian's open kernel modules, which NVIDIA's unit does not look for.
DEBIAN_OPEN = "updates/dkms/nvidia-current-open.ko:\n"


@pytest.fixture
def debian_open(tmp_path):
    modules = tmp_path / "modules.dep"
    modules.write_text(DEBIAN_OPEN)
    return Commands(service=tmp_path / "run-cdi" / "nvidia.yaml", modules=modules)


def test_service_that_declines_is_replaced_by_the_command(params, debian_open):
    predicted = present(params, debian_open, check_mode=True)
    done = present(params, debian_open, check_mode=False)
    assert done == predicted
    assert (done["method"], done["path"]) == ("generate", params["path"])
    assert "which has nvidia-current-open.ko" in done["reasons"][1]
    calls = len(debian_open.calls)
    again = present(params, debian_open, check_mode=False)
    assert not again["changed"] and again["reasons"] == []
    assert ["systemctl", "restart"] not in debian_open.calls[calls:]
    absent(params, check_mode=False)
    assert present(params, debian_open, check_mode=True)["changed"]


def test_what_the_service_wrote_for_another_driver_does_not_hide_the_new_one(params, debian_open):
    """Containers get what is in /var/run/cdi, and with other modules the service does not start."""
    debian_open.service.parent.mkdir()
    debian_open.service.write_text(SPEC.format("535.261.03"))
    done = present(params, debian_open, check_mode=False)
    assert done["reasons"][0] == "it was made for driver 535.261.03, not 580.95.05"
    assert debian_open.service.read_text() == NEW
    assert not present(params, debian_open, check_mode=False)["changed"]
    absent(params, check_mode=False)
    assert debian_open.service.read_text() == SPEC.format("535.261.03")


@pytest.mark.parametrize("method", ["auto", "generate"])
@pytest.mark.parametrize("folder", ["run-cdi", "var-run-cdi"])
def test_what_the_command_makes_outlasts_the_services_place(
    params, debian_open, tmp_path, monkeypatch, method, folder
):
    """A caller hands on the path that the facts tell, which is where the service wrote."""
    lasting = tmp_path / "etc-cdi" / "nvidia.yaml"
    monkeypatch.setattr(cdi_apply, "_LASTING_PATH", str(lasting))
    debian_open.service.parent.mkdir()
    debian_open.service.write_text(SPEC.format("535.261.03"))
    (tmp_path / "var-run-cdi").symlink_to(debian_open.service.parent)
    params.update(method=method, path=str(tmp_path / folder / "nvidia.yaml"))
    predicted = present(params, debian_open, check_mode=True)
    done = present(params, debian_open, check_mode=False)
    assert done == predicted
    assert (done["method"], done["path"]) == ("generate", str(lasting))
    assert lasting.read_text() == debian_open.service.read_text() == NEW
    # The next boot.
    debian_open.service.unlink()
    assert not present(params, debian_open, check_mode=False)["changed"]
    assert absent(params, check_mode=False)["changed"]
    assert not lasting.parent.exists()


def test_systemd_has_the_last_word(params, debian_open, tmp_path):
    """A condition that this release cannot read."""
    run = Commands(service=debian_open.service, modules=debian_open.modules)
    show = run.__call__

    def unknown(argv, timeout=60, environment=None):
        answer = show(argv, timeout, environment)
        text = answer.stdout.replace("grep -qE", "test-modules")
        return Result(answer.rc, text if argv[0] == "systemctl" else answer.stdout, "")

    done = present(params, unknown, check_mode=False)
    assert done["method"] == "generate" and "a condition of its unit" in done["reasons"][1]


@pytest.mark.parametrize("unit", ["none", "starts", "declines", "unknown condition"])
def test_specification_for_the_driver_is_made_again_for_other_mig_devices(
    params, debian_open, tmp_path, unit
):
    whole = SPEC.replace('"0"', '"all of it"').format("580.95.05")
    run = {
        "none": Commands(),
        "starts": Commands(service=tmp_path / "run-cdi" / "nvidia.yaml"),
    }.get(unit, debian_open)
    by_service = unit == "starts"
    found = tmp_path / ("run-cdi" if by_service else "etc-cdi") / "nvidia.yaml"
    found.parent.mkdir()
    found.write_text(whole)
    if unit == "unknown condition":
        # Of an earlier kernel, whose module the service found: containers get this one.
        (tmp_path / "run-cdi").mkdir()
        debian_open.service.write_text(whole)

    def answer(argv, timeout=60, environment=None):
        done = run(argv, timeout, environment)
        hidden = done.stdout.replace("grep -qE", "test-modules")
        text = hidden if unit == "unknown condition" and argv[0] == "systemctl" else done.stdout
        return Result(done.rc, text, "")

    params["outdated"] = "the MIG devices were changed"
    predicted = present(params, answer, check_mode=True)
    assert predicted["changed"] and found.read_text() == whole
    done = present(params, answer, check_mode=False)
    assert found.read_text() == NEW and (done["changed"], done["diff"]["after"]) == (
        True, predicted["diff"]["after"],
    )  # fmt: skip
    assert done["method"] == ("service" if by_service else "generate")
    assert done["reasons"][0] == "the MIG devices were changed"
    if unit == "unknown condition":
        assert debian_open.service.read_text() == NEW
    else:
        assert done == predicted


def test_service_that_was_asked_for_and_declines_is_an_error_with_the_condition(
    params, debian_open, tmp_path
):
    params["method"] = "service"
    before = everything(tmp_path)
    with pytest.raises(KubegpuError, match="ExecCondition looks for") as caught:
        present(params, debian_open, check_mode=False)
    assert "method: auto" in caught.value.next_step
    assert "nvidia-smi" not in str(caught.value)
    assert everything(tmp_path) == before


# What the service of a toolkit wrote that is gone: the packages leave it (packaging/debian,
# v1.20.0).
LEFT = SPEC.format("580.95.05") + "  hooks:\n    - hookName: createContainer\n      path: {0}\n"


@pytest.mark.parametrize("name", ["nvidia-cdi-hook", "nvidia-ctk"])
def test_what_the_service_left_goes_with_its_program(params, tmp_path, name):
    left, program = tmp_path / "run-cdi" / "nvidia.yaml", tmp_path / name
    left.parent.mkdir()
    left.write_text(LEFT.format(program))
    program.write_text("")
    # While the toolkit is there, its service has made it.
    assert not absent(params, check_mode=False)["changed"]
    params["toolkit_removed"] = True
    predicted = absent(params, check_mode=True)
    assert predicted["changed"] and left.exists()
    program.unlink()
    assert absent({**params, "toolkit_removed": False}, check_mode=False) == predicted
    assert not left.exists() and str(program) in predicted["reasons"][0]
    assert not absent(params, check_mode=False)["changed"]


@pytest.mark.parametrize("removed", [True, False])
@pytest.mark.parametrize("made_again", [True, False])
def test_what_comes_back_goes_with_a_toolkit_that_is_gone(
    params, debian_open, tmp_path, removed, made_again
):
    """The specification of before was the service's; its program goes with the packages."""
    left, program = debian_open.service, tmp_path / "nvidia-cdi-hook"
    program.write_text("")
    left.parent.mkdir()
    left.write_text(LEFT.format(program))
    debian_open.spec = SPEC.format("590.1")
    params.update(driver_version="590.1", toolkit_removed=removed)
    assert present(params, debian_open, check_mode=False)["changed"]
    if made_again:
        left.write_text(LEFT.format(program) + "# again\n")
    predicted = absent(params, check_mode=True)
    if removed:
        program.unlink()
    assert absent(params, check_mode=False) == predicted
    assert predicted["changed"] and left.exists() is not removed
    assert any(str(program) in reason for reason in predicted["reasons"]) is removed
    assert not absent(params, check_mode=False)["changed"]


def test_specification_of_somebody_else_is_not_taken_for_the_services(params, tmp_path):
    left = tmp_path / "run-cdi" / "nvidia.yaml"
    left.parent.mkdir()
    left.write_text(SPEC.format("580.95.05"))
    params["toolkit_removed"] = True
    assert not absent(params, check_mode=True)["changed"]
    assert not absent(params, check_mode=False)["changed"]
    assert left.exists()


def test_generator_that_fails_is_quoted_and_nothing_is_written(params, tmp_path):
    with pytest.raises(KubegpuError, match="no NVML") as caught:
        present(params, Commands(spec=""), check_mode=False)
    assert "nvidia-smi" in caught.value.next_step
    assert everything(tmp_path) == []


def test_absent_undoes_a_specification_wherever_it_was(params, tmp_path):
    elsewhere = {**params, "path": str(tmp_path / "other" / "gpus.yaml")}
    present(elsewhere, Commands(), check_mode=False)
    assert absent(params, check_mode=False)["changed"]
    assert everything(tmp_path) == []
