# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an unprivileged user of a node puts into folders of PATH and the like is not run.

The user is real (65534): each attempt is made by a process of that user.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args

from ansible_collections.kubegpu.nodes.plugins.module_utils._host.bounded import (
    module_stream,
    run_bounded,
)
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.command import module_runner
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.environment import is_ours

NOBODY = 65534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone becomes another user")


@pytest.fixture
def tree(tmp_path_factory, monkeypatch):
    """A folder that everybody may enter, with the program of root in ``own``."""
    folder = tmp_path_factory.mktemp("node")
    for step in (folder, *list(folder.parents)[:2]):
        step.chmod(0o755)
    own = folder / "own"
    own.mkdir(mode=0o755)
    program(own / "nvidia-smi", "of root")
    return folder


def program(path: Path, word: str) -> None:
    path.write_text(f"#!/bin/sh\necho {word} $(id -u)\n")
    path.chmod(0o755)


def as_user(script: str, *arguments: object) -> int:
    """Run a script of the shell as the unprivileged user; return its status."""
    command = ["/bin/sh", "-c", script, "sh", *map(str, arguments)]
    return subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=(), capture_output=True, check=False
    ).returncode


FAKE = 'printf "#!/bin/sh\\necho of the user $(id -u)\\n" > "$1/$2" && chmod 755 "$1/$2"'


def ask(monkeypatch, path: str, name: str = "nvidia-smi") -> list[str]:
    """Return what the two ways to run a program as root print, with this PATH."""
    monkeypatch.setenv("PATH", path)
    with patch_module_args({}):
        module = AnsibleModule(argument_spec={})
        first = module_runner(module)([name]).stdout
        monkeypatch.setenv("PATH", path)
        second, _hang = run_bounded(module_stream(module), [name], 20, 1000)
    return [first, second.stdout]


def world_writable(tree: Path) -> Path:
    folder = tree / "all"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def sticky(tree: Path) -> Path:
    folder = tree / "sticky"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def of_the_user(tree: Path) -> Path:
    folder = tree / "home"
    folder.mkdir(mode=0o755)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def below_one_of_the_user(tree: Path) -> Path:
    """A folder of root, which the user exchanges for another one of the same name."""
    around = of_the_user(tree)
    folder = around / "bin"
    folder.mkdir(mode=0o755)
    assert as_user('mv "$1" "$1.away" && mkdir "$1"', folder) == 0
    return folder


def link_of_the_user(tree: Path) -> Path:
    around = sticky(tree)
    assert as_user('mkdir "$1/real" && ln -s "$1/real" "$1/bin"', around) == 0
    return around / "bin"


PLANTED = [world_writable, sticky, of_the_user, below_one_of_the_user, link_of_the_user]


@pytest.mark.parametrize("planted", PLANTED)
def test_a_program_in_a_folder_that_the_user_can_change_is_not_run(tree, monkeypatch, planted):
    folder = planted(tree)
    assert as_user(FAKE, folder, "nvidia-smi") == 0, "the attempt itself works"
    usual = f"{folder}:{tree}/own:/usr/bin:/bin"
    assert ask(monkeypatch, usual) == ["of root 0\n"] * 2
    # Where nobody else has such a program, it is not there.
    assert as_user(FAKE, folder, "nvidia-other") == 0
    assert ask(monkeypatch, usual, "nvidia-other") == ["", ""]


@pytest.mark.parametrize("place", ["", ".", "bin"])
def test_a_folder_by_a_relative_name_is_not_one_of_the_path(tree, monkeypatch, place):
    folder = world_writable(tree)
    assert as_user('mkdir "$1/bin"', folder) == 0
    for where in (folder, folder / "bin"):
        assert as_user(FAKE, where, "nvidia-smi") == 0
    monkeypatch.chdir(folder)
    assert ask(monkeypatch, f"{place}:{tree}/own:/usr/bin:/bin") == ["of root 0\n"] * 2
    assert os.environ["PATH"] == f"{tree}/own:/usr/bin:/bin"


def test_programs_that_a_program_starts_come_from_the_same_folders(tree, monkeypatch):
    folder = world_writable(tree)
    assert as_user(FAKE, folder, "nvidia-smi") == 0
    (tree / "own/outer").write_text("#!/bin/sh\nnvidia-smi\n")
    (tree / "own/outer").chmod(0o755)
    usual = f"{folder}:{tree}/own:/usr/bin:/bin"
    assert ask(monkeypatch, usual, "outer") == ["of root 0\n"] * 2


def test_without_a_folder_of_root_the_usual_ones_are_taken(tree, monkeypatch, capsys):
    folder = world_writable(tree)
    assert ask(monkeypatch, str(folder), "id")[0].startswith("uid=0")
    assert os.environ["PATH"] == "/usr/sbin:/usr/bin:/sbin:/bin"


def test_the_person_is_told_which_folder_is_left_out(tree, monkeypatch):
    folder = world_writable(tree)
    told: list[str] = []
    monkeypatch.setenv("PATH", f"{folder}:{tree}/gone:/usr/bin:/bin")
    with patch_module_args({}):
        module = AnsibleModule(argument_spec={})
        monkeypatch.setattr(module, "warn", told.append)
        module_runner(module)
    assert len(told) == 1 and told[0].startswith(f"PATH: {folder} is not used")
    assert "gone" not in told[0] and "chmod o-w" in told[0]


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("BASH_ENV", "echo of the user $(id -u)"),
        ("ENV", "echo of the user $(id -u)"),
        ("LD_PRELOAD", "no library"),
        ("LD_AUDIT", "no library"),
        ("PYTHONSTARTUP", "print('of the user')"),
    ],
)
def test_a_file_of_the_user_is_not_read_by_programs_of_root(tree, monkeypatch, name, planted):
    folder = world_writable(tree)
    assert as_user('printf %s "$2" > "$1/x.so"', folder, planted) == 0
    monkeypatch.setenv(name, f"{folder}/x.so")
    with patch_module_args({}):
        run = module_runner(AnsibleModule(argument_spec={}))
        answer = run(["bash", "-c", f"echo ${{{name}:-none}}"])
    assert (answer.stdout, answer.stderr) == ("none\n", "")


@pytest.mark.parametrize("name", ["PYTHONPATH", "LD_LIBRARY_PATH", "PERL5LIB"])
def test_modules_and_libraries_are_of_folders_of_root(tree, monkeypatch, name):
    folder = world_writable(tree)
    assert as_user('echo "print(\'of the user\')" > "$1/json.py"', folder) == 0
    monkeypatch.setenv(name, f"{folder}:{tree}/own")
    with patch_module_args({}):
        run = module_runner(AnsibleModule(argument_spec={}))
        assert run(["sh", "-c", f"echo ${name}"]).stdout == f"{tree}/own\n"
        assert run([sys.executable, "-c", "import json"]).stdout == ""
        monkeypatch.setenv(name, str(folder))
        module_runner(AnsibleModule(argument_spec={}))
    assert name not in os.environ


def test_what_root_has_chosen_is_kept(tree, monkeypatch):
    """Also a folder that a group may write (Debian's staff), and a library by its name."""
    group = tree / "group"
    group.mkdir()
    group.chmod(0o2775)
    monkeypatch.setenv("PATH", f"{group}:{tree}/own:/usr/bin:/bin")
    monkeypatch.setenv("LD_PRELOAD", "libc.so.6")
    with patch_module_args({}):
        module_runner(AnsibleModule(argument_spec={}))
    assert os.environ["PATH"] == f"{group}:{tree}/own:/usr/bin:/bin"
    assert os.environ["LD_PRELOAD"] == "libc.so.6"


def test_a_program_of_root_in_a_sticky_folder_of_all_is_of_root(tree):
    """As the folder of temporary files: others cannot exchange what is not theirs."""
    folder = sticky(tree)
    mine = folder / "mine"
    mine.mkdir(mode=0o755)
    program(mine / "x", "of root")
    assert is_ours(str(mine)) and not is_ours(str(folder))
    assert as_user('mv "$1" "$1.away"', mine) != 0
    (mine / "x").chmod(0o757)
    assert not is_ours(str(mine / "x"))
