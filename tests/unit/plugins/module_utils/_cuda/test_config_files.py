# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import shutil
import subprocess

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._cuda.config_files import (
    LOADER,
    PATHS,
    PROFILE,
    folder,
    loader_text,
    profile_text,
)


def test_the_facts_look_at_both_files():
    assert PATHS == (LOADER, PROFILE)


def test_one_folder_for_each_minor_version():
    assert folder("12.9") == folder("12.9.1") == "/usr/local/cuda-12.9"


def test_libraries_of_the_default_come_first():
    text = loader_text("/usr/local/cuda", ["/usr/local/cuda-12.9"])
    assert text.splitlines()[1:] == ["/usr/local/cuda/lib64", "/usr/local/cuda-12.9/lib64"]


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
@pytest.mark.parametrize(
    ("environment", "path", "home"),
    [
        ({"PATH": "/usr/bin:/bin"}, "{cuda}/bin:/usr/bin:/bin", "{cuda}"),
        ({"PATH": "/bin", "CUDA_HOME": "/mine"}, "{cuda}/bin:/bin", "/mine"),
    ],
)
def test_a_shell_that_reads_the_profile_twice(tmp_path, shell, environment, path, home):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not here")
    cuda = tmp_path / "cuda"
    (cuda / "bin").mkdir(parents=True)
    profile = tmp_path / "profile.sh"
    profile.write_text(profile_text(str(cuda)))
    script = f'set -eu; . {profile}; . {profile}; printf "%s\\n%s\\n" "$PATH" "$CUDA_HOME"'
    answer = subprocess.run(
        [program, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.splitlines() == [path.format(cuda=cuda), home.format(cuda=cuda)]
    assert answer.stderr == ""


def test_a_toolkit_that_is_gone_leaves_the_shell_alone(tmp_path):
    profile = tmp_path / "profile.sh"
    profile.write_text(profile_text(str(tmp_path / "cuda")))
    script = f'set -eu; . {profile}; printf "%s %s" "$PATH" "${{CUDA_HOME-none}}"'
    answer = subprocess.run(
        ["/bin/sh", "-c", script],
        env={"PATH": "/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout == "/bin none"
