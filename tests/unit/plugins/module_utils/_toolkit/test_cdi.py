# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The conditions of NVIDIA's unit, and what a specification has containers run.

Source: NVIDIA/nvidia-container-toolkit, deployments/systemd/nvidia-cdi-refresh.service of the tags.
Names of Debian's modules: dkms.conf of nvidia-kernel-dkms and nvidia-open-kernel-dkms 550.163.01.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._toolkit.cdi import hook_of, read_unit

DEP = "/lib/modules/6.1.0-40-amd64/modules.dep"
# The command as systemd has it after its own quoting, by release of the toolkit.
CONDITIONS = {
    "1.18.0": f"/usr/bin/grep -qE /nvidia.ko {DEP}",
    "1.18.1": rf"/usr/bin/grep -qE /(nvidia|nvidia-current)\.ko[:] {DEP}",
    "1.19.0": rf"/usr/bin/grep -qE /(nvidia|nvidia-current)\.ko {DEP}",
    "1.20.0": (
        f'/bin/sh -c /usr/bin/grep -qE "/(nvidia|nvidia-current)[.]ko" {DEP} || [ -e /dev/dxg ]'
    ),
}


def unit(release, **more):
    argv = CONDITIONS[release]
    path = argv.split()[0]
    return read_unit(
        {
            "LoadState": "loaded",
            "ExecCondition": f"{{ path={path} ; argv[]={argv} ; ignore_errors=no ; "
            "start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }",
            **more,
        }
    )


NVIDIA = "updates/dkms/nvidia.ko: kernel/x.ko\nupdates/dkms/nvidia-drm.ko: updates/dkms/nvidia.ko\n"
COMPRESSED = NVIDIA.replace(".ko", ".ko.zst")
DEBIAN = NVIDIA.replace("nvidia", "nvidia-current")
DEBIAN_OPEN = (
    "updates/dkms/nvidia-current-open-drm.ko: updates/dkms/nvidia-current-open.ko\n"
    "updates/dkms/nvidia-current-open.ko:\n"
)
OTHERS = "kernel/drivers/video/fbdev/nvidiafb/nvidiafb.ko: kernel/y.ko\n"


@pytest.mark.parametrize(
    ("modules", "starts"),
    [
        (NVIDIA, {"1.18.0", "1.18.1", "1.19.0", "1.20.0"}),
        (COMPRESSED, {"1.18.0", "1.19.0", "1.20.0"}),
        (DEBIAN, {"1.18.1", "1.19.0", "1.20.0"}),
        (DEBIAN_OPEN, set()),
        (OTHERS, set()),
        (None, set()),
    ],
)
def test_where_the_unit_starts(modules, starts):
    found = {
        release
        for release in CONDITIONS
        if unit(release).declines({DEP: modules}.get, lambda path: False) is None
    }
    assert found == starts


def test_what_the_unit_misses_is_named():
    said = unit("1.20.0").declines({DEP: DEBIAN_OPEN}.get, lambda path: False)
    assert said == (
        f"its ExecCondition looks for /(nvidia|nvidia-current)[.]ko in {DEP}, which has "
        "nvidia-current-open.ko"
    )
    assert "no module of NVIDIA's" in unit("1.20.0").declines({}.get, lambda path: False)


def test_wsl_needs_no_module():
    exists = {"/dev/dxg"}.__contains__
    assert unit("1.20.0").declines({}.get, exists) is None
    assert unit("1.19.0").declines({}.get, exists)


@pytest.mark.parametrize(
    "condition", ["", "{ path=/opt/own ; argv[]=/opt/own check ; }", "grep -qE ( /lib/x ;"]
)
def test_a_condition_that_is_not_known_is_not_judged(condition):
    here = read_unit({"LoadState": "loaded", "ExecCondition": condition})
    assert here.exists and here.declines({}.get, lambda path: False) is None


def test_what_systemd_left_out():
    assert not read_unit({}).exists and not read_unit({"LoadState": "not-found"}).exists
    assert not unit("1.20.0", Result="success", ConditionResult="yes").left_out
    assert unit("1.20.0", Result="exec-condition", ConditionResult="yes").left_out
    assert unit("1.20.0", Result="success", ConditionResult="no").left_out


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("          path: /usr/bin/nvidia-cdi-hook", "/usr/bin/nvidia-cdi-hook"),
        ('        - path: "/usr/bin/nvidia-ctk"', "/usr/bin/nvidia-ctk"),
        (
            "      path: /usr/local/nvidia/toolkit/nvidia-cdi-hook",
            "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
        ),
        ("        - path: /dev/nvidia0", None),
        ("        - hostPath: /usr/bin/nvidia-cdi-hook", None),
        ("", None),
    ],
)
def test_program_that_containers_run(line, program):
    assert hook_of(f"kind: nvidia.com/gpu\n{line}\n") == program
    assert hook_of(None) is None
