# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What gpu_diagnose refuses before a node is read: the role's own tasks, all cases in one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.environments import collections

pytestmark = pytest.mark.full(why="a few tasks of the role; a run takes seconds")

PODS = ["default/train-0"]
# The variables, and words of the refusal; none where nothing is wrong.
CASES = {
    "too small": (
        {"gpu_diagnose_bundle_file": "bundle.tar.gz", "gpu_diagnose_bundle_kib": 0},
        ["gpu_diagnose_bundle_kib is 0.", "from 1 to 16384"],
    ),
    "too large": (
        {"gpu_diagnose_bundle_file": "bundle.tar.gz", "gpu_diagnose_bundle_kib": 20000},
        ["gpu_diagnose_bundle_kib is 20000.", "from 1 to 16384"],
    ),
    "one file for two": (
        {"gpu_diagnose_bundle_file": "found.json", "gpu_diagnose_file": "./found.json"},
        ["gpu_diagnose_bundle_file and gpu_diagnose_file are both ./found.json", "two files"],
    ),
    "no name of a pod": (
        {"gpu_diagnose_pods": [*PODS, "train-0", "a/b/c"]},
        ["gpu_diagnose_pods has train-0, a/b/c, which names no pod", "NAMESPACE/NAME"],
    ),
    "no cluster": (
        {"gpu_diagnose_pods": PODS},
        ["has default/train-0, and kubegpu_kube names no cluster", "kubeconfig"],
    ),
    "an earlier result that is none": (
        {"gpu_diagnose_file": "broken.json"},
        ["gpu_diagnose_file is broken.json", "no result of a diagnosis", "name another file"],
    ),
    "a bundle is not written, so its size does not matter": (
        {"gpu_diagnose_bundle_kib": 0}, [],
    ),
    "pods of a cluster": (
        {"gpu_diagnose_pods": PODS, "kubegpu_kube": {"kubeconfig": "/dev/null"}}, [],
    ),
}  # fmt: skip


def tasks_of(name, variables):
    """Return the tasks that store what the role says of these variables."""
    said = {name: "{{ ansible_failed_result.msg | default('') }}"}
    return {
        "name": name,
        "block": [
            {
                "name": "Begin",
                "ansible.builtin.include_role": {
                    "name": "kubegpu.nodes.gpu_diagnose", "tasks_from": "before",
                },
                "vars": {"gpu_diagnose_file": "found.json", **variables},
            }
        ],
        "rescue": [
            {
                "name": "Keep",
                "ansible.builtin.set_fact": {"said": "{{ said | default({}) | combine(one) }}"},
                "vars": {"one": said},
            }
        ],
    }  # fmt: skip


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return what the role says in each case."""
    folder = tmp_path_factory.mktemp("diagnose")
    (folder / "broken.json").write_text("no result")
    tasks = [tasks_of(name, variables) for name, (variables, _words) in CASES.items()]
    copy = {"content": "{{ said | to_json }}", "dest": str(folder / "said")}
    tasks.append({"name": "Write", "ansible.builtin.copy": copy})
    play = folder / "play.json"
    play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "--inventory", "localhost,", "--connection", "local", str(play),
            "--extra-vars", json.dumps({"ansible_python_interpreter": sys.executable}),
        ],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(collections()), "ANSIBLE_NOCOLOR": "1"},
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "said").read_text())


@pytest.mark.parametrize(("name", "words"), [(name, case[1]) for name, case in CASES.items()])
def test_what_is_refused_before_a_node_is_read(said, name, words):
    assert (name in said) is bool(words), said
    for word in words:
        assert word in said[name], said[name]
