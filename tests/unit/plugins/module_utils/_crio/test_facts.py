# Copyright (c) 2026 kubegpu.nodes contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CRI-O's files as a fact. No CRI-O is here: the files are as its packages have them."""

from __future__ import annotations

import os
import time

import pytest

from ansible_collections.kubegpu.nodes.plugins.module_utils._crio.facts import read_crio
from ansible_collections.kubegpu.nodes.plugins.module_utils._host.reader import NodeReader
from tests.unit.fixtures.crio import PACKAGED
from tests.unit.fixtures.make_tree import write

FOLDER = "/etc/crio/crio.conf.d"
OURS = """\
[crio.runtime.runtimes.nvidia]
runtime_path = "/usr/bin/nvidia-container-runtime"
runtime_root = "/run/crun"
runtime_type = "pod"
monitor_path = "/usr/libexec/crio/conmonrs"
allowed_annotations = ["io.containers.trace-syscall"]
"""


def stamp(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def read(root, *, active=True, started=None, **files):
    for name, text in files.items():
        write(root, f"{FOLDER}/{name}", text)
    return read_crio(NodeReader(str(root)), active, started)


def test_as_the_packages_leave_it(tmp_path):
    facts, problems = read(tmp_path, **{"10-crio.conf": PACKAGED})
    assert problems == []
    assert facts["runtimes"]["crun"] == {
        "type": "pod",
        "path": "/usr/libexec/crio/crun",
        "file": f"{FOLDER}/10-crio.conf",
        "outdated": False,
        "lacks": [],
    }
    assert (facts["default_runtime"], facts["default_file"]) == ("crun", f"{FOLDER}/10-crio.conf")
    assert facts["own_runtime"] == {"name": "crun", "path": "/usr/libexec/crio/crun"}


def test_no_files_at_all(tmp_path):
    facts, problems = read(tmp_path)
    assert (facts["runtimes"], facts["default_runtime"], facts["own_runtime"]) == ({}, None, None)
    assert problems == []


@pytest.mark.parametrize(
    ("ours", "packaged", "outdated"),
    [
        (OURS, PACKAGED, False),
        # What somebody adds to our handler stays, and says nothing.
        (OURS + "container_min_memory = '20MiB'\n", PACKAGED, False),
        (OURS, PACKAGED.replace("conmonrs", "conmon"), True),
        (OURS, PACKAGED.replace("/run/crun", "/run/other"), True),
        # Another default runtime than before.
        (OURS, PACKAGED.replace('default_runtime = "crun"', 'default_runtime = "runc"'), True),
        # The default that is ours is not what the handler inherits from.
        ('[crio.runtime]\ndefault_runtime = "nvidia"\n' + OURS, PACKAGED, False),
        # Not to be taken over: the module says so when it is asked.
        (OURS, PACKAGED.replace('runtime_root = "/run/crun"', "x = [[1]]"), False),
    ],
)
def test_a_handler_of_ours_is_compared_with_the_nodes_own_runtime(
    tmp_path, ours, packaged, outdated
):
    facts, _problems = read(tmp_path, **{"10-crio.conf": packaged, "99-nvidia.toml": ours})
    assert facts["runtimes"]["nvidia"]["outdated"] is outdated
    assert facts["runtimes"]["nvidia"]["file"] == f"{FOLDER}/99-nvidia.toml"


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({"50-mine.conf": OURS}, []),
        ({"50-mine.conf": OURS.replace('monitor_path = "/usr/libexec/crio/conmonrs"', "")},
         ["monitor_path"]),
        ({"50-mine.conf": OURS.replace('"pod"', '"oci"')}, ["runtime_type"]),
        # Files of subfolders are read, too, and later ones replace the handler.
        ({"50/old.bak": OURS.replace('"pod"', '"oci"'), "60-mine.conf": OURS}, []),
        ({"50/old.bak": OURS, "60-mine.conf": OURS + "inherit_default_runtime = true"},
         ["inherit_default_runtime"]),
        # Another program: the module writes its own handler.
        ({"50-mine.conf": OURS.replace("/usr/bin/nvidia", "/opt/nvidia").replace("pod", "vm")}, []),
    ],
)  # fmt: skip
def test_a_handler_of_somebody_else_is_compared_with_what_it_needs(tmp_path, files, lacks):
    facts, _problems = read(tmp_path, **{"10-crio.conf": PACKAGED, **files})
    assert facts["runtimes"]["nvidia"]["outdated"] is False
    assert facts["runtimes"]["nvidia"]["lacks"] == lacks


def test_the_daemon_is_older_than_its_files_or_not(tmp_path):
    files = {"10-crio.conf": PACKAGED}
    assert read(tmp_path, started=stamp(time.time() + 5), **files)[0]["restart_required"] is False
    assert read(tmp_path, started=stamp(time.time() - 60), **files)[0]["restart_required"] is True
    assert read(tmp_path, started=None, **files)[0]["restart_required"] is None
    # One that does not run reads them when it starts.
    assert read(tmp_path, active=False, **files)[0]["restart_required"] is False


class EarlierReader(NodeReader):
    """Says of what is as it was at first that it is a minute old: so no test has to wait."""

    def __init__(self, root):
        super().__init__(root)
        self.known = {}

    def times(self, path):
        found = super().times(path)
        if found is not None and self.known.setdefault(path, found) == found:
            return tuple(moment - 60 for moment in found)
        return found


def test_a_file_that_was_taken_away_shows_by_its_folder(tmp_path):
    read(tmp_path, **{"10-crio.conf": PACKAGED, "50-mine.conf": ""})
    # Its time is another one after the next change, however soon that comes.
    os.utime(tmp_path / FOLDER[1:], (1, 1))
    reader, started = EarlierReader(str(tmp_path)), stamp(time.time() - 30)
    assert read_crio(reader, True, started)[0]["restart_required"] is False
    (tmp_path / f"{FOLDER[1:]}/50-mine.conf").unlink()
    assert read_crio(reader, True, started)[0]["restart_required"] is True


def test_broken_files_are_a_problem_with_the_next_step(tmp_path):
    facts, (problem,) = read(tmp_path, **{"10-crio.conf": "[crio\n"})
    assert facts["runtimes"] is None
    assert problem.code == "crio_config_invalid"
    assert "10-crio.conf" in problem.cause


def test_what_may_not_be_read_is_null_and_no_error(tmp_path):
    write(tmp_path, f"{FOLDER}/10-crio.conf", PACKAGED)
    reader = NodeReader(str(tmp_path))
    reader.read_text = lambda path: None
    assert read_crio(reader, True, None) == (
        {
            "runtimes": None,
            "default_runtime": None,
            "default_file": None,
            "own_runtime": None,
            "restart_required": None,
        },
        [],
    )


def test_folders_beside_the_files_are_passed_over(tmp_path):
    os.makedirs(tmp_path / FOLDER[1:] / "sub")
    assert read(tmp_path, **{"10-crio.conf": PACKAGED})[1] == []
