# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._command import Result
from ansible_collections.kubegpu.nodes.plugins.module_utils._errors import KubegpuError
from ansible_collections.kubegpu.nodes.plugins.modules import cdi_specification as module

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
    """Stand-in for the node's commands: the service's and nvidia-ctk's answers."""

    def __init__(self, spec=NEW, service=None):
        self.spec, self.service, self.calls = spec, service, []

    def __call__(self, argv, timeout=60, environment=None):
        self.calls.append(argv[:2])
        if argv[0] == "nvidia-ctk":
            return Result(0 if self.spec else 1, self.spec or "", "" if self.spec else "no NVML")
        if argv[:2] == ["systemctl", "show"]:
            return Result(0, "LoadState=loaded" if self.service else "LoadState=not-found", "")
        if argv[:2] == ["systemctl", "restart"] and self.service:
            self.service.parent.mkdir(exist_ok=True)
            self.service.write_text(self.spec)
        return Result(0, "", "")


@pytest.fixture
def params(tmp_path):
    return {
        "state": "present",
        "driver_version": "580.95.05",
        "previous_driver_version": None,
        "method": "auto",
        "path": str(tmp_path / "etc-cdi" / "nvidia.yaml"),
        "service_path": str(tmp_path / "run-cdi" / "nvidia.yaml"),
        "state_path": str(tmp_path / "kubegpu" / "state.json"),
    }


def everything(tmp_path):
    return sorted(str(path) for path in tmp_path.rglob("*"))


def test_create_again_absent_absent_again(params, tmp_path):
    run = Commands()
    predicted = module.present(params, run, check_mode=True)
    assert everything(tmp_path) == []
    done = module.present(params, run, check_mode=False)
    assert done == predicted
    assert done["changed"] and done["method"] == "generate"
    assert done["diff"]["after"] == "nvidia.com/gpu for driver 580.95.05\n"
    again = module.present(params, run, check_mode=False)
    assert not again["changed"] and again["diff"]["before"] == again["diff"]["after"]

    before = everything(tmp_path)
    predicted = module.absent(params, check_mode=True)
    assert everything(tmp_path) == before
    gone = module.absent(params, check_mode=False)
    assert gone == predicted and gone["changed"]
    assert everything(tmp_path) == []
    assert not module.absent(params, check_mode=False)["changed"]


def test_specification_of_another_driver_is_made_again_and_comes_back(params, tmp_path):
    old = tmp_path / "etc-cdi" / "nvidia.yaml"
    old.parent.mkdir()
    old.write_text(SPEC.format("535.104.05"))
    done = module.present(params, Commands(), check_mode=False)
    assert done["reasons"] == ["it was made for driver 535.104.05, not 580.95.05"]
    assert "580.95.05" in old.read_text()
    module.absent(params, check_mode=False)
    assert old.read_text() == SPEC.format("535.104.05")


def test_specification_that_somebody_made_since_stays(params):
    module.present(params, Commands(), check_mode=False)
    with open(params["path"], "a", encoding="utf-8") as handle:
        handle.write("# mine\n")
    assert not module.absent(params, check_mode=False)["changed"]
    with open(params["path"], encoding="utf-8") as handle:
        assert handle.read().endswith("# mine\n")


def test_service_is_used_where_the_toolkit_brings_it(params, tmp_path):
    run = Commands(service=tmp_path / "run-cdi" / "nvidia.yaml")
    done = module.present(params, run, check_mode=False)
    assert done["method"] == "service" and done["path"] == params["service_path"]
    assert ["systemctl", "restart"] in run.calls and ["nvidia-ctk", "cdi"] not in run.calls


def test_play_that_installs_first_predicts_what_it_reports(params, tmp_path):
    run = Commands(service=tmp_path / "run-cdi" / "nvidia.yaml")
    params.update(previous_driver_version="", method="service")
    predicted = module.present(params, run, check_mode=True)
    run(["systemctl", "restart", "by the package itself"])
    calls = len(run.calls)
    assert module.present(params, run, check_mode=False) == predicted
    assert len(run.calls) == calls


def test_generator_that_fails_is_quoted_and_nothing_is_written(params, tmp_path):
    with pytest.raises(KubegpuError, match="no NVML") as caught:
        module.present(params, Commands(spec=""), check_mode=False)
    assert "nvidia-smi" in caught.value.next_step
    assert everything(tmp_path) == []


def test_absent_undoes_a_specification_wherever_it_was(params, tmp_path):
    elsewhere = {**params, "path": str(tmp_path / "other" / "gpus.yaml")}
    module.present(elsewhere, Commands(), check_mode=False)
    assert module.absent(params, check_mode=False)["changed"]
    assert everything(tmp_path) == []
